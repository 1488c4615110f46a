#!/usr/bin/env bash
# Makes the Python environment of the course in .venv, from the locks with their hashes.
#
#   setup.sh course   what a learner needs
#   setup.sh test     that and what the tests need
#
# PYTHON names the Python to use; without it, the first of the usual names that fits. A second call does nothing
# unless a lock has changed. It can be interrupted at any time; the next call goes on.
set -Eeuo pipefail
unset CDPATH GREP_OPTIONS  # with these, cd and grep do other things
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHAT=${1:?course or test}
VENV=.venv
OLDEST=11 NEWEST=13

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

# Settings of the user's Python, pip and uv that change where packages go, or which ones are taken, don't count here. Those that
# say where packages come from do.
left_out="" counted=""
keep_own_settings() {
  local name
  for name in "${!PYTHON@}" "${!PIP_@}" "${!UV_@}" __PYVENV_LAUNCHER__; do
    case $name in
      PYTHON | PYTHONDONTWRITEBYTECODE | PYTHONPYCACHEPREFIX) ;;
      PIP_CONFIG_FILE | PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_FIND_LINKS | PIP_NO_INDEX | PIP_TRUSTED_HOST) ;;
      PIP_CERT | PIP_CLIENT_CERT | PIP_PROXY | PIP_*TIMEOUT | PIP_RETRIES | PIP_CACHE_DIR | PIP_KEYRING_PROVIDER) ;;
      UV_CONFIG_FILE | UV_*INDEX* | UV_FIND_LINKS | UV_INSECURE_HOST | UV_KEYRING_PROVIDER | UV_*CERT* | UV_*TLS*) ;;
      UV_HTTP_* | UV_REQUEST_* | UV_LOCK_TIMEOUT | UV_CACHE_DIR | UV_CONCURRENT_* | UV_LINK_MODE | UV_OFFLINE) ;;
      *) [ -z "${!name-}" ] || { left_out="$left_out $name" && unset "$name"; } ;;
    esac
  done
}

# Prints settings of pip's files that say where packages come from, as variables.
from_pip_files() {
  $VENV/bin/python -m pip config list | $VENV/bin/python -c '
import ast, sys
counts = "index-url extra-index-url find-links no-index trusted-host cert client-cert proxy timeout retries".split()
found = {}
for line in sys.stdin:
    key, _, value = line.strip().partition("=")
    section, _, name = key.rpartition(".")
    if section in ("global", "install") and name in counts:
        found[section, name] = " ".join(ast.literal_eval(value).split())
for (section, name), value in sorted(found.items(), reverse=True):  # what is for `pip install` comes first, and counts
    print("PIP_" + name.upper().replace("-", "_") + "=" + value)'
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
  local settings setting name
  settings=$(from_pip_files) || { say "pip can't read its own settings" >&2 && false; }
  while IFS= read -r setting; do
    name=${setting%%=*}
    [ -z "$setting" ] || [ -n "${!name-}" ] || export "${setting?}"
  done <<<"$settings"
  counted=$(compgen -e | grep -E '^(PIP_|UV_|SSL_CERT|[A-Za-z]+_(proxy|PROXY)$)' | grep -v '^PIP_CONFIG_FILE$' | sort | tr '\n' ' ') || true
  export PIP_CONFIG_FILE=/dev/null  # what counts of pip's files is in variables now
  $VENV/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/installer.lock
  say "3 of 3: $(grep -c '^[a-z0-9].*==' "$lock") packages of $lock"
  # The installer does not read pip's settings: a mirror, a proxy or a certificate named there holds for it too.
  [ -z "${PIP_INDEX_URL-}" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"
  [ -z "${PIP_EXTRA_INDEX_URL-}" ] || export UV_EXTRA_INDEX_URL="${UV_EXTRA_INDEX_URL:-$PIP_EXTRA_INDEX_URL}"
  [ -z "${PIP_FIND_LINKS-}" ] || export UV_FIND_LINKS="${UV_FIND_LINKS:-${PIP_FIND_LINKS// /,}}"
  [ -z "${PIP_TRUSTED_HOST-}" ] || export UV_INSECURE_HOST="${UV_INSECURE_HOST:-$PIP_TRUSTED_HOST}"
  [ -z "${PIP_CERT-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
  [ -z "${PIP_CLIENT_CERT-}" ] || export SSL_CLIENT_CERT="${SSL_CLIENT_CERT:-$PIP_CLIENT_CERT}"
  [ -z "${PIP_PROXY-}" ] || export HTTPS_PROXY="${HTTPS_PROXY:-${https_proxy:-$PIP_PROXY}}"
  # Downloads are kept while this goes on, so that an interruption costs little, and not afterwards: they take 2 GB.
  local downloads=$PWD/$VENV/.downloads
  export UV_CACHE_DIR="${UV_CACHE_DIR:-$downloads}"
  # `install`, not `sync`: what the tests need stays when the course is set up again.
  local from=""
  [[ ! "${PIP_NO_INDEX-}" =~ ^(1|[Tt]rue|[Yy]es|[Oo]n)$ ]] || from=--no-index
  # PySpark comes as sources, and its wheel is made here: 430 MB of jars, which it would take 15 s to compress once more.
  $VENV/bin/uv pip install $from --python $VENV/bin/python --require-hashes --build-constraints "$lock" \
    --config-settings-package "pyspark:--build-option=--compression=stored" -r "$lock"
  $VENV/bin/uv pip install $from --quiet --python $VENV/bin/python --no-deps --build-constraints "$lock" -e . -e ./pipeline
  rm -rf "$downloads"
}

failed() {
  trap - ERR
  say "the packages could not be installed: the reason is in the lines above. Settings of yours that counted: ${counted:-none}" >&2
  [ -z "$left_out" ] || say "settings of yours that didn't count:$left_out" >&2
  say "does a line above say that an address can't be reached? Then there's no network, or one of these settings is wrong" >&2
  say "call it again to go on" >&2
}

# What the environment was made from: this machine's folder counts, for scripts in it name it.
wanted() { { pwd -P; cat "requirements/$WHAT.lock" pyproject.toml pipeline/pyproject.toml; } | cksum; }

keep_own_settings
stamp=$VENV/.$WHAT-ready
if [ -e $stamp ] && [ "$(cat $stamp)" = "$(wanted)" ] && [ -x $VENV/bin/kafkalab ] && supported $VENV/bin/python >/dev/null; then
  exit
fi
make_venv
rm -f $stamp
trap failed ERR
install_packages
wanted >$stamp
say "done"
