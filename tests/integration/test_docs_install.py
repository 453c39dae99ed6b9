"""docs/install.md, as a new user copies it: each command in order, on a real server."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import documents

GUIDE = "install.md"
ROOT = Path(__file__).parents[2]
RUN = (
    "python3 -m venv build/environment",  # these four in test_wheel.py
    "python3 -m venv /opt/pg-mdistinct",
    "runuser -u postgres -- createdb",
    "/opt/pg-mdistinct/bin/pg-mdistinct server start",
    "docker run",
    "docker exec mdistinct createdb",
    "docker stop",
    "docker rm",
    "docker compose",
    "from pg_mdistinct.testing import hospital",
    "from pg_mdistinct import Client",
    "from pg_mdistinct.testing import MdistinctContainer",
)
LEFT_OUT = {
    "make demo": "test_demo.py plays it",
    "apt-get": "it is for a machine that lacks them, which could not run this test",
    "pg_mdistinct 0": "test_wheel.py compares it with what the installer says",
    "docker build --file docker/Dockerfile --tag pg-mdistinct:15": "built this image already",
    "docker build --file docker/Dockerfile --tag pg-mdistinct:17": "built this image already",
    "pip install": "the environment of the tests has it",
}


def shell(text: str, **variables: str) -> str:
    """Runs commands in the root of the checkout; returns what they say."""
    done = subprocess.run(
        ["bash", "-euc", text],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def block(beginning: str) -> documents.Block:
    return documents.block(GUIDE, beginning)


def test_every_block_is_run_or_left_out_for_a_reason() -> None:
    for found in documents.blocks(GUIDE):
        claims = [start for start in (*RUN, *LEFT_OUT) if found.text.startswith(start)]
        assert len(claims) == 1, found.text
    for start in (*RUN, *LEFT_OUT):
        assert block(start).text.startswith(start)


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a container and a volume of the test's own."""
    chosen = f"mdistinct-{secrets.token_hex(4)}"
    yield chosen
    subprocess.run(["docker", "rm", "--force", "--volumes", chosen], capture_output=True)
    subprocess.run(["docker", "volume", "rm", chosen], capture_output=True)


@pytest.mark.image
def test_the_image(name: str, pytestconfig: pytest.Config) -> None:
    own = {r"(?<= )mdistinct(?=[\s:])": name}
    here = {"127.0.0.1:5432:5432": "127.0.0.1::5432", "pg-mdistinct:15": pytestconfig.option.image}
    assert "(0 rows)" in shell(block("docker run").replaced({**own, **here}))
    assert "CREATE EXTENSION" in shell(block("docker exec mdistinct createdb").replaced(own))
    shell(block("docker stop").replaced(own))
    shell(block("docker rm").replaced(own))
    for kind in ("container", "volume"):
        left = shell(f"docker {kind} ls --quiet --filter name={name}")
        assert left == ""


def compose() -> list[str]:
    """The command line of compose, of either generation."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if not shutil.which(command[0]):
            continue
        asked = subprocess.run([*command, "version"], capture_output=True)
        if asked.returncode == 0:
            return command
    pytest.skip("there is neither docker compose nor docker-compose")


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


@pytest.mark.image
def test_compose(pytestconfig: pytest.Config) -> None:
    if pytestconfig.option.image != "pg-mdistinct:15":
        pytest.skip("compose.yaml is about pg-mdistinct:15")
    command = " ".join(compose())
    variables = {"COMPOSE_PROJECT_NAME": f"mdistinct{secrets.token_hex(4)}", "PORT": free_port()}
    # Nobody sits at a terminal here.
    changes = {"docker compose": command, r"exec db": "exec -T db"}
    if command == "docker-compose":
        changes[" --wait"] = ""
    up, look, down = block("docker compose").replaced(changes).split(f"\n{command} ")
    try:
        shell(up, **variables)
        wait_for_health(command, variables)
        seen = shell(f"{command} {look}", **variables)
        assert "Dyspepsia" in seen
        assert "0 2 * * *" in seen
    finally:
        shell(f"{command} {down.strip()} --volumes", **variables)


def wait_for_health(command: str, variables: dict[str, str]) -> None:
    deadline = time.monotonic() + 120
    (container,) = shell(
        f"{command} --file docker/compose.yaml ps --quiet", **variables
    ).splitlines()
    while True:
        (state,) = json.loads(shell(f"docker inspect {container}"))
        if state["State"]["Health"]["Status"] == "healthy":
            return
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.image
def test_fixtures_for_users(
    pytester: pytest.Pytester, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(block("from pg_mdistinct.testing import hospital").text)
    test = block("from pg_mdistinct import Client")
    # Twice: each test has a database of its own.
    pytester.makepyfile(test_mine=test.text, test_again=test.text)
    monkeypatch.setenv("PG_MDISTINCT_IMAGE", pytestconfig.option.image)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.image
def test_a_container_without_pytest(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    script = block("from pg_mdistinct.testing import MdistinctContainer")
    program = tmp_path / "program.py"
    program.write_text(script.replaced({"pg-mdistinct:17": pytestconfig.option.image}))
    assert "dbname=mdistinct" in shell(f"{sys.executable} {program}", PYTHONPATH=str(ROOT))
