#!/usr/bin/env bash
# Resolve the newest versions in fresh environments and write names and versions to constraints/.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for kind in serve dev native kserve ray spark; do
    case "$kind" in
        serve) packages=(".[parquet]") ;; # the extra parquet belongs to the serving install
        dev) packages=(".[dev]") ;;
        native) packages=(scikit-build-core cmake ninja ziglang) ;; # the build of native/
        kserve) packages=(kserve) ;; # the client that the tests run in its own environment
        ray) packages=(".[parquet]" "ray[data]") ;; # the environments of make scale-check
        spark) packages=(".[parquet]" pandas pyspark) ;;
    esac
    "${PYTHON:-python3}" -m venv "$scratch/$kind"
    # a person sets the version of torch, because its newest release may have no CPU-only build for this platform
    "$scratch/$kind/bin/pip" install --quiet "${packages[@]}" -c <(grep -s '^torch==' constraints/dev.txt || true)
    "$scratch/$kind/bin/pip" freeze --exclude fillmask | sed 's/+cpu$//' > "constraints/$kind.txt"
done
