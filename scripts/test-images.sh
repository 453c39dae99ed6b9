#!/usr/bin/env bash
# Runs the integration suite on the image of each PostgreSQL, where a Docker engine answers.
# Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! docker info >/dev/null 2>&1; then
    echo '==> No Docker engine answers: the integration suite did NOT run on the images.'
    exit
fi
for major in ${MAJORS:-15 17}; do
    scripts/docker-image.sh "$major"
    echo "==> The integration suite on pg-mdistinct:$major"
    .venv/bin/pytest --server=image --image="pg-mdistinct:$major" "$@" tests/integration
done
