#!/usr/bin/env bash
# Sets up what the tests need and runs them.
#
#   test.sh all      everything: unit, contract, notebooks (on both back ends), browser, Binder rehearsal
#   test.sh quick    unit tests
#   test.sh docker   contract tests, chapters and solutions on Docker
#
# With root and apt it sets up a Docker engine and a browser too, and stops the engine that it started. Where that is
# not possible it says which tests are left out. With CI=true none may be left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHAT=${1:-all}
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

leave_out() {
  [ "$CI" != true ] || fail "in CI no test may be left out, but: $1"
  LEFT_OUT="$LEFT_OUT$1
"
}

prepare_docker() {
  if ! docker info >/dev/null 2>&1 && ! can_install; then
    leave_out "tests on Docker: no Docker engine answers, and only root can install one, with apt"
    return 1
  fi
  local jars java
  jars=$("$BIN/python" -c 'from kafkalab.distribution import jars_dir; print(jars_dir("kafka"))')
  java=$("$BIN/python" -c 'from kafkalab.distribution import java_home; print(java_home())')
  if ! { docker/engine.sh start && docker/build-standin-image.sh "$jars" "$java"; }; then
    leave_out "tests on Docker: the engine or the image could not be set up (the reason is above)"
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
    leave_out "browser tests: there is no Chromium; on Debian and Ubuntu: apt-get install chromium"
    return 1
  fi
  export KAFKALAB_CHROMIUM
}

# Two at a time, a file's tests in order on one of them: a notebook's cells share a kernel.
# In the order given: long tests stand first there, and would else come last, with nothing left to run beside them.
run_pytest() { "$BIN/python" -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 20 "$@"; }

if [ "$WHAT" = quick ]; then
  exec "$BIN/python" -m pytest tests/unit
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
  { docker/engine.sh start && { [ "$WHAT" = docker ] || install_browser; }; } >/dev/null 2>&1 &
fi
"$BIN/kafkalab" fetch --all
wait
tools=$("$BIN/python" -c 'from kafkalab.distribution import tools_dir; print(tools_dir())')
export PATH="$tools:$PATH"

left_out_marks=""
status=0

if prepare_docker; then
  docker_ready=true
else
  docker_ready=false
  left_out_marks="not docker"
fi

if [ "$WHAT" = docker ]; then
  $docker_ready || fail "$LEFT_OUT"
  KAFKALAB_BACKEND=docker run_pytest --nbval notebooks solutions || status=$?
  KAFKALAB_BACKEND=docker run_pytest -m docker tests || status=$?
  exit $status
fi

if ! prepare_browser; then
  left_out_marks="${left_out_marks:+$left_out_marks and }not browser"
fi

if $docker_ready; then
  say "chapters on Docker"
  mapfile -t chapters < <(ls -r notebooks/*.ipynb) # the later ones are longer
  KAFKALAB_BACKEND=docker run_pytest --nbval "${chapters[@]}" || status=$?
  say "everything else, notebooks on local processes"
fi
export KAFKALAB_LEFT_OUT="$LEFT_OUT" # said before the summary line
KAFKALAB_BACKEND=local run_pytest --nbval ${left_out_marks:+-m "$left_out_marks"} tests notebooks solutions || status=$?
exit $status
