#!/usr/bin/env bash
# Makes the Python environment of the course in .venv, from the locks with their hashes.
#
#   setup.sh course   what a learner needs
#   setup.sh test     that and what the tests need
#
# PYTHON names the Python to use; without it, the first of the usual names that fits. A second call does nothing
# unless a lock has changed. It can be interrupted at any time; the next call goes on.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHAT=${1:?course or test}
VENV=.venv
OLDEST=11 NEWEST=13

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# Prints "3.12" if the command is a Python that the course supports.
supported() {
  "$1" -c "
import sys
major, minor = sys.version_info[:2]
print(f'{major}.{minor}')
sys.exit(not (major == 3 and $OLDEST <= minor <= $NEWEST))" 2>/dev/null
}

find_python() {
  local candidate seen=""
  if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python; fi
  for candidate; do
    command -v "$candidate" >/dev/null || continue
    supported "$candidate" >/dev/null && { printf '%s\n' "$candidate"; return; }
    seen="$seen $candidate is $(supported "$candidate" || true);"
  done
  fail "the course needs Python 3.$OLDEST to 3.$NEWEST;${seen:- no such command: $*;}" \
    "install one, or name it: make setup PYTHON=/path/to/python3.12"
}

make_venv() {
  if [ -x $VENV/bin/python ] && supported $VENV/bin/python >/dev/null && $VENV/bin/python -m pip --version >/dev/null 2>&1; then
    return
  fi
  local python
  python=$(find_python)
  "$python" -c 'import ensurepip, venv' 2>/dev/null || fail \
    "$python lacks the module venv; on Debian and Ubuntu: apt-get install python3-venv"
  say "1 of 3: environment in $VENV, Python $(supported "$python")"
  "$python" -m venv --clear $VENV
}

install_packages() {
  local lock=requirements/$WHAT.lock
  say "2 of 3: the installer"
  $VENV/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/installer.lock
  say "3 of 3: $(grep -c '^[a-z0-9].*==' "$lock") packages of $lock"
  # The installer does not read pip's settings: a mirror or a certificate named there holds for it too.
  local index cert
  index=${PIP_INDEX_URL:-$($VENV/bin/python -m pip config get global.index-url 2>/dev/null || true)}
  cert=${PIP_CERT:-$($VENV/bin/python -m pip config get global.cert 2>/dev/null || true)}
  [ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
  [ -z "$cert" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"
  # Downloads are kept while this goes on, so that an interruption costs little, and not afterwards: they take 2 GB.
  local downloads=$PWD/$VENV/.downloads
  export UV_CACHE_DIR="${UV_CACHE_DIR:-$downloads}"
  # `install`, not `sync`: what the tests need stays when the course is set up again.
  $VENV/bin/uv pip install --python $VENV/bin/python --require-hashes --build-constraints requirements/build.lock -r "$lock"
  $VENV/bin/uv pip install --quiet --python $VENV/bin/python --no-deps --build-constraints requirements/build.lock -e .
  rm -rf "$downloads"
}

# What the environment was made from: this machine's folder counts, for scripts in it name it.
wanted() { { pwd -P; cat "requirements/$WHAT.lock" requirements/build.lock pyproject.toml; } | cksum; }

stamp=$VENV/.$WHAT-ready
if [ -e $stamp ] && [ "$(cat $stamp)" = "$(wanted)" ] && [ -x $VENV/bin/kafkalab ] && supported $VENV/bin/python >/dev/null; then
  exit
fi
make_venv
rm -f $stamp
trap 'say "the packages could not be installed (the reason is above). Is there a network? Call it again to go on." >&2' ERR
install_packages
wanted >$stamp
say "done"
