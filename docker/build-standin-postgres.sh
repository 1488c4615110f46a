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

# shellcheck source=docker/standin.sh
source "$(dirname "${BASH_SOURCE[0]}")/standin.sh"

IMAGE=postgres:18

# One hash over all that goes into the image.
inputs_hash() {
  {
    label "$base" kafkalab.standin.inputs
    (cd "$programs" && sha256sum bin/postgres bin/initdb)
    (cd "$HERE" && sha256sum build-standin-postgres.sh standin.sh standin-postgres/*)
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
  build_image "$IMAGE" "$wanted" "$context" --build-arg "base=$base"
}

[ $# -eq 2 ] || fail "usage: build-standin-postgres.sh BASE PROGRAMS"
base=$1 programs=$2
[ -x "$programs/bin/postgres" ] || fail "no programs of PostgreSQL in $programs"

wanted=$(inputs_hash)
have_image "$IMAGE" "$wanted" && exit
[ "$(label "$base" kafkalab.standin)" = 1 ] || fail "no registry answers, and $base is no stand-in to build $IMAGE from"
say "no registry answers; building a stand-in for $IMAGE"
build_standin
