#!/usr/bin/env bash
# Sees to it that the image is there from which PostgreSQL runs on Docker.
#
#   build-standin-postgres.sh BASE PROGRAMS
#
# Where a registry answers, that is the official image. Where none does, one is built under the same name that takes the
# same environment: the programs in the folder PROGRAMS of a Python package, on the system of BASE, the stand-in that
# build-standin-image.sh built. The label kafkalab.standin=1 tells the two apart. A second call does nothing unless what goes
# into the image has changed.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
IMAGE=postgres:18
REGISTRY_SECONDS=10

say() { printf 'image: %s\n' "$*"; }

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

label() { docker image inspect --format "{{index .Config.Labels \"$2\"}}" "$1" 2>/dev/null || true; }

# One hash over all that goes into the image.
inputs_hash() {
  {
    label "$base" kafkalab.standin.inputs
    (cd "$programs" && sha256sum bin/postgres bin/initdb)
    (cd "$HERE" && sha256sum build-standin-postgres.sh standin-postgres/*)
  } | sha256sum | cut -d' ' -f1
}

build_standin() {
  # Not `local`: the trap runs when the function is left.
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  cp "$HERE"/standin-postgres/* "$context/"
  mkdir -p "$context/package/postgresql"
  cp -RL "$programs" "$context/package/postgresql/18"
  cp -RL "$(dirname "$programs").libs" "$context/package/" # where the programs look for it, seen from their own folder
  # BuildKit needs an extra component that a plain engine lacks; no step needs a network.
  DOCKER_BUILDKIT=0 docker build --network=none --no-cache --force-rm --quiet \
    --build-arg "base=$base" --build-arg "inputs=$wanted" --tag "$IMAGE" "$context" >/dev/null
}

[ $# -eq 2 ] || fail "usage: build-standin-postgres.sh BASE PROGRAMS"
base=$1 programs=$2
[ -x "$programs/bin/postgres" ] || fail "no programs of PostgreSQL in $programs"

wanted=$(inputs_hash)
if docker image inspect "$IMAGE" >/dev/null 2>&1; then
  case "$(label "$IMAGE" kafkalab.standin):$(label "$IMAGE" kafkalab.standin.inputs)" in
    "1:$wanted") say "the stand-in for $IMAGE is up to date"; exit ;;
    1:*) ;;
    *) say "the official $IMAGE is there"; exit ;;
  esac
fi
if timeout "$REGISTRY_SECONDS" docker manifest inspect "$IMAGE" >/dev/null 2>&1; then
  say "pulling the official $IMAGE"
  docker pull --quiet "$IMAGE"
  exit
fi
[ "$(label "$base" kafkalab.standin)" = 1 ] || fail "no registry answers, and $base is no stand-in to build $IMAGE from"
say "no registry answers; building a stand-in for $IMAGE"
build_standin
say "built $(docker image inspect --format '{{.Size}}' "$IMAGE" | awk '{printf "%d MB", $1 / 1e6}')"
