#!/bin/bash
# Starts PostgreSQL; on its first start makes the data folder, with the plugin in its default
# database. Variables and init scripts are those of the official postgres image:
#   POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB, POSTGRES_INITDB_ARGS (each also as ..._FILE),
#   POSTGRES_HOST_AUTH_METHOD, PGDATA; /docker-entrypoint-initdb.d/*.sh, *.sql, *.sql.gz
set -Eeuo pipefail
shopt -s nullglob

readonly LIBRARY=/usr/local/lib/pg_mdistinct
readonly CODE=/var/lib/postgresql/code
readonly SCRIPTS=/docker-entrypoint-initdb.d
# In the data folder as long as its first start is not complete.
readonly UNFINISHED=pg_mdistinct.unfinished

say() { printf 'pg_mdistinct: %s\n' "$*"; }
fail() { printf 'pg_mdistinct: %s\n' "$*" >&2; exit 1; }

# Sets a variable to its value, the content of the file that NAME_FILE names, or the default.
file_env() {
    local name=$1 file=${1}_FILE value=${2:-}
    [[ -n ${!name:-} && -n ${!file:-} ]] && fail "both $name and $file are set; set one of them"
    if [[ -n ${!name:-} ]]; then
        value=${!name}
    elif [[ -n ${!file:-} ]]; then
        value=$(<"${!file}")
    fi
    printf -v "$name" %s "$value"
    export "${name?}"
    unset "$file"
}

read_environment() {
    file_env POSTGRES_PASSWORD
    file_env POSTGRES_USER postgres
    file_env POSTGRES_DB "$POSTGRES_USER"
    file_env POSTGRES_INITDB_ARGS
    : "${POSTGRES_HOST_AUTH_METHOD:=scram-sha-256}"
    if [[ -z $POSTGRES_PASSWORD && $POSTGRES_HOST_AUTH_METHOD != trust ]]; then
        fail 'there is no password for the superuser: set POSTGRES_PASSWORD' \
            '(or POSTGRES_HOST_AUTH_METHOD=trust, which lets everybody in)'
    fi
}

# Root, if somebody insists on it, hands the data folder over and steps down.
step_down() {
    mkdir -p "$PGDATA"
    chown -R postgres:postgres "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$0" "$@"
}

# What the discarding of a failed first start may delete must not be anybody else's.
make_folder() {
    { mkdir -p "$PGDATA" && chmod 0700 "$PGDATA"; } ||
        fail "$PGDATA is not writable for user $(id -u): change its owner"
    [[ -z $(ls --almost-all "$PGDATA") ]] || fail "$PGDATA is neither empty nor a data folder"
}

make_data() {
    # The arguments are words, as in the official image.
    # shellcheck disable=SC2086
    initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") \
        --auth-local=trust --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
    touch "$PGDATA/$UNFINISHED"
    printf '\nhost all all all %s\n' "$POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"
    cat >>"$PGDATA/postgresql.conf" <<-END

	listen_addresses = '*'
	shared_preload_libraries = 'pg_cron'
	cron.database_name = '${POSTGRES_DB//\'/\'\'}'
	cron.use_background_workers = on
	END
}

sql() { psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" "$@"; }

make_database() {
    [[ $POSTGRES_DB == postgres ]] && return
    sql --dbname=postgres --set=db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
}

install_plugin() {
    say "installing the plugin in $POSTGRES_DB"
    mkdir --mode=0700 "$PGDATA/pg_mdistinct"
    # With their times, by which Numba knows what it has compiled.
    cp -a "$CODE/." "$PGDATA/pg_mdistinct/"
    # The plugin opens pg_cron to its scheduler where it finds it.
    sql --dbname="$POSTGRES_DB" --command='CREATE EXTENSION pg_cron'
    PGUSER=$POSTGRES_USER PGDATABASE=$POSTGRES_DB PYTHONPATH=$LIBRARY \
        python3 -B -m pg_mdistinct.install.image install ''
}

run_scripts() {
    local file
    for file in "$SCRIPTS"/*; do
        say "running $file"
        case $file in
            *.sh) if [[ -x $file ]]; then "$file"; else . "$file"; fi ;;
            *.sql) sql --dbname="$POSTGRES_DB" --file="$file" ;;
            *.sql.gz) gunzip --stdout "$file" | sql --dbname="$POSTGRES_DB" ;;
            *) say "ignoring $file" ;;
        esac
    done
}

# Half of a data folder would be taken for a whole one.
discard() {
    local status=$?
    trap - EXIT
    printf 'pg_mdistinct: the first start failed; nothing of it is kept\n' >&2
    pg_ctl --silent stop --mode=immediate || true
    find "$PGDATA" -mindepth 1 -delete
    exit "$status"
}

initialize() {
    make_folder
    trap discard EXIT
    trap 'exit 143' TERM INT
    make_data
    # Nobody can connect over TCP until everything is there.
    pg_ctl --silent --wait start --options="-c listen_addresses=''"
    make_database
    install_plugin
    run_scripts
    pg_ctl --silent --wait stop --mode=fast
    rm "$PGDATA/$UNFINISHED"
    trap - EXIT TERM INT
    say 'the first start is complete'
}

# PostgreSQL takes SIGTERM for "wait until everybody has gone": a container is to stop now.
serve() {
    local server status=0
    "$@" &
    server=$!
    trap 'kill -INT $server' TERM INT
    trap 'kill -HUP $server' HUP
    # A signal ends the wait, not the server.
    while wait "$server" || status=$?; kill -0 "$server" 2>/dev/null; do status=0; done
    exit "$status"
}

[[ ${1:-} == -* ]] && set -- postgres "$@"
[[ ${1:-} == postgres ]] || exec "$@"
((EUID == 0)) && step_down "$@"
if [[ -e $PGDATA/$UNFINISHED ]]; then
    fail "the first start of $PGDATA was interrupted: delete what is in it, and start again"
elif [[ ! -s $PGDATA/PG_VERSION ]]; then
    read_environment
    initialize
fi
serve "$@"
