#!/usr/bin/env bash
# Resolve the newest versions in two fresh environments and write names and versions to constraints/.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for kind in serve dev; do
    # the extra parquet belongs to the serving install
    extra="[parquet]"
    [ "$kind" = dev ] && extra="[dev]"
    "${PYTHON:-python3}" -m venv "$scratch/$kind"
    # a person sets the version of torch, because its newest release may have no CPU-only build for this platform
    "$scratch/$kind/bin/pip" install --quiet ".$extra" -c <(grep -s '^torch==' constraints/dev.txt || true)
    "$scratch/$kind/bin/pip" freeze --exclude fillmask | sed 's/+cpu$//' > "constraints/$kind.txt"
done
