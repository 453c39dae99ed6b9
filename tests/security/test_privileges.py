"""Who may do what with each object of the plugin, against privileges.txt, which people can read.

Where a change of it is meant, write it anew and look at the difference before you commit it:
PG_MDISTINCT_RENEW=1 pytest tests/security/test_privileges.py
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.fix_database import Connection, acting_as
from tests.integration.cases import allow_all, make_table, make_ward, one, publish
from tests.security.conftest import NewRole

SNAPSHOT = Path(__file__).with_name("privileges.txt")
RENEW = "PG_MDISTINCT_RENEW"
HEAD = """\
Who may do what with each object of the plugin, once the dataset "ward" has one release.

schemas, databases   U use it, C create in it, T make temporary tables
tables, views        r read, i insert, u update, d delete, t truncate, R refer to it, g set triggers
sequences            r read, u set, U use
functions            X execute
types                U use

Superusers may do everything and are left out. "table owner" owns the source of "ward"; "nobody" has
no rights but those of PUBLIC. Row types of tables are left out: PostgreSQL lets PUBLIC use them,
and the schema that they are in is closed.
"""
COLUMNS = {
    "owner": "mdistinct_owner",
    "admin": "mdistinct_admin",
    "publisher": "mdistinct_publisher",
    "scheduler": "mdistinct_scheduler",
    "reader": "mdistinct_reader",
}
SCHEMAS = "('mdistinct', 'mdistinct_published', 'mdistinct_data', 'mdistinct_sources')"
TABLE = {
    "r": "SELECT",
    "i": "INSERT",
    "u": "UPDATE",
    "d": "DELETE",
    "t": "TRUNCATE",
    "R": "REFERENCES",
    "g": "TRIGGER",
}
# For each kind: the objects, PostgreSQL's function for their privileges, and these by letter.
OBJECTS = {
    "database": (
        "SELECT 'the database', oid FROM pg_database WHERE datname = current_database()",
        "has_database_privilege",
        {"C": "CREATE", "T": "TEMPORARY"},
    ),
    "schema": (
        f"SELECT nspname, oid FROM pg_namespace WHERE nspname IN {SCHEMAS}",
        "has_schema_privilege",
        {"U": "USAGE", "C": "CREATE"},
    ),
    "table": (
        "SELECT c.oid::regclass::text, c.oid FROM pg_class AS c JOIN pg_namespace AS n"
        f" ON n.oid = c.relnamespace WHERE n.nspname IN {SCHEMAS} AND c.relkind IN ('r', 'p')",
        "has_table_privilege",
        TABLE,
    ),
    "view": (
        "SELECT c.oid::regclass::text, c.oid FROM pg_class AS c JOIN pg_namespace AS n"
        f" ON n.oid = c.relnamespace WHERE n.nspname IN {SCHEMAS} AND c.relkind IN ('v', 'm', 'f')",
        "has_table_privilege",
        TABLE,
    ),
    "sequence": (
        "SELECT c.oid::regclass::text, c.oid FROM pg_class AS c JOIN pg_namespace AS n"
        f" ON n.oid = c.relnamespace WHERE n.nspname IN {SCHEMAS} AND c.relkind = 'S'",
        "has_sequence_privilege",
        {"r": "SELECT", "u": "UPDATE", "U": "USAGE"},
    ),
    "function": (
        "SELECT p.oid::regproc::text || '(' || oidvectortypes(p.proargtypes) || ')', p.oid"
        " FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        f" WHERE n.nspname IN {SCHEMAS} OR p.proname LIKE 'mdistinct\\_%'",
        "has_function_privilege",
        {"X": "EXECUTE"},
    ),
    "type": (
        "SELECT t.oid::regtype::text, t.oid FROM pg_type AS t"
        " JOIN pg_namespace AS n ON n.oid = t.typnamespace LEFT JOIN pg_class AS c"
        " ON c.oid = t.typrelid"
        f" WHERE n.nspname IN {SCHEMAS} AND t.typcategory <> 'A' AND c.relkind IS NOT DISTINCT FROM"
        " CASE t.typtype WHEN 'c' THEN 'c'::\"char\" END",
        "has_type_privilege",
        {"U": "USAGE"},
    ),
}


def matrix(db: Connection, roles: dict[str, str]) -> str:
    """Return one column for each role, and one line for each object, whose name comes last."""
    lines = [HEAD]
    for kind, (query, tester, letters) in OBJECTS.items():
        widths = [max(len(role), len(letters)) + 2 for role in roles]
        lines.append(_line(roles, widths, ""))
        for name, oid in sorted(db.execute(query).fetchall()):
            cells = [_held(db, tester, letters, role, oid) or "." for role in roles.values()]
            lines.append(_line(cells, widths, f"{kind} {name}"))
        lines.append("")
    return "\n".join(lines)


def _line(cells: Iterable[str], widths: Sequence[int], name: str) -> str:
    columns = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return ("".join(columns) + name).rstrip()


def _held(db: Connection, tester: str, letters: dict[str, str], role: str, oid: int) -> str:
    test = sql.SQL("SELECT {}(%s, %s::oid, p) FROM unnest(%s::text[]) WITH ORDINALITY AS t (p, n)")
    rows = db.execute(
        test.format(sql.Identifier(tester)) + sql.SQL(" ORDER BY n"),
        (role, oid, list(letters.values())),
    )
    return "".join(letter for letter, (yes,) in zip(letters, rows, strict=True) if yes)


def test_the_matrix_is_as_it_was_agreed(db: Connection, mallory: str, new_role: NewRole) -> None:
    make_table(db)
    db.execute(sql.SQL("ALTER TABLE ward OWNER TO {}").format(sql.Identifier(mallory)))
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    allow_all(db, "ward")
    publish(db)
    roles = {**COLUMNS, "table owner": mallory, "nobody": new_role("nobody")}
    found = matrix(db, roles)
    if os.environ.get(RENEW):
        SNAPSHOT.write_text(found, encoding="utf-8")
    agreed = SNAPSHOT.read_text(encoding="utf-8")
    if found != agreed:
        difference = difflib.unified_diff(
            agreed.splitlines(), found.splitlines(), "privileges.txt", "this database", lineterm=""
        )
        pytest.fail("\n".join([*difference, f"If this is meant: {RENEW}=1 pytest {__file__}"]))


def test_nobody_stands_for_public(db: Connection, new_role: NewRole) -> None:
    """The snapshot is not blind: what PUBLIC gets shows up in the column of nobody."""
    db.execute("GRANT SELECT ON mdistinct.updates TO PUBLIC")
    changed = matrix(db, {"nobody": new_role("nobody")})
    assert re.search(r"^r +table mdistinct\.updates$", changed, re.MULTILINE)


@pytest.mark.parametrize(
    ("catalog", "acl", "kind", "owner", "ours"),
    [
        ("pg_namespace", "nspacl", "n", "nspowner", f"o.nspname IN {SCHEMAS}"),
        ("pg_class", "relacl", "r", "relowner", "n.nspname IS NOT NULL AND o.relkind <> 'S'"),
        ("pg_class", "relacl", "s", "relowner", "n.nspname IS NOT NULL AND o.relkind = 'S'"),
        (
            "pg_proc",
            "proacl",
            "f",
            "proowner",
            "n.nspname IS NOT NULL OR o.proname LIKE 'mdistinct\\_%'",
        ),
        (
            "pg_type",
            "typacl",
            "T",
            "typowner",
            "n.nspname IS NOT NULL AND o.typrelid = 0 AND o.typcategory <> 'A'",
        ),
    ],
)
def test_public_has_nothing(
    db: Connection, catalog: str, acl: str, kind: str, owner: str, ours: str
) -> None:
    """Also where no list of rights is stored, and PostgreSQL's defaults hold."""
    make_ward(db)
    publish(db)
    schema = {"pg_namespace": "o.oid"}.get(catalog, f"o.{acl[:3]}namespace")
    rows = db.execute(
        f"SELECT o.oid, a.privilege_type FROM {catalog} AS o"
        f" LEFT JOIN pg_namespace AS n ON n.oid = {schema} AND n.nspname IN {SCHEMAS}"
        f" CROSS JOIN LATERAL aclexplode(coalesce(o.{acl}, acldefault('{kind}', o.{owner}))) AS a"
        f" WHERE ({ours}) AND a.grantee = 0"
    ).fetchall()
    assert rows == []


def test_no_rights_on_single_columns(db: Connection) -> None:
    make_ward(db)
    publish(db)
    rows = db.execute(
        "SELECT attrelid::regclass FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid"
        f" JOIN pg_namespace AS n ON n.oid = relnamespace WHERE n.nspname IN {SCHEMAS}"
        " AND attacl IS NOT NULL"
    ).fetchall()
    assert rows == []


def test_none_of_the_roles_is_powerful(db: Connection) -> None:
    rows = db.execute(
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mdistinct\\_%' AND (rolsuper"
        " OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls"
        " OR rolcanlogin AND rolname <> 'mdistinct_scheduler')"
    ).fetchall()
    assert rows == []
    admins = "pg_read_all_data pg_write_all_data pg_read_server_files pg_execute_server_program"
    for power in admins.split():
        for role in COLUMNS.values():
            assert not one(db, "SELECT pg_has_role(%s, %s, 'MEMBER')", (role, power)), role


def test_whoever_publishes_needs_no_right_on_the_source(
    db: Connection, mallory: str, new_role: NewRole
) -> None:
    make_table(db)
    db.execute(sql.SQL("ALTER TABLE ward OWNER TO {}").format(sql.Identifier(mallory)))
    db.execute("SELECT mdistinct_register('ward', 'ward', 'id', '{age}', 'disease', 2)")
    allow_all(db, "ward")
    publisher = new_role("publisher", "mdistinct_publisher")
    with acting_as(db, publisher):
        assert publish(db)["records"] == 12
        for secret in (
            "public.ward",
            "mdistinct.ward_membership",
            "mdistinct_data.ward_versions",
            "mdistinct_published.ward",
            "mdistinct.audit",
            "mdistinct_sources.ward()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"SELECT * FROM {secret}")


def test_the_part_that_writes_cannot_be_used_to_read_what_one_may_not(
    db: Connection, new_role: NewRole
) -> None:
    """An admin may call create_dataset himself, past the check that he can read the source."""
    make_table(db)
    admin = new_role("admin", "mdistinct_admin")
    with acting_as(db, admin):
        db.execute(
            "SELECT mdistinct.create_dataset('ward', %s, 'id', '{age}', 'disease', 2,"
            " 'm-distinct', NULL)",
            (one(db, "SELECT 'public.ward'::regclass::oid"),),
        )
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            publish(db)
        db.execute(
            "CREATE FUNCTION mdistinct_sources.ward()"
            " RETURNS TABLE (record_id text[], q1 int[], label text[])"
            " LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RETURN QUERY SELECT"
            " array_agg(id::text), array_agg(age), array_agg(disease) FROM public.ward; END$$"
        )
        db.execute(
            "CREATE FUNCTION mdistinct_sources.ward(text) RETURNS text LANGUAGE sql"
            " SECURITY DEFINER AS 'SELECT $1'"
        )
        db.execute(
            "CREATE FUNCTION mdistinct_sources.ward(boolean) RETURNS oid LANGUAGE sql"
            " SECURITY DEFINER AS $$SELECT 'public.ward'::regclass::oid$$"
        )
        allow_all(db, "ward")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not be read"):
            publish(db)
