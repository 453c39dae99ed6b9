#!/usr/bin/env bash
# Makes a Docker engine available: where none answers, root installs Debian's, with compose, and
# starts it. Its process number is the last line; an engine that ran already is left alone, and
# nothing printed.
set -euo pipefail

readonly LOG=${DOCKER_ENGINE_LOG:-/var/log/pg-mdistinct-dockerd.log}

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

answers() { docker info >/dev/null 2>&1; }

has_compose() { docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null; }

missing_packages() {
    command -v dockerd >/dev/null || echo docker.io
    command -v iptables >/dev/null || echo iptables
    has_compose || echo docker-compose
}

install_engine() {
    local packages
    packages=$(echo $(missing_packages))
    [[ -z $packages ]] && return
    command -v apt-get >/dev/null || fail "there is no apt-get to install $packages"
    say "Installing Debian packages: $packages"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --no-install-recommends $packages >/dev/null
}

# Prints the process number of the engine that it starts, if that one comes to answer.
start_engine() {
    local engine
    say "Starting a Docker engine with storage driver $1; log: $LOG"
    setsid dockerd --storage-driver "$1" >>"$LOG" 2>&1 </dev/null &
    engine=$!
    for _ in {1..60}; do
        if answers; then
            echo "$engine"
            return
        fi
        kill -0 "$engine" 2>/dev/null || return 1
        sleep 0.5
    done
    kill "$engine"
    return 1
}

answers && exit
((EUID == 0)) || fail 'no Docker engine answers, and only root can start one'
install_engine
answers && exit
# vfs works everywhere, but copies the whole image for every layer and container.
start_engine overlay2 || start_engine vfs || fail "the Docker engine does not start; see $LOG"
