"""Every released version is installed with its own code, publishes, is upgraded and goes on."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.embedded.installation import find_installation
from pg_mdistinct.install import extension, sources, upgrade
from tests.fix_database import acting_as
from tests.fix_server import Server
from tests.integration.cases import Connection, one, publish
from tests.lifecycle.releases import (
    VERSIONS,
    Released,
    interpreted,
    publish_history,
    publish_on,
    published,
)
from tests.oracle.check_database import check_database


@pytest.fixture(params=VERSIONS)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Released:
    return Released(request.param, tmp_path)


@pytest.fixture
def pg_config(server: Server) -> Iterator[str]:
    """The pg_config of the test server, whose extensions are ours to change; one test at a time."""
    if server.data is None:
        pytest.skip("the server's files are out of reach")
    found = find_installation(int((server.data / "PG_VERSION").read_text())).program("pg_config")
    if not Path(found).exists():
        pytest.skip("there is no pg_config here")
    place = extension.folder_of(found)
    if not os.access(place, os.W_OK):
        pytest.skip(f"{place} is not writable")
    lock = os.open(place, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if (place / "pg_mdistinct.control").exists():
            pytest.skip("the extension is installed on this machine: make uninstall-extension")
        yield found
        extension.remove(found)
    finally:
        os.close(lock)


def connect(dsn: str) -> Connection:
    return interpreted(psycopg.connect(dsn, autocommit=True))


def expect_old_code_refused(db: Connection, version: str) -> None:
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        publish(db)
    loaded = f"loaded pg_mdistinct {version}, but {pg_mdistinct.__version__} is installed"
    assert loaded in str(caught.value)
    assert "Reconnect" in (caught.value.diag.message_hint or "")


def test_a_history_of_a_released_version_goes_on(
    released: Released, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    released.install(dsn)
    with connect(dsn) as old:
        publish_history(old)
        assert check_database(old) == []
        before = published(old)
        report = upgrade(dsn, on_message=lambda _: None)
        assert (report.version, report.revision) == (
            pg_mdistinct.__version__,
            sources.revisions()[-1],
        )
        assert report.former_revision == extension.FORMER_VERSIONS[released.version]
        # The session that was there before holds the old code, and says so.
        expect_old_code_refused(old, released.version)
        assert published(old) == before
    with psycopg.connect(dsn, autocommit=True) as new:
        publish_on(new)
        assert published(new) == before


def test_an_upgrade_runs_nothing_that_an_admin_has_named(
    released: Released, new_database: Callable[..., str]
) -> None:
    """Admins may make functions beside ours: the names of their columns are texts of theirs."""
    dsn = new_database()
    released.install(dsn)
    with connect(dsn) as db:
        publish_history(db)
        # A name has 63 bytes at most.
        admin = f"a{secrets.token_hex(4)}"
        trap = f"a int)language sql as'';alter role {admin} superuser--"
        db.execute(f"CREATE ROLE {admin} IN ROLE mdistinct_admin".encode())
        try:
            db.execute(f"ALTER FUNCTION mdistinct_sources.ward() OWNER TO {admin}".encode())
            with acting_as(db, admin):
                db.execute("DROP FUNCTION mdistinct_sources.ward()")
                db.execute(
                    sql.SQL(
                        "CREATE FUNCTION mdistinct_sources.ward() RETURNS TABLE ({} integer)"
                        " LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'"
                    ).format(sql.Identifier(trap))
                )
            upgrade(dsn, on_message=lambda _: None)
            is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = %s"
            assert one(db, is_superuser, (admin,)) is False
            with (
                psycopg.connect(dsn, autocommit=True) as new,
                pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="other columns"),
            ):
                publish(new)
        finally:
            db.execute(f"DROP OWNED BY {admin}; DROP ROLE {admin}".encode())


def test_an_extension_of_a_released_version_goes_on(
    released: Released, pg_config: str, new_database: Callable[..., str]
) -> None:
    dsn = new_database()
    released.install_extension(pg_config)
    with connect(dsn) as old:
        old.execute("CREATE EXTENSION pg_mdistinct CASCADE")
        version_of = "SELECT extversion FROM pg_extension WHERE extname = 'pg_mdistinct'"
        assert one(old, version_of) == released.version
        publish_history(old)
        before = published(old)
        extension.install(pg_config)
        old.execute("ALTER EXTENSION pg_mdistinct UPDATE")
        assert one(old, version_of) == pg_mdistinct.__version__
        expect_old_code_refused(old, released.version)
    with connect(dsn) as new:
        publish_on(new)
        assert published(new) == before


def test_every_released_version_is_kept_for_upgrades() -> None:
    root = resources.checkout_root()
    if root is None:
        pytest.skip("there is no changelog without a checkout")
    listed = re.findall(r"^## \[(\d[^]]*)\]", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert listed[0] == pg_mdistinct.__version__, "the changelog begins with another version"
    assert sorted(listed[1:]) == VERSIONS, "freeze a version before the next one begins"
    assert sorted(extension.FORMER_VERSIONS) == VERSIONS, "the extension has no update from there"
