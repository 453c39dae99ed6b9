"""Dumps, standbys and logical copies: the history goes along, the secrets only where they must."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pg_mdistinct.embedded import EmbeddedServer
from pg_mdistinct.embedded.account import account_for
from pg_mdistinct.install import install, upgrade
from tests.fix_database import acting_as
from tests.fix_server import Server
from tests.integration.cases import Connection, make_ward, one, publish, state
from tests.integration.test_catalogs import CATALOGS, catalog
from tests.lifecycle.servers import new_home, own_server, run
from tests.oracle.check_database import check_database

pytestmark = pytest.mark.embedded

PATIENTS = "SELECT i, i, 'd' || i %% 10 FROM generate_series(1, %s) AS i"
AWAY = 8


def publish_some(db: Connection) -> None:
    """Publish twice; some records are away by then, and what they stood for must not be lost."""
    db.execute("CREATE TABLE ward (id integer PRIMARY KEY, age integer, disease text)")
    db.execute(f"INSERT INTO ward {PATIENTS}", (40,))
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 3)")
    # Nobody recovers: whoever returns must be found among the same values as before.
    for value in (f"d{i}" for i in range(10)):
        db.execute("SELECT mdistinct_allow_update('ward', %s, %s)", (value, [value]))
    publish(db)
    db.execute("GRANT SELECT ON mdistinct_published.ward TO pg_monitor")
    publish_without_some(db)


def publish_without_some(db: Connection) -> None:
    db.execute("DELETE FROM ward WHERE id <= %s", (AWAY,))
    publish(db)


def publish_next(db: Connection, release: int = 3) -> None:
    """Let the absent records return, and see that history and guarantee go on."""
    db.execute(f"INSERT INTO ward {PATIENTS}", (AWAY,))
    db.execute("INSERT INTO ward VALUES (%s, 99, 'd0')", (99 + release,))
    assert publish(db)["release"] == release
    assert one(db, "SELECT count(*) FROM mdistinct_verify('ward')") == 0
    assert check_database(db) == []


def expect_no_code(db: Connection) -> None:
    """Publishing says that the code of another server's folder is not here, and what to do."""
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
        publish(db)
    assert "there is no server code of pg_mdistinct" in str(caught.value)
    assert "pg-mdistinct install" in (caught.value.diag.message_hint or "")


def everything(db: Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return the catalogs, rights and owners included; those on the database are its own."""
    # Rights that are the default are written down or not: they mean the same.
    default = ("n.nspacl", "coalesce(n.nspacl, acldefault('n', n.nspowner))")
    return {
        name: catalog(db, query.replace(*default))
        for name, query in CATALOGS.items()
        if name != "database"
    }


# Dumps


def test_a_dump_carries_history_and_grants(
    db: Connection, dsn: str, server: Server, new_database: Callable[..., str], tmp_path: Path
) -> None:
    assert server.data is not None
    publish_some(db)
    dump = str(server.data.parent / f"{tmp_path.parent.name}-{os.getpid()}.dump")
    copy = new_database()
    try:
        run(server.data, "pg_dump", "--format=custom", f"--file={dump}", plain(dsn))
        run(server.data, "pg_restore", "--exit-on-error", f"--dbname={plain(copy)}", dump)
    finally:
        Path(dump).unlink(missing_ok=True)
    with psycopg.connect(copy, autocommit=True) as restored:
        assert state(restored) == state(db)
        assert everything(restored) == everything(db)
        publish_next(restored)


def test_a_dump_on_another_server(pytestconfig: pytest.Config, template: str) -> None:
    """Neither roles nor code are there: the roles come first, the code when it is asked for."""
    with own_server(pytestconfig) as old:
        dump, dsn = old.home / "ward.dump", old.dsn()
        install(dsn, on_message=lambda _: None)
        with psycopg.connect(dsn, autocommit=True) as db:
            publish_some(db)
            before = state(db)
        data = old.home / "data"
        roles = run(data, "pg_dumpall", "--roles-only", f"--dbname={dsn}")
        run(data, "pg_dump", "--format=custom", f"--file={dump}", "--no-comments", dsn)
        kept = new_home()
        dump.rename(kept)
    try:
        with own_server(pytestconfig) as new:
            data, dsn = new.home / "data", new.dsn()
            with psycopg.connect(dsn, autocommit=True) as db:
                for statement in roles.splitlines():
                    if "mdistinct" in statement:
                        db.execute(statement.encode())
                db.execute("DROP EXTENSION IF EXISTS pg_cron")
            run(data, "pg_restore", "--exit-on-error", f"--dbname={dsn}", str(kept))
            with psycopg.connect(dsn, autocommit=True) as db:
                assert state(db) == before
                expect_no_code(db)
            upgrade(dsn, on_message=lambda _: None)
            with psycopg.connect(dsn, autocommit=True) as db:
                publish_next(db)
    finally:
        kept.unlink(missing_ok=True)


def plain(dsn: str) -> str:
    """Return a DSN for programs whose libpq is older than psycopg's."""
    with psycopg.connect(dsn) as db:
        return make_conninfo(
            host=db.info.host, port=db.info.port, user=db.info.user, dbname=db.info.dbname
        )


# Standbys


@pytest.fixture
def primary(pytestconfig: pytest.Config, template: str) -> Iterator[EmbeddedServer]:
    """A server with two releases that lets itself be copied."""
    with own_server(pytestconfig) as server:
        install(server.dsn(), on_message=lambda _: None)
        with (server.home / "data" / "pg_hba.conf").open("a") as access:
            access.write("local replication all trust\n")
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            db.execute("SELECT pg_reload_conf()")
            publish_some(db)
        yield server


class Standby:
    """A copy of a server that follows it."""

    def __init__(self, primary: EmbeddedServer) -> None:
        self.home = new_home()
        self.home.mkdir(mode=0o700)
        source = primary.home / "data"
        account_for(source).give(self.home)
        self.data = self.home / "data"
        run(
            source,
            "pg_basebackup",
            f"--pgdata={self.data}",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--wal-method=stream",
            f"--dbname={primary.dsn('postgres')}",
        )
        # A socket in a folder of its own is in nobody's way.
        options = f"-c listen_addresses= -c unix_socket_directories={self.home}"
        self._ctl("start", f"--options={options}", f"--log={self.home / 'log'}")
        self.dsn = make_conninfo(primary.dsn(), host=str(self.home), hostaddr="")

    def follow(self, primary: Connection) -> None:
        """Wait until it has all that the primary has."""
        here = one(primary, "SELECT pg_current_wal_lsn()")
        with psycopg.connect(self.dsn, autocommit=True) as db:
            while one(db, "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", (here,)):
                pass

    def promote(self) -> None:
        """Make it a primary."""
        self._ctl("promote")

    def remove(self) -> None:
        """Stop it, and delete what it has."""
        self._ctl("stop", "--mode=immediate")
        shutil.rmtree(self.home, ignore_errors=True)

    def _ctl(self, command: str, *options: str) -> None:
        run(self.data, "pg_ctl", command, f"--pgdata={self.data}", "--wait", *options)


@pytest.fixture
def standby(primary: EmbeddedServer) -> Iterator[Standby]:
    made = Standby(primary)
    try:
        yield made
    finally:
        made.remove()


@pytest.mark.slow
def test_a_standby_publishes_nothing_until_it_takes_over(
    primary: EmbeddedServer, standby: Standby
) -> None:
    with (
        psycopg.connect(primary.dsn(), autocommit=True) as db,
        psycopg.connect(standby.dsn, autocommit=True) as copy,
    ):
        publish_next(db)
        standby.follow(db)
        shown = "SELECT * FROM mdistinct_published.ward ORDER BY release, gid, disease"
        with acting_as(copy, "mdistinct_reader"):
            assert copy.execute(shown).fetchall() == db.execute(shown).fetchall()
        assert one(copy, "SELECT count(*) FROM mdistinct_verify('ward')") == 0
        assert check_database(copy) == []
        for call in (
            "SELECT mdistinct_publish('ward')",
            "SELECT mdistinct_preview('ward')",
            "SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')",
            "SELECT mdistinct_alter('ward', m => 2)",
            "SELECT mdistinct_drop('ward')",
        ):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction) as caught:
                copy.execute(call)
            assert "this server is a standby" in str(caught.value)
            assert "primary" in (caught.value.diag.message_hint or "")
        publish_without_some(db)
        standby.follow(db)
    primary.stop()
    standby.promote()
    with psycopg.connect(standby.dsn, autocommit=True) as db:
        # Its folder is another one than the primary's was.
        expect_no_code(db)
    install(standby.dsn, on_message=lambda _: None)
    with psycopg.connect(standby.dsn, autocommit=True) as db:
        publish_next(db, release=5)


# Logical copies


def test_a_read_only_transaction_says_so(db: Connection) -> None:
    make_ward(db)
    db.execute("SET default_transaction_read_only = on")
    with pytest.raises(
        psycopg.errors.ReadOnlySqlTransaction, match="this transaction is read-only"
    ):
        publish(db)


def test_a_copy_of_what_is_published_has_no_secret(db: Connection) -> None:
    """A table or a file made from the views is all that is to leave the server."""
    publish_some(db)
    db.execute("ALTER TABLE ward RENAME COLUMN id TO patient_number")
    for view, columns in (
        ("ward", ["release", "gid", "age", "disease"]),
        ("ward_counterfeits", ["release", "gid", "count"]),
    ):
        with acting_as(db, "mdistinct_reader"):
            found = db.execute(f"TABLE mdistinct_published.{view}").description or ()
            assert [column.name for column in found] == columns
    with acting_as(db, "mdistinct_reader"):
        copied = db.cursor().copy("COPY (TABLE mdistinct_published.ward) TO STDOUT")
        with copied as copy:
            lines = [bytes(line).decode().split("\t") for line in copy]
    # Ranges, never a record's own value; and nothing but groups, ranges and diseases.
    assert all(line[2].startswith("[") and "," in line[2] for line in lines)
    exact = one(
        db, "SELECT count(*) FROM mdistinct_published.ward WHERE upper(age) = lower(age) + 1"
    )
    assert exact == 0


def test_no_table_behind_the_views_is_for_readers_or_publishers(db: Connection) -> None:
    publish_some(db)
    open_to = db.execute(
        "SELECT r.role, c.oid::regclass::text FROM pg_class AS c,"
        " unnest('{mdistinct_reader,mdistinct_publisher}'::text[]) AS r (role)"
        " WHERE c.relkind IN ('r', 'p', 'm') AND c.relnamespace::regnamespace::text ~ '^mdistinct'"
        " AND has_any_column_privilege(r.role, c.oid, 'SELECT, INSERT, UPDATE')"
    ).fetchall()
    assert open_to == []
    # Nor could they name one: two locks on one door.
    for role in ("mdistinct_reader", "mdistinct_publisher", "mdistinct_admin"):
        assert not one(db, "SELECT has_schema_privilege(%s, 'mdistinct_data', 'USAGE')", (role,))


def test_logical_replication_takes_no_views(db: Connection, dsn: str) -> None:
    """Tables with secrets are replicated on a superuser's word alone, what is published never."""
    publish_some(db)
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute("CREATE PUBLICATION p FOR TABLE mdistinct_published.ward")
    role = f"replicator_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role}")
    try:
        db.execute(f"GRANT CREATE ON DATABASE {db.info.dbname} TO {role}")
        db.execute(f"GRANT mdistinct_admin TO {role}")
        with acting_as(db, role):
            for what in (
                "FOR TABLE mdistinct_data.ward_versions",
                "FOR TABLE mdistinct.datasets",
                "FOR ALL TABLES",
                "FOR TABLES IN SCHEMA mdistinct_data",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(f"CREATE PUBLICATION p {what}")
    finally:
        db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
