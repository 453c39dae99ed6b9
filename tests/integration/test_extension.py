"""CREATE EXTENSION is the other door to the same plugin."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.embedded.installation import Installation, find_installation
from pg_mdistinct.install import InstallError, code, extension, install, sources, uninstall
from tests.fix_database import Connection
from tests.fix_server import Server
from tests.integration.cases import make_ward, one, publish, state
from tests.integration.test_catalogs import CATALOGS, catalog
from tests.oracle.check_database import check_database

CREATE = "CREATE EXTENSION pg_mdistinct CASCADE"
MEMBERS = """
SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend AS d
JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
WHERE e.extname = 'pg_mdistinct' AND d.deptype = 'e'
"""
DUMPED = "SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'pg_mdistinct'"


@pytest.fixture
def programs(server: Server) -> Installation:
    """The programs of the test server, whose extensions are ours to change."""
    if server.data is None:
        pytest.skip("the server's files are out of reach")
    found = find_installation(int((server.data / "PG_VERSION").read_text()))
    if not Path(found.program("pg_config")).exists():
        pytest.skip("there is no pg_config here")
    return found


@pytest.fixture
def folder(server: Server, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of the server's extensions, with ours in it.

    The image has it there already. Elsewhere it is put there; one test at a time has it.
    """
    if server.data is None:
        yield folder_of_the_image(server)
        return
    pg_config = request.getfixturevalue("programs").program("pg_config")
    place = extension.folder_of(pg_config)
    if not os.access(place, os.W_OK):
        pytest.skip(f"{place} is not writable")
    lock = os.open(place, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if (place / "pg_mdistinct.control").exists():
            pytest.skip("the extension is installed on this machine: make uninstall-extension")
        extension.install(pg_config)
        yield place
        extension.remove(pg_config)
    finally:
        os.close(lock)


def folder_of_the_image(server: Server) -> Path:
    with server.maintenance() as connection:
        has_ours = "SELECT FROM pg_available_extension_versions WHERE (name, version) = (%s, %s)"
        if not connection.execute(has_ours, ("pg_mdistinct", pg_mdistinct.__version__)).fetchall():
            pytest.skip("the server does not have the files of the extension")
        share = one(connection, "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'")
    return Path(share) / "extension"


@pytest.fixture
def connect(new_database: Callable[..., str]) -> Iterator[Callable[[], Connection]]:
    """Opens a connection to a new and empty database."""
    opened: list[Connection] = []

    def make() -> Connection:
        opened.append(psycopg.connect(new_database(), autocommit=True))
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()


def dsn_of(db: Connection) -> str:
    """Where it is connected to, without what only psycopg's own libpq understands."""
    info = db.info
    return make_conninfo(host=info.host, port=info.port, user=info.user, dbname=info.dbname)


def objects(db: Connection, folder: Path) -> dict[str, str]:
    """The catalogs as text; folder of the code and the way to repair it are each door's own."""
    own = {
        f"{code.base_folder(db)}/": "CODE/",
        f"{folder}/pg_mdistinct/": "CODE/",
        "pg-mdistinct install --dsn DSN": "REPAIR",
        "make install-extension": "REPAIR",
    }
    found = {}
    for name, query in CATALOGS.items():
        text = "\n".join(map(str, catalog(db, query)))
        for mine, common in own.items():
            text = text.replace(mine, common)
        found[name] = text
    del found["extensions"]
    return found


def test_both_doors_lead_to_the_same_catalogs(
    folder: Path, connect: Callable[[], Connection]
) -> None:
    one_way, other_way = connect(), connect()
    one_way.execute(CREATE)
    install(other_way.info.dsn, on_message=lambda _: None)
    found, expected = objects(one_way, folder), objects(other_way, folder)
    for name, text in expected.items():
        assert found[name] == text, name


@pytest.mark.usefixtures("programs")
def test_an_update_leads_to_the_same_as_a_new_extension(
    folder: Path, connect: Callable[[], Connection]
) -> None:
    version = pg_mdistinct.__version__
    pieces = extension.scripts(f"{folder}/pg_mdistinct/{version}", {"0.0.9": "0001"})
    update = f"pg_mdistinct--0.0.9--{version}.sql"
    (folder / update).write_text(pieces[update])
    (folder / "pg_mdistinct--0.0.9.sql").write_text(extension.state_script("0001"))
    updated, new = connect(), connect()
    updated.execute("CREATE EXTENSION pg_mdistinct VERSION '0.0.9' CASCADE")
    assert one(updated, "SELECT to_regclass('mdistinct.runs')") is None
    updated.execute("ALTER EXTENSION pg_mdistinct UPDATE")
    new.execute(CREATE)
    version_of = "SELECT extversion FROM pg_extension WHERE extname = 'pg_mdistinct'"
    assert one(updated, version_of) == one(new, version_of) == version
    assert objects(updated, folder) == objects(new, folder)
    for query in (MEMBERS, DUMPED):
        assert catalog(updated, query) == catalog(new, query)


def test_the_rows_of_all_tables_are_marked_for_dumps(
    folder: Path, connect: Callable[[], Connection]
) -> None:
    db = connect()
    db.execute(CREATE)
    tables = db.execute(
        "SELECT oid::regclass::text FROM pg_class"
        " WHERE relnamespace = 'mdistinct'::regnamespace AND relkind IN ('r', 'S')"
    )
    assert sorted(tables) == sorted(db.execute(DUMPED))


@pytest.mark.slow
def test_a_dump_carries_the_history(
    folder: Path, programs: Installation, connect: Callable[[], Connection]
) -> None:
    db, restored = connect(), connect()
    db.execute(CREATE)
    make_ward(db)
    publish(db)
    db.execute("DELETE FROM ward WHERE id = 3")
    assert one(db, "SELECT status FROM mdistinct.run('ward')") == "published"
    dump = subprocess.run(
        [programs.program("pg_dump"), dsn_of(db)], capture_output=True, text=True, check=True
    )
    subprocess.run(
        [programs.program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", dsn_of(restored)],
        input=dump.stdout,
        text=True,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    assert state(restored) == state(db)
    assert objects(restored, folder) == objects(db, folder)
    with psycopg.connect(restored.info.dsn, autocommit=True) as reconnected:
        assert publish(reconnected)["release"] == 3
        assert one(reconnected, "SELECT run FROM mdistinct.run('ward')") == 2
        assert check_database(reconnected) == []


def test_dropping_does_not_take_a_history_along(
    folder: Path, connect: Callable[[], Connection]
) -> None:
    db = connect()
    db.execute(CREATE)
    make_ward(db)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        db.execute("DROP EXTENSION pg_mdistinct")
    db.execute("SELECT mdistinct_drop('ward')")
    db.execute("DROP EXTENSION pg_mdistinct")
    assert one(db, "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^mdistinct'") == 0


def test_one_door_does_not_touch_what_came_in_by_the_other(
    folder: Path, connect: Callable[[], Connection], dsn: str
) -> None:
    db = connect()
    db.execute(CREATE)
    for change in (install, uninstall):
        with pytest.raises(InstallError, match="is an extension") as caught:
            change(db.info.dsn, on_message=lambda _: None)
        assert "EXTENSION pg_mdistinct" in caught.value.hint
    with psycopg.connect(dsn, autocommit=True) as plain:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            plain.execute(CREATE)
        assert one(plain, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_mdistinct'") == 0


def test_the_callers_role_stays_what_it_was(
    folder: Path, connect: Callable[[], Connection]
) -> None:
    db = connect()
    name = sql.Identifier(f"test_super_{os.getpid()}")
    db.execute(sql.SQL("CREATE ROLE {} SUPERUSER").format(name))
    try:
        db.execute(sql.SQL("SET ROLE {}").format(name))
        db.execute(CREATE)
        assert one(db, "SELECT current_user") == name.as_string().strip('"')
        owners = "SELECT DISTINCT nspowner::regrole::text FROM pg_namespace WHERE nspname ~ '^mdis'"
        assert db.execute(owners).fetchall() == [("mdistinct_owner",)]
        db.execute("RESET ROLE")
        db.execute("DROP EXTENSION pg_mdistinct, plpython3u")
    finally:
        db.execute("RESET ROLE")
        db.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(name))


def test_missing_code_is_asked_for_by_name(
    folder: Path, programs: Installation, connect: Callable[[], Connection]
) -> None:
    db = connect()
    db.execute(CREATE)
    extension.remove(programs.program("pg_config"))
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        db.execute("SELECT mdistinct_publish('ward')")
    assert "make install-extension" in (caught.value.diag.message_hint or "")


def test_make_installs_below_a_destdir_and_removes_again(
    programs: Installation, tmp_path: Path
) -> None:
    root = resources.checkout_root()
    if root is None:
        pytest.skip("there is no Makefile without a checkout")
    pg_config = programs.program("pg_config")

    def make(target: str) -> None:
        arguments = (f"PG_CONFIG={pg_config}", f"DESTDIR={tmp_path}", f"PYTHON={sys.executable}")
        subprocess.run(["make", "-s", "-C", root, target, *arguments], check=True)

    make("install-extension")
    place = Path(f"{tmp_path}{extension.folder_of(pg_config)}")
    version = pg_mdistinct.__version__
    control = (place / "pg_mdistinct.control").read_text()
    assert f"default_version = '{version}'" in control
    script = (place / f"pg_mdistinct--{version}.sql").read_text()
    assert str(tmp_path) not in script
    assert f"'{extension.folder_of(pg_config)}/pg_mdistinct/{version}'" in script
    files = sources.server_files()
    copied = place / "pg_mdistinct" / version
    assert {path.relative_to(copied).as_posix() for path in copied.rglob("*.py")} == set(files)
    make("uninstall-extension")
    assert list(place.iterdir()) == []
