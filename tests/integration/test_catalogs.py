"""`sql/` and the migrations must lead to the same database."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from pg_mdistinct.install import build, install
from tests.fix_database import Connection

_OURS = """
    n.nspname IN ('mdistinct', 'mdistinct_published', 'mdistinct_data', 'mdistinct_sources')
"""
_ACL = "(SELECT array_agg(item::text ORDER BY item::text) FROM unnest({}) AS item)"

CATALOGS = {
    "schemas": f"""
        SELECT n.nspname, n.nspowner::regrole::text, {_ACL.format("n.nspacl")},
            obj_description(n.oid, 'pg_namespace')
        FROM pg_namespace AS n WHERE {_OURS} OR n.nspname = 'public'
    """,
    "relations": f"""
        SELECT c.oid::regclass::text, c.relkind::text, c.relpersistence::text,
            c.relowner::regrole::text, {_ACL.format("c.relacl")}, c.reloptions, c.relrowsecurity,
            CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END,
            CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
            CASE WHEN c.relkind = 'i' THEN pg_get_indexdef(c.oid) END,
            obj_description(c.oid, 'pg_class')
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE {_OURS} AND c.relname NOT LIKE 'alembic_version%'
    """,
    "columns": f"""
        SELECT c.oid::regclass::text, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
            a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity::text,
            a.attgenerated::text, a.attcollation::regcollation::text,
            {_ACL.format("a.attacl")}, col_description(c.oid, a.attnum)
        FROM pg_attribute AS a
        JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE {_OURS} AND a.attnum > 0 AND c.relname NOT LIKE 'alembic_version%'
    """,
    "constraints": f"""
        SELECT k.conrelid::regclass::text, k.contypid::regtype::text, k.conname,
            pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint')
        FROM pg_constraint AS k JOIN pg_namespace AS n ON n.oid = k.connamespace
        WHERE {_OURS} AND k.conname NOT LIKE 'alembic_version%'
    """,
    "triggers": f"""
        SELECT pg_get_triggerdef(t.oid), t.tgenabled::text
        FROM pg_trigger AS t
        JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE {_OURS} AND NOT t.tgisinternal
    """,
    "types": f"""
        SELECT t.oid::regtype::text, t.typtype::text, t.typowner::regrole::text,
            {_ACL.format("t.typacl")}, t.typbasetype::regtype::text, t.typnotnull, t.typdefault,
            (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum
             WHERE enumtypid = t.oid),
            obj_description(t.oid, 'pg_type')
        FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
        WHERE {_OURS} AND t.typname NOT LIKE '%alembic_version%'
    """,
    "functions": f"""
        SELECT p.oid::regprocedure::text, p.proowner::regrole::text, {_ACL.format("p.proacl")},
            pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc')
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE {_OURS} OR (n.nspname = 'public' AND p.proname LIKE 'mdistinct\\_%')
    """,
    "default privileges": f"""
        SELECT d.defaclrole::regrole::text, d.defaclnamespace::regnamespace::text,
            d.defaclobjtype::text, {_ACL.format("d.defaclacl")}
        FROM pg_default_acl AS d
    """,
    "database": f"""
        SELECT {_ACL.format("datacl")} FROM pg_database WHERE datname = current_database()
    """,
    "extensions": "SELECT extname, extversion FROM pg_extension",
}


def catalog(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall(), key=str)


@pytest.fixture
def from_sql(new_database: Callable[..., str]) -> str:
    dsn = new_database()
    with psycopg.connect(dsn, autocommit=True) as connection:
        build.from_files(connection)
    return dsn


@pytest.fixture
def from_migrations(new_database: Callable[..., str]) -> str:
    dsn = new_database()
    install(dsn, on_message=lambda _: None)
    return dsn


def test_both_ways_lead_to_the_same_catalogs(from_sql: str, from_migrations: str) -> None:
    with psycopg.connect(from_sql) as one, psycopg.connect(from_migrations) as other:
        for name, query in CATALOGS.items():
            assert catalog(one, query) == catalog(other, query), name


def test_the_comparison_is_not_blind(from_sql: str) -> None:
    # An empty catalog on both sides would compare equal, too.
    with psycopg.connect(from_sql) as connection:
        for name in ("schemas", "relations", "columns", "constraints", "types", "functions"):
            assert catalog(connection, CATALOGS[name]), name


# They make and remove jobs, and pg_cron runs a job as the role that makes it.
OF_THE_SCHEDULER = ("mdistinct.add_job(name,text)", "mdistinct.remove_job(name)")


def test_every_object_is_the_owners_and_nothing_is_for_public(db: Connection) -> None:
    for name in ("schemas", "relations", "types", "functions"):
        for row in catalog(db, CATALOGS[name]):
            if row[0] == "public":
                continue
            owner = "mdistinct_scheduler" if row[0] in OF_THE_SCHEDULER else "mdistinct_owner"
            assert owner in row, (name, row[0])
            if name != "types":
                grants = next((item for item in row if isinstance(item, list)), [])
                assert not [grant for grant in grants if str(grant).startswith("=")], row[0]


def test_every_object_has_a_comment(db: Connection) -> None:
    for name in ("schemas", "functions"):
        assert [row[0] for row in catalog(db, CATALOGS[name]) if row[-1] is None] == []


def test_functions_spell_out_a_safe_search_path(db: Connection) -> None:
    # Procedures cannot: PostgreSQL lets none commit that has settings of its own.
    rows = db.execute(
        r"SELECT p.oid::regprocedure::text FROM pg_proc AS p"
        r" JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        r" WHERE n.nspname IN ('mdistinct', 'public') AND p.proowner::regrole::text ~ '^mdistinct_'"
        r" AND p.prokind <> 'p'"
        r" AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)"
    )
    assert [row[0] for row in rows] == []
