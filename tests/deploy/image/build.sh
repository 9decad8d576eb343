#!/usr/bin/env bash
# Build the real Dockerfile without a container engine and without a registry, for `make image-check`.
#
#   build.sh                 build and run the serving image
#   build.sh export PYTHON   build and run the image of the stage `export`. PYTHON is the Python of the tests.
#
# The script needs root, buildah, debootstrap and binutils (apt-get install). It replaces the official base image by an
# image with the same Debian release and this machine's Python, stripped like the official Python. The packages of the
# two base images differ in patch levels. The output also shows the size of the base image.
#
#   PYTHON        a Python of the base image's minor version (default python3)
#   BUILD_FLAGS   further flags of `buildah build`, e.g. --volume for the certificates of a proxy
set -euo pipefail
cd "$(dirname "$0")/../../.."

store=$PWD/build/image
mkdir -p "$store"
export BUILDAH_ISOLATION=chroot
buildah=(buildah --root "$store/storage" --runroot "$store/run")
base=$(sed -n 's/^FROM \(python:\S*\) AS python$/\1/p' Dockerfile)
version=${base#python:} release=${base##*-}
version=${version%%-*}

# libraries of the official image's Python, and further Debian packages of the official image
libraries=(ca-certificates libbz2-1.0 libffi8 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0 libssl3t64 libuuid1
    netbase tzdata zlib1g)

clean_up() {
    "${buildah[@]}" rm --all > /dev/null
    umount "$store/storage/overlay" 2> /dev/null || true
}
trap clean_up EXIT

make_base() {
    local root prefix
    root=$(mktemp -d "$store/base.XXXXXX")
    trap 'rm -rf "$root"' RETURN
    prefix=$("${PYTHON:-python3}" -c "import sys
assert sys.version_info[:2] == tuple(map(int, '$version'.split('.'))), 'PYTHON must be $version'
print(sys.base_prefix)")
    debootstrap --variant=minbase --include="$(IFS=,; echo "${libraries[*]}")" \
        "$release" "$root" > "$store/debootstrap.log"
    rm -rf "$root"/usr/share/{doc,man,info,locale} "$root"/var/{lib/apt/lists,cache/apt,log}/*
    tar --create --directory "$prefix" --exclude=__pycache__ --exclude='*.a' --exclude='*/test' --exclude='*/tests' \
        --exclude=idle_test --exclude='site-packages/*' \
        bin/python bin/python3 "bin/python$version" include lib | tar --extract --directory "$root/usr/local"
    find "$root/usr/local" -name '*.so*' -type f -exec strip --strip-unneeded {} +
    chroot "$root" ldconfig
    chroot "$root" env --ignore-environment PATH=/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 \
        python3 -m ensurepip > "$store/ensurepip.log"
    find "$root/usr/local" -name __pycache__ -prune -exec rm -r {} +
    ln --symbolic pip3 "$root/usr/local/bin/pip"
    local container
    container=$("${buildah[@]}" from scratch)
    "${buildah[@]}" add --quiet "$container" "$root" /
    "${buildah[@]}" config --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    "${buildah[@]}" commit --quiet --rm "$container" "docker.io/library/$base"
}

"${buildah[@]}" inspect --type image "docker.io/library/$base" > /dev/null 2>&1 || make_base
if [ "${1:-}" = export ]; then stage=(--target export) image=fillmask-export:check; else stage=() image=fillmask:check; fi
# shellcheck disable=SC2086 # several flags
"${buildah[@]}" build --layers --pull-never --format docker ${BUILD_FLAGS:-} "${stage[@]}" --tag "$image" .
container=$("${buildah[@]}" from "$image")
if [ "${1:-}" = export ]; then
    "$2" -m tests.deploy.image.export "$container" "${buildah[@]}"
else
    "${buildah[@]}" inspect --type image "$image" > "$store/inspect.json"
    root=$("${buildah[@]}" mount "$container")
    "${PYTHON:-python3}" -m tests.deploy.image "$store/inspect.json" "$root"
fi
