#!/bin/bash
# Makes the data of a new container, as the official image's entry point does, and runs the command.
# Left out: scripts in /docker-entrypoint-initdb.d, users and databases of other names, a start as root.
set -euo pipefail

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # The words of this variable are options.
  # shellcheck disable=SC2086
  initdb --username=postgres --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --encoding=UTF8 \
    --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C ${POSTGRES_INITDB_ARGS-}
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
fi
exec "$@"
