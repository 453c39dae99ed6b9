"""An sdist, the wheel that it gives, and a machine that has nothing but this wheel.

The commands are those of docs/install.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import pg_mdistinct
from pg_mdistinct import resources
from tests import documents
from tests.fix_server import Server

pytestmark = [pytest.mark.slow, pytest.mark.embedded]
ROOT = Path(__file__).parents[2]
VERSION = pg_mdistinct.__version__


@dataclass(frozen=True)
class Machine:
    """A checkout, and the environment that the guide makes beside it."""

    checkout: Path
    environment: Path

    def copy(self, beginning: str, changes: dict[str, str] | None = None, **variables: str) -> str:
        """Runs a block of the guide as it stands, but for the given changes."""
        here = {"/opt/pg-mdistinct": str(self.environment)} if "/opt" in beginning else {}
        text = documents.block("install.md", beginning).replaced({**here, **(changes or {})})
        return run("bash", "-euc", text, cwd=self.checkout, **variables)


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    # Nothing of this environment may help: neither its packages nor its checkout.
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PG", "VIRT"))}
    # Compiling what pip unpacks would take longer than all the rest.
    own["PIP_NO_COMPILE"] = "1"
    done = subprocess.run(
        command, cwd=cwd, env={**own, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The checkout is what the sdist holds, so that sdist and wheel are complete or neither."""
    folder = tmp_path_factory.mktemp("machine")
    hatchling = (sys.executable, "-m", "hatchling", "build", "--target", "sdist")
    run(*hatchling, "--directory", folder / "sdist", cwd=ROOT)
    (packed,) = (folder / "sdist").iterdir()
    with tarfile.open(packed) as sdist:
        sdist.extractall(folder, filter="data")
    made = Machine(folder / f"pg_mdistinct-{VERSION}", folder / "environment")
    made.copy("python3 -m venv build/environment")
    made.copy("python3 -m venv /opt/pg-mdistinct")
    return made


def test_wheel_carries_all_resources(machine: Machine) -> None:
    (wheel,) = (machine.checkout / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in (resources.sql_dir(), resources.migrations_dir()):
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(folder.parent).as_posix()
                assert f"pg_mdistinct/_resources/{name}" in names
    assert "pg_mdistinct/py.typed" in names


def test_wheel_alone_is_enough(machine: Machine, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = machine.copy(
        "/opt/pg-mdistinct/bin/pg-mdistinct server start", PG_MDISTINCT_HOME=str(home)
    )
    assert f"pg_mdistinct {VERSION} is installed in mdistinct" in said


@pytest.mark.usefixtures("template")
def test_the_plugin_comes_into_a_server_that_is_there(machine: Machine, server: Server) -> None:
    # With the template the server's code is there and compiled.
    place = conninfo_to_dict(server.dsn("mydatabase"))
    variables = {
        f"PG{name.upper()}": str(place[name]) for name in ("host", "port", "user") if name in place
    }
    try:
        said = machine.copy(
            "runuser -u postgres -- createdb",
            {"runuser -u postgres -- ": "", "/opt/pg-mdistinct": str(machine.environment)},
            **variables,
        )
        (last,) = documents.block("install.md", "pg_mdistinct 0").text.splitlines()
        assert said.splitlines()[-1] == last
        with psycopg.connect(server.dsn("mydatabase")) as connection:
            assert connection.execute("SELECT * FROM mdistinct_published.releases").fetchall() == []
    finally:
        with server.maintenance() as connection:
            name = sql.Identifier("mydatabase")
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
