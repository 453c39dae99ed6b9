from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

import pg_mdistinct
from pg_mdistinct import resources
from pg_mdistinct.cli import main
from pg_mdistinct.install import (
    InstallError,
    InstallReport,
    NotReadyError,
    UninstallReport,
    build,
    checks,
    code,
    install,
    remote,
    uninstall,
    upgrade,
)
from tests.fix_database import Connection
from tests.fix_server import Server

_WAITING = """
SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = 'brief' AND wait_event_type = 'Lock'
"""
# Server code that says which version it is; the functions of the real one are tested elsewhere.
_ECHO = """
CREATE OR REPLACE FUNCTION public.mdistinct_echo() RETURNS text
LANGUAGE plpython3u VOLATILE PARALLEL UNSAFE SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $python$
@LOAD@
return echo.version()
$python$;
REVOKE ALL ON FUNCTION public.mdistinct_echo() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.mdistinct_echo() TO mdistinct_admin;
COMMENT ON FUNCTION public.mdistinct_echo() IS 'version % of : the code';
"""


def quiet_install(dsn: str) -> InstallReport:
    return install(dsn, on_message=lambda _: None)


def quiet_upgrade(dsn: str) -> InstallReport:
    return upgrade(dsn, on_message=lambda _: None)


def quiet_uninstall(dsn: str, *, purge_history: bool = False) -> UninstallReport:
    return uninstall(dsn, purge_history=purge_history, on_message=lambda _: None)


def value(connection: Connection, query: str) -> object:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def schemas(connection: Connection) -> set[str]:
    rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^mdistinct'")
    return {row[0] for row in rows}


@contextmanager
def connected(dsn: str) -> Iterator[Connection]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Makes the installer install a plugin of the given version with one function, `echo`."""

    def make(version: str) -> Path:
        folder = tmp_path / version
        shutil.copytree(resources.sql_dir(), folder)
        for path in (*(folder / "functions").glob("*.sql"), *(folder / "views").glob("*.sql")):
            path.unlink()
        (folder / "functions" / "mdistinct_echo.sql").write_text(_ECHO)
        files = {
            "pg_mdistinct/__init__.py": f'__version__ = "{version}"\n',
            "pg_mdistinct/server/__init__.py": "",
            "pg_mdistinct/server/echo.py": f'def version():\n    return "{version}"\n',
        }
        monkeypatch.setattr(resources, "sql_dir", lambda: folder)
        monkeypatch.setattr(code, "server_files", lambda: files)
        monkeypatch.setattr(code, "server_modules", lambda: ("echo",))
        monkeypatch.setattr(pg_mdistinct, "__version__", version)
        return folder

    return make


@pytest.fixture
def login(server: Server) -> Iterator[str]:
    """The name of a role that may connect but is no superuser."""
    name = f"test_login_{os.getpid()}"
    role = sql.Identifier(name)
    with server.maintenance() as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        yield name
        connection.execute(sql.SQL("DROP ROLE {}").format(role))


# Install


def test_install_says_what_it_found_and_did(empty_dsn: str) -> None:
    messages: list[str] = []
    report = install(empty_dsn, on_message=messages.append)
    assert report.version == pg_mdistinct.__version__
    assert report.former_revision is None
    assert report.python.version >= (3, 11)
    assert report.code_folder.endswith(f"/pg_mdistinct/{report.version}")
    assert report.database == conninfo_to_dict(empty_dsn)["dbname"]
    assert any(report.code_folder in message for message in messages)
    with connected(empty_dsn) as connection:
        assert schemas(connection) == set(build.SCHEMAS)
        assert value(connection, "SELECT version_num FROM mdistinct.alembic_version")


def test_install_again_changes_nothing(empty_dsn: str) -> None:
    first = quiet_install(empty_dsn)
    second = quiet_install(empty_dsn)
    assert second.former_revision == second.revision == first.revision
    assert not second.code_written
    assert second.functions == first.functions


def test_every_spelling_of_a_dsn(empty_dsn: str) -> None:
    parts = conninfo_to_dict(empty_dsn)
    query = f"host={parts['host']}&port={parts['port']}"
    url = f"://{parts['user']}@/{parts['dbname']}?{query}"
    for dsn in (f"postgresql{url}", f"postgresql+psycopg{url}"):
        assert quiet_install(dsn).database == parts["dbname"]


def test_roles_are_as_the_contract_says(db: Connection) -> None:
    rows = db.execute(
        "SELECT rolname, rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls"
        " FROM pg_roles WHERE rolname = ANY (%s)",
        (list(build.ROLES),),
    ).fetchall()
    assert {row[0] for row in rows} == set(build.ROLES)
    assert [row[0] for row in rows if row[1]] == ["mdistinct_scheduler"]
    assert not any(flag for row in rows for flag in row[2:])
    for role in ("mdistinct_reader", "mdistinct_publisher"):
        assert value(db, f"SELECT pg_has_role('mdistinct_admin', '{role}', 'USAGE')")
    assert not value(db, "SELECT pg_has_role('mdistinct_admin', 'mdistinct_owner', 'MEMBER')")


def test_the_servers_code_is_private_and_the_same_as_here(server: Server, template: str) -> None:
    if server.data is None:
        pytest.skip("the server's files are out of reach")
    folder = server.data / "pg_mdistinct" / pg_mdistinct.__version__
    for name, text in code.server_files().items():
        path = folder / name
        assert path.read_text(encoding="utf-8") == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_uid == server.data.stat().st_uid
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_who_is_not_a_superuser_is_told_so(server: Server, empty_dsn: str, login: str) -> None:
    dsn = server.dsn(str(conninfo_to_dict(empty_dsn)["dbname"]), user=login)
    with pytest.raises(NotReadyError) as caught:
        quiet_install(dsn)
    assert f"{login} is not a superuser" in caught.value.message
    assert "user=postgres" in caught.value.hint
    with connected(empty_dsn) as connection:
        assert schemas(connection) == set()


def test_what_is_missing_on_the_server_leaves_no_trace(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "MODULES", ("numpy", "no_such_module"))
    with pytest.raises(NotReadyError, match="cannot import no_such_module") as caught:
        quiet_install(empty_dsn)
    assert "apt-get install" in caught.value.hint
    with connected(empty_dsn) as connection:
        assert value(connection, "SELECT count(*) FROM pg_language WHERE lanname ~ 'python'") == 0


def test_a_server_that_cannot_be_reached() -> None:
    with pytest.raises(InstallError, match="cannot connect") as caught:
        quiet_install("host=/nowhere dbname=nothing")
    assert "--dsn" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("functions/aaa.sql", "CREATE FUNKTION public.mdistinct_x()"),
        ("functions/zzz.sql", _ECHO.replace("return echo", "return return echo")),
        ("schema/99_bad.sql", "CREATE TABLE mdistinct.x (y no_such_type)"),
    ],
)
def test_a_failing_file_is_named_and_leaves_the_database_as_it_was(
    empty_dsn: str, plugin: Callable[[str], Path], name: str, text: str
) -> None:
    folder = plugin("9.0.1")
    (folder / name).write_text(text)
    with pytest.raises(InstallError):
        quiet_install(empty_dsn)
    with connected(empty_dsn) as connection:
        assert schemas(connection) == set()
        assert build.count_functions(connection) == 0


def test_schemas_and_functions_of_others_are_not_taken_over(empty_dsn: str, login: str) -> None:
    with connected(empty_dsn) as connection:
        role = sql.Identifier(login)
        connection.execute(sql.SQL("CREATE SCHEMA mdistinct AUTHORIZATION {}").format(role))
        with pytest.raises(InstallError, match=f"schema mdistinct of {login}"):
            quiet_install(empty_dsn)
        connection.execute("DROP SCHEMA mdistinct")
        connection.execute("CREATE FUNCTION public.mdistinct_x() RETURNS int RETURN 1")
        connection.execute(sql.SQL("ALTER FUNCTION public.mdistinct_x() OWNER TO {}").format(role))
        with pytest.raises(InstallError, match=r"mdistinct_x\(\) of " + login):
            quiet_install(empty_dsn)
        connection.execute("DROP FUNCTION public.mdistinct_x()")


# The code of one version


def test_functions_run_the_code_that_they_were_installed_with(
    empty_dsn: str, plugin: Callable[[str], Path]
) -> None:
    plugin("9.1.0")
    quiet_install(empty_dsn)
    with connected(empty_dsn) as connection:
        assert value(connection, "SELECT mdistinct_echo()") == "9.1.0"
        comment = "SELECT obj_description('mdistinct_echo'::regproc, 'pg_proc')"
        assert value(connection, comment) == "version % of : the code"
        connection.execute("SET ROLE mdistinct_publisher")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT mdistinct_echo()")


def test_a_session_with_older_code_is_told_to_reconnect(
    empty_dsn: str, plugin: Callable[[str], Path]
) -> None:
    plugin("9.2.0")
    quiet_install(empty_dsn)
    with connected(empty_dsn) as connection:
        assert value(connection, "SELECT mdistinct_echo()") == "9.2.0"
        plugin("9.2.1")
        quiet_upgrade(empty_dsn)
        base = code.base_folder(connection)
        assert "9.2.0" not in remote.call(connection, "list_code", base=base)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
            connection.execute("SELECT mdistinct_echo()")
        assert "loaded pg_mdistinct 9.2.0, but 9.2.1" in str(caught.value)
        assert "Reconnect" in (caught.value.diag.message_hint or "")
    with connected(empty_dsn) as connection:
        assert value(connection, "SELECT mdistinct_echo()") == "9.2.1"


def test_missing_code_is_asked_for_by_name(empty_dsn: str, plugin: Callable[[str], Path]) -> None:
    plugin("9.3.0")
    quiet_install(empty_dsn)
    with connected(empty_dsn) as connection:
        base = code.base_folder(connection)
        remote.call(connection, "remove_code", base=base, versions=["9.3.0"])
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as caught:
            connection.execute("SELECT mdistinct_echo()")
        assert f"{base}/9.3.0" in str(caught.value)
        assert "pg-mdistinct install" in (caught.value.diag.message_hint or "")
    assert quiet_install(empty_dsn).code_written


# Upgrade


def test_upgrade_wants_an_installed_plugin(empty_dsn: str) -> None:
    with pytest.raises(InstallError, match="not installed") as caught:
        quiet_upgrade(empty_dsn)
    assert "pg-mdistinct install" in caught.value.hint


def test_upgrade_keeps_code_that_another_database_uses(
    new_database: Callable[..., str], plugin: Callable[[str], Path]
) -> None:
    one, other = new_database(), new_database()
    plugin("9.4.0")
    quiet_install(one)
    quiet_install(other)
    plugin("9.4.1")
    assert "9.4.0" not in quiet_upgrade(one).removed_code
    with connected(other) as connection:
        assert value(connection, "SELECT mdistinct_echo()") == "9.4.0"
    quiet_upgrade(other)
    with connected(other) as connection:
        base = code.base_folder(connection)
        assert "9.4.0" not in remote.call(connection, "list_code", base=base)


def test_a_database_of_a_later_version_is_left_alone(dsn: str) -> None:
    with connected(dsn) as connection:
        connection.execute("UPDATE mdistinct.alembic_version SET version_num = '9999'")
    with pytest.raises(InstallError, match="revision 9999") as caught:
        quiet_upgrade(dsn)
    assert "later" in caught.value.hint


# Uninstall


def test_uninstall_keeps_the_history_and_install_goes_on_with_it(dsn: str) -> None:
    with connected(dsn) as connection:
        connection.execute("CREATE TABLE mdistinct_data.kept AS SELECT 42 AS answer")
        before = build.count_functions(connection)
        assert before > 0
        report = quiet_uninstall(dsn)
        assert report.history_kept
        assert report.functions == before
        assert build.count_functions(connection) == 0
        assert value(connection, "SELECT answer FROM mdistinct_data.kept") == 42
    assert quiet_install(dsn).functions == before
    with connected(dsn) as connection:
        assert value(connection, "SELECT answer FROM mdistinct_data.kept") == 42


def test_uninstall_names_what_reads_the_schedule(dsn: str) -> None:
    with connected(dsn) as connection:
        connection.execute("CREATE VIEW public.mine AS SELECT dataset FROM mdistinct.schedule")
        with pytest.raises(InstallError, match="other objects") as caught:
            quiet_uninstall(dsn)
        assert "mine" in (caught.value.detail or "")
        assert value(connection, "SELECT count(*) FROM public.mine") == 0


def test_uninstall_twice_and_without_the_plugin(dsn: str, empty_dsn: str) -> None:
    quiet_uninstall(dsn)
    assert quiet_uninstall(dsn).functions == 0
    assert quiet_uninstall(empty_dsn, purge_history=True).functions == 0


def test_purge_removes_everything_but_roles_that_others_use(dsn: str) -> None:
    report = quiet_uninstall(dsn, purge_history=True)
    assert not report.history_kept
    assert report.roles_dropped == ()
    assert set(report.roles_kept) == set(build.ROLES)
    assert "mdistinct_template" in report.roles_kept["mdistinct_owner"]
    with connected(dsn) as connection:
        assert schemas(connection) == set()
        assert build.count_functions(connection) == 0
    assert quiet_install(dsn).former_revision is None


def test_uninstall_wants_a_superuser(server: Server, dsn: str, login: str) -> None:
    with pytest.raises(InstallError, match=f"{login} is not a superuser"):
        quiet_uninstall(server.dsn(str(conninfo_to_dict(dsn)["dbname"]), user=login))


def test_nothing_of_anybody_else_goes_with_the_plugin(
    empty_dsn: str, plugin: Callable[[str], Path]
) -> None:
    plugin("9.5.0")
    quiet_install(empty_dsn)
    with connected(empty_dsn) as connection:
        connection.execute("CREATE VIEW public.mine AS SELECT mdistinct_echo()")
        with pytest.raises(InstallError, match="use functions of the plugin") as caught:
            quiet_uninstall(empty_dsn)
        assert "mine" in (caught.value.detail or "")
        connection.execute("DROP VIEW public.mine")
        connection.execute("CREATE TABLE mdistinct_data.theirs ()")
        connection.execute("CREATE VIEW public.mine AS SELECT FROM mdistinct_data.theirs")
        with pytest.raises(InstallError, match="views outside the plugin") as caught:
            quiet_uninstall(empty_dsn, purge_history=True)
        assert "public.mine" in caught.value.message
        assert build.count_functions(connection) == 1
        connection.execute("DROP VIEW public.mine")
        quiet_uninstall(empty_dsn)
        base = code.base_folder(connection)
        assert "9.5.0" not in remote.call(connection, "list_code", base=base)


# A cluster of one's own


def test_roles_come_and_go_with_the_last_database(
    own_server: Server, plugin: Callable[[str], Path]
) -> None:
    plugin("9.6.0")
    dsn = own_server.dsn("postgres")
    with own_server.maintenance() as connection:
        connection.execute("CREATE ROLE mdistinct_reader SUPERUSER")
        quiet_install(dsn)
        super_reader = "SELECT rolsuper FROM pg_roles WHERE rolname = 'mdistinct_reader'"
        assert value(connection, super_reader) is False
        report = quiet_uninstall(dsn, purge_history=True)
        assert report.roles_dropped == build.ROLES
        assert report.removed_code == ("9.6.0",)
        assert value(connection, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^mdist.*_'") == 0
    assert own_server.data is not None
    assert not (own_server.data / "pg_mdistinct").exists()


def test_a_database_that_is_closed_keeps_all_code(
    own_server: Server, plugin: Callable[[str], Path]
) -> None:
    plugin("9.7.0")
    dsn = own_server.dsn("postgres")
    quiet_install(dsn)
    messages: list[str] = []
    with own_server.maintenance() as connection:
        connection.execute("CREATE DATABASE closed ALLOW_CONNECTIONS false")
        assert uninstall(dsn, on_message=messages.append).removed_code == ()
        assert any("closed" in message for message in messages)
        connection.execute("DROP DATABASE closed")
        assert uninstall(dsn, on_message=messages.append).removed_code == ("9.7.0",)


def test_a_database_that_is_being_dropped_keeps_no_code(own_server: Server) -> None:
    dsn = own_server.dsn("postgres")
    with (
        ThreadPoolExecutor() as threads,
        own_server.maintenance() as connection,
        own_server.maintenance() as looking,
    ):
        connection.execute("CREATE DATABASE brief")
        with closing(psycopg.connect(own_server.dsn("brief"))) as holder:
            holder.execute("LOCK TABLE pg_catalog.pg_proc")
            look = threads.submit(code.remove_unused, looking, dsn, None)
            while not value(connection, _WAITING):
                assert not look.done()
            connection.execute("DROP DATABASE brief WITH (FORCE)")
        assert look.result()[1] == []


# The command line


def test_commands(empty_dsn: str) -> None:
    runner = CliRunner()
    for arguments, answer in (
        (["install"], "is installed in"),
        (["upgrade"], "is installed in"),
        (["uninstall"], "its history is kept"),
        (["uninstall", "--purge-history", "--yes"], "nothing of it is left"),
    ):
        result = runner.invoke(main, [*arguments, "--dsn", empty_dsn])
        assert result.exit_code == 0, result.output
        assert answer in result.stdout


def test_purge_asks_first(dsn: str) -> None:
    result = CliRunner().invoke(main, ["uninstall", "--purge-history", "--dsn", dsn], input="n\n")
    assert result.exit_code == 1
    with connected(dsn) as connection:
        assert schemas(connection) == set(build.SCHEMAS)


def test_trouble_ends_in_a_hint_without_a_traceback(empty_dsn: str) -> None:
    result = CliRunner().invoke(main, ["upgrade", "--dsn", empty_dsn])
    assert result.exit_code == 1
    assert "HINT: Run: pg-mdistinct install" in result.stderr
