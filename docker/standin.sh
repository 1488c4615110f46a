# What the scripts have in common that build an image to stand in for an official one. They source it.

unset CDPATH  # with it, cd may go elsewhere, and prints where
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REGISTRY_SECONDS=10

say() { printf 'image: %s\n' "$*"; }

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

# label IMAGE NAME: what the label says; nothing, if there is no such image or label.
label() { docker image inspect --format "{{index .Config.Labels \"$2\"}}" "$1" 2>/dev/null || true; }

# have_image IMAGE WANTED: whether it is there, the official one or the stand-in with the inputs WANTED, or can be pulled.
have_image() {
  if docker image inspect "$1" >/dev/null 2>&1; then
    case "$(label "$1" kafkalab.standin):$(label "$1" kafkalab.standin.inputs)" in
      "1:$2") say "the stand-in for $1 is up to date"; return ;;
      1:*) ;;
      *) say "the official $1 is there"; return ;;
    esac
  fi
  timeout "$REGISTRY_SECONDS" docker manifest inspect "$1" >/dev/null 2>&1 || return 1
  say "pulling the official $1"
  docker pull --quiet "$1"
}

# build_image IMAGE INPUTS CONTEXT ARGUMENTS...: build a stand-in from a folder.
build_image() {
  local image=$1 inputs=$2 context=$3
  shift 3
  # BuildKit needs an extra component that a plain engine lacks; no step needs a network.
  DOCKER_BUILDKIT=0 docker build --network=none --no-cache --force-rm --quiet \
    --build-arg "inputs=$inputs" --tag "$image" "$@" "$context" >/dev/null
  # Earlier stages, and the image that had the name before.
  docker image prune --force --filter label=kafkalab.standin=1 >/dev/null
  say "built $(docker image inspect --format '{{.Size}}' "$image" | awk '{printf "%d MB", $1 / 1e6}')"
}
