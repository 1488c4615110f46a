#!/usr/bin/env bash
# Sees to it that the image the course runs Kafka from is there.
#
#   build-standin-image.sh JARS JAVA_HOME
#
# Where a registry answers, that is the official image. Where none does, one is built under the same
# name that takes the same environment: the jars in the folder JARS on the Java in JAVA_HOME, with a
# static shell and this machine's C library. The jars tell which version of Kafka it is. The label kafkalab.standin=1 tells the two apart.
# A second call does nothing unless something that goes into the image has changed.
set -euo pipefail

# shellcheck source=docker/standin.sh
source "$(dirname "${BASH_SOURCE[0]}")/standin.sh"

CLASSES=$HERE/../src/kafkalab/distribution/recorded/kafka.txt.gz
# The class-data archive is bound to the jars' times, and a rebuild should give the same files.
FILE_TIME=@1767225600

# One hash over all that goes into the image; names count as well as contents.
inputs_hash() {
  {
    (cd "$jars" && sha256sum -- *.jar)
    (cd "$java" && sha256sum release lib/modules lib/server/libjvm.so)
    (cd "$HERE" && find build-standin-image.sh standin.sh standin -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
    sha256sum <"$CLASSES"
  } | sha256sum | cut -d' ' -f1
}

install_static_shell() {
  [ -x /bin/bash-static ] && [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
    fail "needs the packages busybox-static and bash-static, which only root can install, with apt"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends busybox-static bash-static >/dev/null
}

# Copies whole what Java and the native parts of Kafka's compression libraries load. They are named,
# not read off with ldd: those parts are unpacked from their jars while the broker runs.
copy_c_library() {
  local names='ld-linux[^ ]*|lib(c|m|pthread|dl|rt|resolv|nss_files|nss_dns|z|stdc\+\+|gcc_s)' path
  mkdir -p "$rootfs/lib64" "$rootfs/lib/$(uname -m)-linux-gnu"
  ldconfig -p | grep -E "^\s+($names)\.so\.[0-9]+ " | awk '{print $NF}' | sort -u | while read -r path; do
    # Under the name it is asked for by, in the folder where the loader looks.
    cp -L "$path" "$rootfs/lib/$(uname -m)-linux-gnu/"
  done
  for path in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do
    [ -e "$path" ] && cp -L "$path" "$rootfs${path%/*}/"
  done
  return 0
}

fill_rootfs() {
  local applet tool
  mkdir -p "$rootfs"/{bin,usr/bin,tmp,opt/kafka/{bin,config,libs},opt/java,home/appuser} \
    "$rootfs"/{etc/kafka/secrets,var/lib/kafka/data,mnt/shared/config}
  chmod 1777 "$rootfs/tmp"

  cp /bin/busybox "$rootfs/bin/busybox"
  cp /bin/bash-static "$rootfs/bin/bash"
  for applet in $(/bin/busybox --list | grep -vx -e busybox -e bash); do
    ln -s busybox "$rootfs/bin/$applet"
  done
  ln -s /bin/env "$rootfs/usr/bin/env"
  copy_c_library

  cp -RL "$java"/{bin,conf,lib,release} "$rootfs/opt/java/"
  cp "$jars"/*.jar "$rootfs/opt/kafka/libs/"
  cp -R "$HERE"/standin/image/. "$rootfs/"
  cp "$CLASSES" "$rootfs/etc/kafka/docker/classes.txt.gz"
  cp "$rootfs"/etc/kafka/docker/{server.properties,log4j2.yaml,tools-log4j2.yaml} "$rootfs/opt/kafka/config/"
  while read -r tool _; do
    ln -s kafka-tool "$rootfs/opt/kafka/bin/$tool.sh"
  done <"$rootfs/opt/kafka/bin/tools"
  find "$rootfs" -exec touch --no-dereference --date="$FILE_TIME" {} +
}

build_standin() {
  # Not `local`: the trap runs when the function is left.
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  rootfs="$context/rootfs"
  install_static_shell
  fill_rootfs
  cp "$HERE/standin/Dockerfile" "$context/"
  build_image "$IMAGE" "$wanted" "$context"
}

[ $# -eq 2 ] || fail "usage: build-standin-image.sh JARS JAVA_HOME"
jars=$1 java=$2
[ -n "$(find "$jars" -name '*.jar' -print -quit)" ] || fail "no jars in $jars"
version=$(basename "$jars"/kafka_2.13-*.jar .jar)
IMAGE=apache/kafka:${version#kafka_2.13-}
[ -x "$java/bin/java" ] || fail "no Java in $java"
docker info >/dev/null 2>&1 || fail "no Docker engine answers; docker/engine.sh start sees to one"

wanted=$(inputs_hash)
have_image "$IMAGE" "$wanted" && exit
say "no registry answers; building a stand-in for $IMAGE"
build_standin
