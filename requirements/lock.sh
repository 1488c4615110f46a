#!/usr/bin/env bash
# Writes the locks anew from pyproject.toml: names, versions and hashes, for every platform and Python 3.11-3.13. They hold what
# the pipeline needs, and not the pipeline, which is installed from its folder.
set -euo pipefail
unset CDPATH  # with it, cd may go elsewhere, and prints where
cd "$(dirname "$0")/.."
lock() { uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
         --no-emit-find-links --no-emit-package truck-pipeline --custom-compile-command requirements/lock.sh "$@"; }
lock pyproject.toml                -o requirements/course.lock
lock pyproject.toml --extra test -c requirements/course.lock -o requirements/test.lock
lock requirements/build.in         -o requirements/build.lock
lock requirements/installer.in     -o requirements/installer.lock
