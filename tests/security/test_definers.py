"""With whose rights each function runs, that its file says why, and on which search path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from pg_mdistinct import resources
from pg_mdistinct.install import extension, install
from pg_mdistinct.install.errors import InstallError
from tests.fix_database import Connection
from tests.integration.cases import make_ward

FILES = sorted((resources.sql_dir() / "functions").glob("*.sql"))
SAFE_PATH = "search_path=pg_catalog, pg_temp"
# They commit, and PostgreSQL lets no procedure do that which has settings or is a definer.
COMMITTING = {"mdistinct_publish_all", "run_job"}
SCRIPTS = {
    name: text
    for name, text in extension.scripts("/code", {"0.1.0": "0002"}).items()
    if name.endswith(".sql")
}


def test_every_file_says_whose_rights_and_why(db: Connection) -> None:
    definers = dict(db.execute("SELECT oid::regproc::text, prosecdef FROM pg_proc").fetchall())
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        reason = re.match(r"-- (Definer|Invoker) on purpose\b[^:]*: \w+", text)
        assert reason, f"{path.name} begins with: -- Definer on purpose: ..."
        name = re.search(r"CREATE OR REPLACE (?:FUNCTION|PROCEDURE) (?:public\.)?([\w.]+)", text)
        assert name, path.name
        assert f"SECURITY {reason[1].upper()}\n" in text, path.name
        assert definers[name[1]] == (reason[1] == "Definer"), path.name


def test_every_function_has_a_file(db: Connection) -> None:
    rows = db.execute(
        "SELECT proname FROM pg_proc AS p WHERE p.pronamespace = 'mdistinct'::regnamespace"
        " OR p.proname LIKE 'mdistinct\\_%'"
    )
    assert {name for (name,) in rows} == {path.stem for path in FILES}


def test_every_search_path_is_pinned(db: Connection) -> None:
    """Also that of the functions that registration makes."""
    make_ward(db)
    rows = db.execute(
        "SELECT p.proname, p.oid::regprocedure::text, p.prosecdef FROM pg_proc AS p"
        " WHERE (p.pronamespace::regnamespace::text LIKE 'mdistinct%%'"
        " OR p.proname LIKE 'mdistinct\\_%%')"
        " AND NOT %s = ANY (coalesce(p.proconfig, '{}'))",
        (SAFE_PATH,),
    ).fetchall()
    assert {name for name, _, _ in rows} == COMMITTING
    assert not any(is_definer for _, _, is_definer in rows)


def test_definers_belong_to_nobody_powerful(db: Connection) -> None:
    rows = db.execute(
        "SELECT DISTINCT p.proowner::regrole::text, r.rolsuper FROM pg_proc AS p"
        " JOIN pg_roles AS r ON r.oid = p.proowner"
        " WHERE p.pronamespace = 'mdistinct'::regnamespace OR p.proname LIKE 'mdistinct\\_%'"
    ).fetchall()
    assert dict(rows) == {"mdistinct_owner": False, "mdistinct_scheduler": False}


def test_functions_for_publishers_and_readers_print_no_plans(db: Connection) -> None:
    """PostgreSQL would print plans, with all values in them, for any caller who asks for it."""
    rows = db.execute(
        "SELECT p.oid::regprocedure::text, p.proconfig FROM pg_proc AS p"
        " WHERE p.prosecdef AND p.proowner = 'mdistinct_owner'::regrole AND (has_function_privilege"
        "('mdistinct_publisher', p.oid, 'EXECUTE')"
        " OR has_function_privilege('mdistinct_reader', p.oid, 'EXECUTE'))"
    ).fetchall()
    assert rows
    for name, settings in rows:
        for setting in ("debug_print_parse", "debug_print_rewritten", "debug_print_plan"):
            assert f"{setting}=off" in settings, name


def findings(script: str, path: Path, *options: str) -> str:
    """Return what pgspot says of a script."""
    path.write_text(script, encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", "from pgspot.cli import run; run()", *options, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not told.stderr
    return told.stdout.strip()


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_pgspot_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    """The scripts of the extension hold all SQL that the installer executes, too.

    PS002, PS010 and PS015 are about CREATE OR REPLACE and IF NOT EXISTS on what somebody else has
    made: the installer looks for that and refuses (test_names_that_others_have_taken), and
    PostgreSQL does so for an extension. It does not know PL/Python.
    """
    guard, _, script = SCRIPTS[name].partition("\n")
    assert guard.startswith("\\echo")
    ignored = [f"--ignore={code}" for code in ("PS002", "PS010", "PS015")]
    told = findings(script, tmp_path / name, *ignored, "--ignore-lang=plpython3u")
    assert told == "Errors: 0 Warnings: 0 Unknown: 0"


def test_pgspot_is_not_blind(tmp_path: Path) -> None:
    script = (
        "CREATE FUNCTION mdistinct.f() RETURNS text LANGUAGE sql SECURITY DEFINER"
        " AS $$SELECT lower('A')$$;"
    )
    assert "PS003" in findings(script, tmp_path / "unsafe.sql")


def test_identifiers_are_quoted_by_the_drivers_tools_only() -> None:
    """No name gets its quotes by hand: in a statement that would be an injection."""
    by_hand = re.compile(r"""(SELECT|FROM|INTO|TABLE|VIEW|JOIN|UPDATE|FUNCTION)\b[^'"]*\\?"\{""")
    for path in sorted((resources.sql_dir().parent / "pg_mdistinct" / "server").glob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not by_hand.search(line), f"{path.name}: {line}"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE FUNCTION public.mdistinct_publish(name, boolean) RETURNS int LANGUAGE sql"
        " AS 'SELECT 1'",
        "CREATE SCHEMA mdistinct_data",
    ],
)
def test_names_that_others_have_taken(empty_dsn: str, statement: LiteralString) -> None:
    """CREATE OR REPLACE must not build on what somebody else controls."""
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(statement)
    with pytest.raises(InstallError, match="taken by others"):
        install(empty_dsn, on_message=lambda _: None)
