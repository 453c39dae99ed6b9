"""The plugin in somebody else's alembic project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pg_mdistinct.install import sources
from tests.fix_database import Connection

INI = """\
[alembic]
script_location = %(here)s/migrations
"""
ENV = """\
import os

import psycopg
import sqlalchemy
from alembic import context

from pg_mdistinct.alembic import include_name

metadata = sqlalchemy.MetaData()
for name in ("wards", "patients"):
    sqlalchemy.Table(name, metadata, sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True))

engine = sqlalchemy.create_engine(
    "postgresql+psycopg://", creator=lambda: psycopg.connect(os.environ["DSN"])
)
with engine.connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        include_schemas=True,
        include_name=include_name,
    )
    with context.begin_transaction():
        context.run_migrations()
"""
REVISION = """\
from alembic import op
import sqlalchemy as sa
{imports}
revision = "{revision}"
down_revision = {down_revision!r}


def upgrade():
    {upgrade}
"""
TABLE = 'op.create_table("{}", sa.Column("id", sa.Integer, primary_key=True))'


class Project:
    """A folder as `alembic init` leaves it, and the command on it."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder, self._dsn = folder, dsn
        self._last: str | None = None
        self._versions = folder / "migrations" / "versions"
        self._versions.mkdir(parents=True)
        (folder / "alembic.ini").write_text(INI)
        (folder / "migrations" / "env.py").write_text(ENV)

    def revision(self, name: str, upgrade: str, imports: str = "") -> None:
        text = REVISION.format(
            imports=imports, revision=name, down_revision=self._last, upgrade=upgrade
        )
        (self._versions / f"{name}.py").write_text(text)
        self._last = name

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "alembic", *arguments],
            cwd=self._folder,
            env={"DSN": self._dsn, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
        )


@pytest.fixture
def project(tmp_path: Path, empty_dsn: str) -> Project:
    project = Project(tmp_path, empty_dsn)
    project.revision("first", TABLE.format("wards"))
    project.revision(
        "plugin",
        "upgrade_plugin(op.get_bind())",
        "from pg_mdistinct.alembic import upgrade_plugin",
    )
    return project


def test_the_plugin_comes_with_the_projects_own_revisions(project: Project, empty_dsn: str) -> None:
    # It runs after the plugin's, in the same transaction: alembic and settings are as before.
    project.revision("last", TABLE.format("patients"))
    done = project.run("upgrade", "head")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(empty_dsn) as db:
        assert versions(db, "public") == ["last"]
        assert versions(db, "mdistinct") == [sources.revisions()[-1]]
        assert db.execute("SELECT to_regclass('public.patients') IS NOT NULL").fetchone() == (True,)
        with pytest.raises(psycopg.errors.UndefinedObject, match="is not registered"):
            db.execute("SELECT mdistinct_publish('wards')")
    # Nothing of the plugin's is taken for something to drop, and nothing is left to do.
    checked = project.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert project.run("upgrade", "head").returncode == 0


def test_a_later_failure_takes_the_plugin_back(project: Project, empty_dsn: str) -> None:
    project.revision("last", 'op.execute("SELECT 1 / 0")')
    done = project.run("upgrade", "head")
    assert done.returncode != 0
    assert "division by zero" in done.stderr
    with psycopg.connect(empty_dsn) as db:
        row = db.execute("SELECT to_regclass('wards'), to_regnamespace('mdistinct')").fetchone()
        assert row == (None, None)


def versions(db: Connection, schema: str) -> list[str]:
    return [row[0] for row in db.execute(f"SELECT version_num FROM {schema}.alembic_version")]
