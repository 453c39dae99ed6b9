#!/usr/bin/env bash
# The whole suite: on this machine's PostgreSQL, and where a Docker engine answers on the images of
# PostgreSQL 15 and 17 as well, which are built meanwhile. Arguments, options only, go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly MAJORS=(15 17)
# The image of 15 has this machine's PostgreSQL, so the integration tests tell what is its own.
declare -rA ON_IMAGE=(
    [15]='tests/integration tests/docs'
    [17]='tests/integration tests/docs tests/security tests/lifecycle tests/concurrency tests/faults'
)
declare -A builds=()

say() { printf '==> %s\n' "$*"; }
log_of() { echo "$logs/image-$1.log"; }

start_builds() {
    local major
    logs=$(mktemp --directory)
    trap clean_up EXIT
    for major in "${MAJORS[@]}"; do
        say "Building pg-mdistinct:$major in the background"
        # In a session of its own, so that it can be ended with all that it started.
        setsid scripts/docker-image.sh "$major" >"$(log_of "$major")" 2>&1 &
        builds[$major]=$!
    done
}

clean_up() {
    local process
    for process in "${builds[@]}"; do
        kill -- "-$process" 2>/dev/null || true
    done
    rm -rf "$logs"
}

finish_build() {
    local status=0
    wait "${builds[$1]}" || status=$?
    unset "builds[$1]"
    if ((status)); then
        tail -n 40 "$(log_of "$1")"
        say "pg-mdistinct:$1 could not be built"
        exit "$status"
    fi
}

if docker info >/dev/null 2>&1; then
    start_builds
fi
# A failure does not keep the others from running: it is told in the end.
failed=()
.venv/bin/pytest "$@" || failed+=("this machine's PostgreSQL")
if [[ -z ${logs:-} ]]; then
    say 'No Docker engine answers: the suite did NOT run on the images.'
    exit ${#failed[@]}
fi
for major in "${MAJORS[@]}"; do
    finish_build "$major"
    say "On pg-mdistinct:$major: ${ON_IMAGE[$major]}"
    # shellcheck disable=SC2086  # several folders
    .venv/bin/pytest --server=image --image="pg-mdistinct:$major" "$@" \
        ${ON_IMAGE[$major]} || failed+=("pg-mdistinct:$major")
done
if ((${#failed[@]})); then
    say "Failed on ${failed[*]}"
    exit 1
fi
