#!/usr/bin/env bash
# Makes a Docker engine answer on a machine that has none, and takes it away again.
#
#   engine.sh start   nothing to do where `docker info` answers already; otherwise, as root
#                     with apt, installs the engine and runs it until `engine.sh stop`
#   engine.sh stop    ends the engine that `start` ran; never one that was there before
#
# The engine listens on its unix socket only.
set -euo pipefail

STATE="${TMPDIR:-/tmp}/kafkalab-engine-$(id -u)"
PID_FILE="$STATE/dockerd.pid"
LOG="$STATE/dockerd.log"
SOCKET=/var/run/docker.sock
START_SECONDS=60
STOP_SECONDS=60

say() { printf 'engine: %s\n' "$*"; }

fail() {
  printf 'engine: %s\n' "$*" >&2
  exit 1
}

answers() { docker info >/dev/null 2>&1; }

# Ended, whether or not its parent has taken notice.
gone() { [ ! -d "/proc/$1" ] || [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" = Z ]; }

# The pid of the engine that this script started, if that very process is still there: a pid file
# outlives an engine that was killed, and the number may by then be somebody else's.
own_pid() {
  local pid
  [ -s "$PID_FILE" ] || return 1
  pid=$(<"$PID_FILE")
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && ! gone "$pid" || return 1
  printf '%s\n' "$pid"
}

# wait_for SECONDS WHAT COMMAND...: polls until the command succeeds.
wait_for() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      tail -n 30 "$LOG" >&2 || true
      fail "$what: not so in time; the end of $LOG is above"
    fi
    sleep 0.1
  done
}

install_engine() {
  [ "$(id -u)" = 0 ] || fail "no Docker engine answers, and only root can install one here"
  command -v apt-get >/dev/null || fail "no Docker engine answers, and there is no apt-get to install one with"
  say "installing docker.io"
  export DEBIAN_FRONTEND=noninteractive
  # Runlevel 1 keeps the package from starting a service: `stop` must end what was started here.
  apt-get update -qq
  RUNLEVEL=1 apt-get install -y -qq --no-install-recommends docker.io iptables >/dev/null
}

answers_or_died() {
  answers && return 0
  gone "$1" || return 1
  tail -n 30 "$LOG" >&2
  fail "dockerd ended at its start; the end of $LOG is above"
}

start() {
  if answers; then
    say "an engine answers already ($(docker info --format '{{.ServerVersion}}')); nothing to do"
    return
  fi
  command -v dockerd >/dev/null || install_engine
  if answers; then
    say "the engine's package started it as a service"
    return
  fi
  [ "$(id -u)" = 0 ] || fail "dockerd is installed but does not answer, and only root can start it"
  mkdir -p "$STATE"
  # A session of its own, and no inherited file handles: it must outlive the shell that asked for it.
  setsid dockerd --host "unix://$SOCKET" --pidfile "$PID_FILE" </dev/null >"$LOG" 2>&1 &
  local pid=$!
  wait_for "$START_SECONDS" "docker info answers" answers_or_died "$pid"
  say "started ($(docker info --format '{{.ServerVersion}}')), pid $pid, log $LOG"
}

stop() {
  local pid children child
  if ! pid=$(own_pid); then
    say "no engine of ours runs; nothing to do"
    return
  fi
  children=$(ps -o pid= --ppid "$pid" || true)
  kill -TERM "$pid"
  wait_for "$STOP_SECONDS" "dockerd $pid has ended" gone "$pid"
  for child in $children; do
    wait_for "$STOP_SECONDS" "child $child of dockerd has ended" gone "$child"
  done
  say "stopped, pid $pid"
}

case "${1-}" in
  start) start ;;
  stop) stop ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
