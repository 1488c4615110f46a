#!/usr/bin/env bash
# Sets up what the tests need and runs them.
#
#   test.sh quick   lint, types and unit tests; starts no broker
#   test.sh all     what a change can break: the above; every notebook and check once on local processes; contract tests
#                   on both back ends, a chapter on Docker; faults, browser, Binder rehearsal
#   test.sh full    all that, and at length: every notebook and check on Docker, too, a hundred faults on both, every
#                   notebook ten times with three side by side, the Binder rehearsal from scratch, and what is marked
#                   at_length: untouched labs, more pairs of faults, more moments of an interrupt, more trials of consumers
#
# With root and apt it sets up a Docker engine and a browser too, and stops the engine that it started. Where that is
# not possible it says which tests are left out. With CI=true none may be left out but those that KAFKALAB_MAY_LEAVE_OUT
# names ("docker", "browser"). Arguments after the first go to pytest.
set -euo pipefail
unset CDPATH  # with it, cd may go elsewhere, and prints where
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHAT=${1:-all}
shift || true
BIN=$PWD/.venv/bin
CI=${CI:-false}
LEFT_OUT="" # one line for each
unset PYTHONDONTWRITEBYTECODE # containers set it: each kernel would compile pandas and matplotlib anew, for two seconds

say() { printf 'test: %s\n' "$*"; }

fail() {
  printf 'test: %s\n' "$*" >&2
  exit 1
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install() {
  say "installing $*"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# leave_out docker|browser WHY
leave_out() {
  [ "$CI" != true ] || [[ " ${KAFKALAB_MAY_LEAVE_OUT:-} " = *" $1 "* ]] || fail "in CI no test may be left out, but: $2"
  LEFT_OUT="$LEFT_OUT$2
"
}

prepare_docker() {
  if ! docker info >/dev/null 2>&1 && ! can_install; then
    leave_out docker "tests on Docker: no Docker engine answers, and only root can install one, with apt"
    return 1
  fi
  local jars java image postgres
  jars=$("$BIN/python" -c 'from kafkalab.distribution import jars_dir; print(jars_dir("kafka"))')
  java=$("$BIN/python" -c 'from kafkalab.distribution import java_home; print(java_home())')
  image=$("$BIN/python" -c 'from kafkalab.cluster.backends.docker_engine import image_of
from kafkalab.distribution import KAFKA_VERSION
print(image_of(KAFKA_VERSION))')
  postgres=$("$BIN/python" -c 'from kafkalab.services.postgresql_process import programs; print(programs().parent)')
  if ! { docker/engine.sh start && docker/build-standin-image.sh "$jars" "$java" &&
    docker/build-standin-postgres.sh "$image" "$postgres"; }; then
    leave_out docker "tests on Docker: the engine or an image could not be set up (the reason is above)"
    return 1
  fi
}

find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

install_browser() {
  if ! find_chromium >/dev/null && can_install; then
    install chromium fonts-dejavu-core # without a font a page has no text
  fi
}

prepare_browser() {
  install_browser || true
  if ! KAFKALAB_CHROMIUM=$(find_chromium); then
    leave_out browser "browser tests: there is no Chromium; on Debian and Ubuntu: apt-get install chromium"
    return 1
  fi
  export KAFKALAB_CHROMIUM
}

# Notebooks and brokers wait as often as they compute: two workers more than there are processors, with 1.5 GB for each.
# tests/scheduling.py says what a worker runs together, and what comes last.
count_workers() {
  "$BIN/python" -c 'import os
from kafkalab.resources import available_memory
print(max(1, min((os.cpu_count() or 2) + 2, int(available_memory() / 1.5e9))))'
}
WORKERS=${KAFKALAB_TEST_WORKERS:-$(count_workers)}
run_pytest() { "$BIN/python" -m pytest -n "$WORKERS" --dist loadscope --no-loadscope-reorder "$@"; }

check_code() {
  "$BIN/ruff" check . && "$BIN/ruff" format --check . && "$BIN/mypy" && "$BIN/lint-imports" && "$BIN/deptry" src &&
    "$BIN/deptry" src tests pipeline/tests tools solutions/03_producer solutions/04_consumer --exclude nothing --ignore DEP002,DEP004 &&
    (cd pipeline && "$BIN/deptry" src)
}

if [ "$WHAT" = quick ]; then
  check_code & # beside the tests, which wait as often as they compute
  code=$!
  status=0
  run_pytest tests/unit pipeline/tests "$@" || status=$?
  wait $code || status=1
  exit $status
fi

stop_engine=false
KAFKALAB_PROGRESS=$(mktemp -d) # the solutions solve every lab, but not for the learner
export KAFKALAB_PROGRESS
end() {
  wait # nothing is installed any more
  rm -rf "$KAFKALAB_PROGRESS"
  ! $stop_engine || docker/engine.sh stop >/dev/null # quietly: the report's summary comes last
}
trap end EXIT

docker info >/dev/null 2>&1 || stop_engine=true # one that was there before is left running
# Packages wait for the network, archives of classes for a processor. What fails here is tried again below, where it says why.
if can_install; then
  { docker/engine.sh start && install_browser; } >/dev/null 2>&1 &
fi
check_code & # while archives are built and jars come
code=$!
"$BIN/kafkalab" fetch --all
wait $code || fail "lint or types: the reason is above"
wait
tools=$("$BIN/python" -c 'from kafkalab.distribution import tools_dir; print(tools_dir())')
export PATH="$tools:$PATH"

marks="not at_length"
[ "$WHAT" != full ] || marks=""
status=0
docker_ready=true
if ! prepare_docker; then
  docker_ready=false
  marks="${marks:+$marks and }not docker"
fi
if ! prepare_browser; then
  marks="${marks:+$marks and }not browser"
fi
export KAFKALAB_LEFT_OUT="$LEFT_OUT" # said before the summary line

if [ "$WHAT" = full ]; then
  export KAFKALAB_ROUNDS=100 KAFKALAB_BINDER=scratch
  if $docker_ready; then
    say "every notebook, every check and the faults on Docker"
    KAFKALAB_BACKEND=docker run_pytest --nbval notebooks solutions tests/labs tests/faults/test_soak.py "$@" || status=$?
  fi
  for round in $(seq 10); do
    say "every notebook, three side by side, round $round of 10"
    WORKERS=3 KAFKALAB_BACKEND=local run_pytest --nbval notebooks solutions "$@" || status=$?
  done
  say "everything else"
fi
KAFKALAB_BACKEND=local run_pytest --durations 30 --nbval ${marks:+-m "$marks"} tests pipeline/tests notebooks solutions "$@" || status=$?
exit $status
