#!/usr/bin/env bash
# Writes the locks anew from pyproject.toml, for every platform and Python 3.11-3.13. Versions in a lock stay where they can. The
# locks hold what the pipeline needs, and not the pipeline, which is installed from its folder.
set -euo pipefail
unset CDPATH  # with it, cd may go elsewhere, and prints where
cd "$(dirname "$0")/.."
lock() { uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
         --no-emit-package truck-pipeline --custom-compile-command requirements/lock.sh "$@"; }
lock --generate-hashes pyproject.toml                                        -o requirements/course.lock
lock --generate-hashes pyproject.toml --extra site --extra test -c requirements/course.lock -o requirements/test.lock
# The pipeline's image has Spark's own PySpark.
lock --generate-hashes pipeline/pyproject.toml --no-emit-package pyspark --no-emit-package py4j -c requirements/course.lock \
                                                                             -o pipeline/requirements.lock
lock --generate-hashes requirements/installer.in                             -o requirements/installer.lock
# conda hands its pip section to pip as one file, and pip takes no package from a folder (this one) in a file with hashes.
lock --no-annotate     pyproject.toml --extra site --extra test -c requirements/test.lock -o requirements/pins.txt
