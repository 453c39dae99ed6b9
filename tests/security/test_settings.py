"""Whatever a caller has set in his session, the release is the same."""

from __future__ import annotations

import psycopg
import pytest

from tests.fix_database import Connection, acting_as
from tests.integration.cases import make_ward, one, publish, state
from tests.security.conftest import NewRole

# Two records make one group, whose row is the same whatever chance decides.
COLUMNS = {
    "i": ("integer", "1", "2"),
    "n": ("numeric", "1.50", "123456789.000000001"),
    "f": ("double precision", "0.1", "1e-17"),
    "d": ("date", "2020-02-03", "2021-12-31"),
    "t": ("timestamp", "2020-02-03 04:05:06.789", "2021-01-01"),
    "z": ("timestamptz", "2020-02-03 04:05:06+00", "2021-01-01 00:00:00+00"),
    "v": ("interval", "1 day 02:03:04", "-1 mon"),
    "b": ("bytea", "\\x00ff5c", "\\x27"),
    "s": ("text", "back\\slash", "it's NULL"),
    "a": ("text[]", '{NULL,"NULL"}', "{}"),
    "e": ("money", "1234.56", "0.01"),
    "o": ("boolean", "true", "false"),
}
SETTINGS = {
    "search_path": "nowhere",
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "backslash_quote": "on",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "row_security": "off",
    "default_table_access_method": "heap2",
    "default_transaction_isolation": "serializable",
    "default_toast_compression": "pglz",
    "check_function_bodies": "off",
    "plan_cache_mode": "force_generic_plan",
    "constraint_exclusion": "on",
    "enable_hashjoin": "off",
    "enable_seqscan": "off",
    "enable_sort": "off",
    "jit_above_cost": "0",
    "force_parallel": "regress",
    "parallel_setup_cost": "0",
    "work_mem": "64kB",
    "xmloption": "document",
    "client_encoding": "LATIN1",
    "statement_timeout": "10min",
    "log_parameter_max_length_on_error": "-1",
}
RENAMED = {"force_parallel": ("debug_parallel_query", "force_parallel_mode")}


def test_the_release_is_the_same_under_any_setting(db: Connection, new_role: NewRole) -> None:
    db.execute("CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler")
    _make_table(db)
    everybody = new_role("everybody", "mdistinct_admin")
    expected = _published(db, "normal")
    assert len(expected) == 2
    for name, value in SETTINGS.items():
        with acting_as(db, everybody):
            _set(db, name, value)
            _register(db, name)
            db.execute("SELECT public.mdistinct_publish(%s::pg_catalog.name)", (name,))
        db.execute("RESET ALL")
        assert _rows(db, name) == expected, name
        assert db.execute("SELECT * FROM mdistinct_verify(%s)", (name,)).fetchall() == []
    registered = db.execute(
        "SELECT DISTINCT id_type, qi_types, sensitive_type FROM mdistinct.datasets"
    ).fetchall()
    assert len(registered) == 1


def _make_table(db: Connection) -> None:
    declared = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
    db.execute(f"CREATE TABLE public.t (id timestamptz, {declared}, sick timestamptz)")
    db.execute("GRANT SELECT ON public.t TO mdistinct_admin")
    for i in (1, 2):
        values = [column[i] for column in COLUMNS.values()]
        places = ", ".join(f"%s::{kind}" for kind, _, _ in COLUMNS.values())
        db.execute(
            f"INSERT INTO public.t VALUES ('2020-01-0{i} UTC', {places}, '2020-03-0{i} UTC')",
            values,
        )


def _register(db: Connection, dataset: str) -> None:
    db.execute(
        "SELECT public.mdistinct_register(%s::pg_catalog.name, 'public.t', 'id', %s, 'sick', 2)",
        (dataset, list(COLUMNS)),
    )
    sick = ["2020-03-01T00:00:00Z", "2020-03-02T00:00:00Z"]
    for value in sick:
        db.execute(
            "SELECT public.mdistinct_allow_update(%s::pg_catalog.name, %s, %s)",
            (dataset, value, sick),
        )


def _published(db: Connection, dataset: str) -> list[tuple[object, ...]]:
    _register(db, dataset)
    publish(db, dataset)
    return _rows(db, dataset)


def _rows(db: Connection, dataset: str) -> list[tuple[object, ...]]:
    return db.execute(
        f'SELECT t::text FROM mdistinct_published."{dataset}" AS t ORDER BY 1'
    ).fetchall()


def _set(db: Connection, name: str, value: str) -> None:
    for known in RENAMED.get(name, (name,)):
        if one(db, "SELECT count(*) FROM pg_settings WHERE name = %s", (known,)):
            db.execute("SELECT pg_catalog.set_config(%s, %s, false)", (known, value))


def test_a_tablespace_that_the_owner_may_not_use(db: Connection, new_role: NewRole) -> None:
    """A caller's default_tablespace decides nothing unless somebody has given our owner a right."""
    make_ward(db)
    before = state(db)
    with acting_as(db, new_role("publisher", "mdistinct_publisher")):
        db.execute("SET default_tablespace = pg_global")
        with pytest.raises(psycopg.Error):
            publish(db)
        db.execute("RESET default_tablespace")
    assert state(db) == before


def test_a_release_is_on_the_disk_before_anybody_sees_it(db: Connection) -> None:
    """A crash must not take back what was read: the next release would not know of it."""
    make_ward(db)
    db.execute("SET synchronous_commit = off")
    with db.transaction():
        publish(db)
        assert one(db, "SHOW synchronous_commit") == "on"
    assert one(db, "SHOW synchronous_commit") == "off"
    db.execute("SET synchronous_commit = local")
    with db.transaction():
        publish(db)
        assert one(db, "SHOW synchronous_commit") == "local"


def test_no_setting_prints_what_statements_work_with(db: Connection) -> None:
    """PostgreSQL prints plans, and the arrays in them, to any caller who asks for it."""
    make_ward(db, records=24)
    publish(db)
    printed: list[str] = []
    db.add_notice_handler(
        lambda notice: printed.append(f"{notice.message_primary} {notice.message_detail}")
    )
    with acting_as(db, "mdistinct_publisher"):
        for setting in ("debug_print_parse", "debug_print_rewritten", "debug_print_plan"):
            db.execute(f"SET {setting} = on")
        db.execute("SET client_min_messages = debug1")
        publish(db)
        db.execute("SELECT mdistinct_preview('ward')")
        db.execute("RESET ALL")
    # That of the caller's own statements is there: the test is not blind.
    assert any("mdistinct_publish" in text or "FUNCEXPR" in text for text in printed)
    # An array begins with its number of dimensions, an offset, and the type of its elements.
    arrays = [text for text in printed if ":consttype 1007 " in text or ":consttype 1022 " in text]
    assert arrays == []
