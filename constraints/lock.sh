#!/usr/bin/env bash
# Resolve the newest versions in fresh environments and write names and versions to constraints/.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for kind in serve dev native kserve clients; do
    case "$kind" in
        serve) packages=(".[parquet]") ;; # the extra parquet belongs to the serving install
        dev) packages=(".[otel,parquet,train]" --group dev) ;;
        native) packages=(scikit-build-core cmake ninja ziglang) ;; # the build of native/
        kserve) packages=(kserve) ;; # the client that the tests run in its own environment
        clients) packages=(haystack-ai cohere-haystack jina-haystack huggingface-api-haystack langchain-cohere litellm
            llama-index-postprocessor-{cohere,jinaai,tei}-rerank) ;; # of rerankers, in their own environment, too
    esac
    "${PYTHON:-python3}" -m venv "$scratch/$kind"
    "$scratch/$kind/bin/pip" install --quiet pip==26.3 # for --group
    # a person sets the version of torch, because its newest release may have no CPU-only build for this platform
    "$scratch/$kind/bin/pip" install --quiet "${packages[@]}" -c <(grep -s '^torch==' constraints/dev.txt || true)
    "$scratch/$kind/bin/pip" freeze --exclude fillmask | sed 's/+cpu$//' > "constraints/$kind.txt"
done
