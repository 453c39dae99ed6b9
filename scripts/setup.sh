#!/usr/bin/env bash
# Sets up what a fresh Debian machine lacks: Debian packages (as root) and the virtual environment.
# Says what it does, and is done in an instant when there is nothing left to do.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly OLDEST_POSTGRESQL=14
readonly STAMP=.venv/set-up
readonly CREATECLUSTER=/etc/postgresql-common/createcluster.conf

say() { printf '==> %s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

is_installed() {
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Prints the major versions of the PostgreSQL servers that are installed, newest first.
installed_servers() {
    local folder
    for folder in /usr/lib/postgresql/*/bin; do
        [[ -x $folder/postgres ]] && basename "$(dirname "$folder")"
    done | sort -rn | awk -v oldest=$OLDEST_POSTGRESQL '$1 >= oldest'
}

has_plpython() { [[ -e /usr/share/postgresql/$1/extension/plpython3u.control ]]; }

# A PostgreSQL that was not installed from Debian packages tells of itself through pg_config.
has_own_build() {
    local share
    share=$(pg_config --sharedir 2>/dev/null) && [[ -e $share/extension/plpython3u.control ]]
}

# The version that this release of Debian ships; the default is that of Debian 12, for a machine
# that has not fetched any package lists yet.
packaged_server() {
    local major
    major=$(apt-cache depends postgresql 2>/dev/null |
        sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
    echo "${major:-15}"
}

missing_server_packages() {
    local major newest=
    for major in $(installed_servers); do
        has_plpython "$major" && return
        newest=${newest:-$major}
    done
    has_own_build && return
    if [[ $newest ]]; then
        echo "postgresql-plpython3-$newest"
    else
        major=$(packaged_server)
        echo "postgresql-$major postgresql-plpython3-$major"
    fi
}

# Only scheduling needs pg_cron: it comes along where root can have it, and is not asked for else.
missing_scheduler_package() {
    local major
    for major in $(installed_servers) $(packaged_server); do
        has_plpython "$major" && break
    done
    [[ -e /usr/lib/postgresql/$major/lib/pg_cron.so ]] && return
    if ((EUID == 0)) && apt-cache show "postgresql-$major-cron" >/dev/null 2>&1; then
        echo "postgresql-$major-cron"
    fi
}

# PL/Python runs in Debian's own interpreter, which takes its packages from Debian as well.
missing_library_packages() {
    local package
    for package in python3-numpy python3-numba; do
        is_installed "$package" || echo "$package"
    done
}

makes_environments() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Prints the first Python on this machine that can make our virtual environment.
suitable_python() {
    local python
    for python in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
        if makes_environments "$python"; then
            command -v "$python"
            return
        fi
    done
    return 1
}

missing_venv_package() {
    is_environment_current || suitable_python >/dev/null || echo python3-venv
}

missing_packages() {
    echo $(missing_server_packages) $(missing_scheduler_package) $(missing_library_packages) \
        $(missing_venv_package)
}

# Installs packages without the cluster that Debian would create and start for a new PostgreSQL
# server: ours is a private one.
install_without_cluster() {
    apt-get install -qq --no-install-recommends postgresql-common >/dev/null
    cp -p "$CREATECLUSTER" "$CREATECLUSTER.pg-mdistinct"
    trap 'mv -f "$CREATECLUSTER.pg-mdistinct" "$CREATECLUSTER"' EXIT
    echo 'create_main_cluster = false' >>"$CREATECLUSTER"
    apt-get install -qq --no-install-recommends "$@" >/dev/null
    mv -f "$CREATECLUSTER.pg-mdistinct" "$CREATECLUSTER"
    trap - EXIT
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    say 'Fetching the lists of Debian packages'
    apt-get update -qq
    # Only now is it known which PostgreSQL this release of Debian has.
    local packages
    packages=$(missing_packages)
    say "Installing Debian packages: $packages"
    install_without_cluster $packages
}

ensure_packages() {
    local packages
    packages=$(missing_packages)
    [[ -z $packages ]] && return
    if ! command -v apt-get >/dev/null; then
        fail "pg_mdistinct needs what Debian packages as: $packages"
    fi
    if ((EUID != 0)); then
        fail "pg_mdistinct needs Debian packages; ask for: apt-get install $packages"
    fi
    install_packages
}

# What the virtual environment was made from. Its programs know the checkout by its path.
environment_recipe() { printf '%s\n%s\n' "$PWD" "$(cksum <pyproject.toml)"; }

environment_works() {
    [[ -r $STAMP && $(head -n 1 $STAMP) == "$PWD" ]] && .venv/bin/python -c '' 2>/dev/null
}

is_environment_current() {
    environment_works && [[ $(<$STAMP) == "$(environment_recipe)" ]]
}

make_environment() {
    local python
    python=$(suitable_python)
    say "Making the virtual environment .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
}

ensure_environment() {
    is_environment_current && return
    environment_works || make_environment
    say 'Installing Python packages into .venv (this may take some minutes)'
    .venv/bin/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
    environment_recipe >$STAMP
}

ensure_packages
ensure_environment
