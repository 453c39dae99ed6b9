#!/usr/bin/env bash
# Builds the image of one PostgreSQL: docker-image.sh 15 (Debian 12) or 17 (Debian 13).
# Where Debian's own image can neither be found nor pulled, root makes a base with debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

is_there() { docker image inspect "$1" >/dev/null 2>&1; }

# One at a time: both images may be built at once.
install_debootstrap() (
    flock 9
    command -v debootstrap >/dev/null && return
    say 'Installing the Debian package debootstrap'
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --no-install-recommends debootstrap >/dev/null
) 9>/run/lock/pg-mdistinct-debootstrap

make_base() {
    local suite=$1 folder
    ((EUID == 0)) || fail "debian:$suite-slim cannot be pulled, and only root can make a base"
    install_debootstrap
    say "Making a base of Debian $suite with debootstrap"
    folder=$(mktemp --directory)
    # Interrupted, debootstrap leaves the machine's own /proc mounted in there.
    trap 'rm -rf --one-file-system "$folder"' EXIT
    debootstrap --variant=minbase "$suite" "$folder" >&2
    rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/var/lib/apt/lists/*
    tar --directory "$folder" --create . | docker import - "pg-mdistinct-base:$suite" >/dev/null
    rm -rf --one-file-system "$folder"
    trap - EXIT
}

# Prints the name of an image to build on.
base_image() {
    local suite=$1
    if is_there "debian:$suite-slim" || docker pull --quiet "debian:$suite-slim" >/dev/null 2>&1; then
        echo "debian:$suite-slim"
        return
    fi
    is_there "pg-mdistinct-base:$suite" || make_base "$suite"
    echo "pg-mdistinct-base:$suite"
}

case ${1:-} in
    15) suite=bookworm ;;
    17) suite=trixie ;;
    *) fail 'usage: docker-image.sh 15|17' ;;
esac
base=$(base_image "$suite")
say "Building pg-mdistinct:$1 on $base"
# The host's network, since that of the engine need not have a way to Debian's packages.
docker build --network host --file docker/Dockerfile --build-arg "BASE_IMAGE=$base" \
    --tag "pg-mdistinct:$1" .
