"""An sdist, the wheel that it gives, and a machine that has nothing but this wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import psycopg
import pytest

import pg_mdistinct
from pg_mdistinct import resources

pytestmark = [pytest.mark.slow, pytest.mark.embedded]
ROOT = Path(__file__).parents[2]
VERSION = pg_mdistinct.__version__


def run(*command: str | Path, cwd: Path) -> str:
    # Nothing of this environment may help: neither its packages nor its checkout.
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PG", "VIRT"))}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, target: Path) -> Path:
    hatchling = (sys.executable, "-m", "hatchling", "build", "--target", kind)
    run(*hatchling, "--directory", target, cwd=source)
    (made,) = target.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the sdist, so that both are complete or neither."""
    folder = tmp_path_factory.mktemp("built")
    with tarfile.open(build("sdist", ROOT, folder / "sdist")) as sdist:
        sdist.extractall(folder, filter="data")
    return build("wheel", folder / f"pg_mdistinct-{VERSION}", folder / "wheel")


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the wheel was installed, with its requirements."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return programs


def test_wheel_carries_all_resources(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in (resources.sql_dir(), resources.migrations_dir()):
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(folder.parent).as_posix()
                assert f"pg_mdistinct/_resources/{name}" in names
    assert "pg_mdistinct/py.typed" in names


def test_wheel_alone_is_enough(programs: Path, tmp_path: Path) -> None:
    def command(*words: str) -> str:
        return run(programs / "pg-mdistinct", *words, cwd=tmp_path)

    home = f"--home={tmp_path / 'home'}"
    dsn = command("server", "start", "--throwaway", home).splitlines()[-1]
    try:
        assert f"pg_mdistinct {VERSION} is installed" in command("install", "--dsn", dsn)
        with psycopg.connect(dsn) as connection:
            connection.execute("SELECT * FROM mdistinct_published.releases")
            connection.execute("SELECT mdistinct.warm_up()")
    finally:
        command("server", "stop", home)
