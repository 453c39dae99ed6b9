"""Callers who are up to something: shadowed names, malicious arguments, settings, SET ROLE."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

import pg_mdistinct
from tests.fix_database import Connection, acting_as
from tests.integration.cases import make_table, make_ward, one, publish, refused, state
from tests.security.conftest import NewRole

NASTY = (
    "'",
    '"',
    "';DROP TABLE public.ward;--",
    '"; DROP TABLE public.ward; --',
    "$$; DROP TABLE public.ward; $$",
    "\\",
    "\\'; DROP TABLE public.ward; --",
    "%",
    "%s %(x)s",
    "{}",
    "{0.__class__}",
    "größe 漢字 🙂 \u202e",
    "new\nline",
    "",
    " ",
    "x" * 70_000,
    "ward; --",
    "ward\u00a0",
)
# Every argument of every public function that takes a name or text, with the others as they ought
# to be; regclass is PostgreSQL's own to read.
CALLS = (
    "SELECT mdistinct_publish(%s)",
    "SELECT mdistinct_preview(%s)",
    "SELECT mdistinct_create_buckets(%s)",
    "SELECT mdistinct_assign_records(%s)",
    "SELECT mdistinct_split_buckets(%s)",
    "SELECT mdistinct_preview_risk(%s)",
    "SELECT mdistinct_verify(%s)",
    "SELECT mdistinct_risk(%s)",
    "SELECT mdistinct_republication_risk(%s)",
    "SELECT mdistinct_sug(%s, '1')",
    "SELECT mdistinct_sug('ward', %s)",
    "SELECT mdistinct_drop(%s)",
    "SELECT mdistinct_schedule(%s, '* * * * *')",
    "SELECT mdistinct_schedule('ward', %s)",
    "SELECT mdistinct_unschedule(%s)",
    "SELECT mdistinct_allow_update(%s, 'Flu', '{Flu}')",
    "SELECT mdistinct_load_updates(%s, 'public.model')",
    "SELECT mdistinct_register('new', 'ward', %s, '{age}', 'disease', 2)",
    "SELECT mdistinct_register('new', 'ward', 'id', ARRAY[%s]::name[], 'disease', 2)",
    "SELECT mdistinct_register('new', 'ward', 'id', '{age}', %s, 2)",
    "SELECT mdistinct_register('new', 'ward', 'id', '{age}', 'disease', 2, %s)",
    "SELECT mdistinct_alter(%s)",
    "SELECT mdistinct_alter('ward', qi_columns => ARRAY['age', %s]::name[])",
    "SELECT mdistinct_alter('ward', variant => %s)",
    "SELECT mdistinct_index(%s)",
    "SELECT mdistinct_learn_updates(%s, 'ward', 'id', 'age', 'disease')",
    "SELECT mdistinct_learn_updates('ward', 'ward', %s, 'age', 'disease')",
    "SELECT mdistinct_learn_updates('ward', 'ward', 'id', %s, 'disease')",
    "SELECT mdistinct_learn_updates('ward', 'ward', 'id', 'age', %s)",
    "SELECT mdistinct_learn_updates('ward', 'ward', 'id', 'age', 'disease', possible => %s)",
    "SELECT mdistinct_learn_updates('ward', 'ward', 'id', 'age', 'disease', max_gap => %s)",
    "SELECT mdistinct_estimate(%s)",
    "SELECT mdistinct_estimate('ward', predicate => jsonb_build_object(%s::text, 1))",
    "SELECT mdistinct_estimate('ward', predicate => jsonb_build_object('disease', %s::text))",
    "SELECT mdistinct_estimate('ward', predicate => jsonb_build_object('age', %s::text))",
    "SELECT mdistinct_estimate('ward', measure => %s)",
    "SELECT mdistinct.run_status(1, %s)",
)
# Any text is a name or a value here: what becomes of it has a test of its own.
ACCEPTED = Counter({"mdistinct_register": 1, "mdistinct_allow_update": 2})
TEXTS = ("name", "text", "jsonb")
FORESEEN = ("22", "42704", "42703", "42809", "42701", "02000", "55000", "MD")


def test_malicious_arguments(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("CREATE TABLE public.model (old_value text, new_value text)")
    before = state(db)
    for call in CALLS:
        for text in NASTY:
            told = _told(db, call, text)
            assert told is None or told.startswith("pg_mdistinct: "), f"{call}, {text[:40]}: {told}"
        assert state(db) == before, call
    assert one(db, "SELECT count(*) FROM public.ward") == 12


def test_no_text_argument_is_left_out(db: Connection) -> None:
    taken = db.execute(
        "SELECT p.proname, t::regtype::text FROM pg_proc AS p, unnest(p.proargtypes) AS t"
        " WHERE p.proname LIKE 'mdistinct\\_%' AND p.pronamespace = 'public'::regnamespace"
    ).fetchall()
    texts = Counter(name for name, kind in taken if kind.removesuffix("[]") in TEXTS)
    tried = Counter(call.split("(")[0].removeprefix("SELECT ") for call in CALLS)
    assert len(texts) > 10
    assert texts - ACCEPTED - tried == Counter()


def _told(db: Connection, call: str, text: str) -> str | None:
    try:
        db.execute(call, (text,))
    except psycopg.Error as error:
        foreseen = (error.sqlstate or "").startswith(FORESEEN)
        return (error.diag.message_primary or "") if foreseen else f"{error.sqlstate} {error}"
    return None


def test_malicious_names_and_values_that_are_accepted(db: Connection) -> None:
    make_table(db)
    for i, text in enumerate(name for name in NASTY if 0 < len(name) < 40):
        db.execute("UPDATE public.ward SET disease = %s WHERE id %% 2 = 0", (text,))
        db.execute("SELECT mdistinct_register(%s, 'ward', 'id', '{age}', 'disease', 2)", (text,))
        for value in (text, "Flu", "Pneumonia", "Gastritis", "Dyspepsia"):
            db.execute(
                "SELECT mdistinct_allow_update(%s, %s, %s)",
                (text, value, [text, "Flu", value + "x"]),
            )
        publish(db, text)
        assert one(db, "SELECT count(*) FROM mdistinct_published.releases") == i + 1
        assert db.execute("SELECT * FROM mdistinct_verify(%s)", (text,)).fetchall() == []
    assert one(db, "SELECT count(*) FROM public.ward") == 12


@pytest.fixture
def shadows(db: Connection) -> str:
    """A schema full of things that bear the names of PostgreSQL's own, and write down their use."""
    db.execute("CREATE SCHEMA shadow")
    db.execute("CREATE TABLE shadow.seen (who name, what text)")
    db.execute("GRANT USAGE ON SCHEMA shadow TO PUBLIC")
    db.execute("GRANT ALL ON shadow.seen TO PUBLIC")
    body = (
        "LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shadow.seen VALUES (current_user, '{}');"
        " RETURN {}; END $$"
    )
    for name, arguments, result, value in (
        ("now", "", "timestamptz", "NULL"),
        ("current_setting", "text", "text", "'none'"),
        ("pg_has_role", "name, name, text", "boolean", "true"),
        ("unnest", "text[]", "text", "NULL"),
        ("unnest", "integer[]", "integer", "NULL"),
        ("quote_ident", "text", "text", "'x'"),
        ("int4send", "integer", "bytea", "NULL"),
        ("format", "text, text", "text", "'x'"),
        ("trim_scale", "numeric", "numeric", "1"),
        ("clock_timestamp", "", "timestamptz", "NULL"),
        ("current_database", "", "name", "'x'"),
        ("pg_try_advisory_xact_lock", "integer, integer", "boolean", "true"),
    ):
        db.execute(
            f"CREATE FUNCTION shadow.{name}({arguments}) RETURNS {result} "
            + body.format(name, value)
        )
    for kind in ("name", "text", "integer", "oid", "bigint", '"char"', "xid8", "uuid"):
        for sign, function in (("=", "equal"), ("<>", "unequal"), ("<", "less"), (">", "more")):
            db.execute(
                f"CREATE FUNCTION shadow.{function}({kind}, {kind}) RETURNS boolean "
                + body.format(f"{kind} {sign}", "true")
            )
            db.execute(
                f"CREATE OPERATOR shadow.{sign} (LEFTARG = {kind}, RIGHTARG = {kind},"
                f" FUNCTION = shadow.{function})"
            )
    for kind in ("name", "text", "int4", "float8", "oid", "regclass", "uuid", "timestamptz"):
        db.execute(f"CREATE DOMAIN shadow.{kind} AS pg_catalog.int4")
    for table in ("pg_class", "pg_proc", "pg_settings", "datasets", "updates", "runs"):
        db.execute(f"CREATE TABLE shadow.{table} (dataset pg_catalog.name)")
        db.execute(f"GRANT ALL ON shadow.{table} TO PUBLIC")
    return "shadow, pg_catalog"


def test_shadowed_names_are_never_used(db: Connection, shadows: str, new_role: NewRole) -> None:
    make_ward(db)
    db.execute("GRANT SELECT ON public.ward TO mdistinct_admin")
    db.execute("CREATE TABLE public.model (old_value text, new_value text)")
    db.execute("INSERT INTO public.model VALUES ('Flu', 'Flu'), ('Flu', 'Gastritis')")
    db.execute("GRANT SELECT ON public.model TO mdistinct_admin")
    admin = new_role("admin", "mdistinct_admin")
    publisher = new_role("publisher", "mdistinct_publisher")
    for role in (publisher, admin, "postgres"):
        with acting_as(db, role):
            db.execute(f"SET search_path = {shadows}")
            # Temporary relations come before everything unless the path says otherwise.
            for table in ("pg_class", "datasets", "updates", "releases", "audit_trail"):
                db.execute(f"CREATE TEMPORARY TABLE {table} (dataset pg_catalog.int4)")
            db.execute("SELECT public.mdistinct_publish('ward')")
            db.execute("SELECT public.mdistinct_preview('ward')")
            db.execute("CALL public.mdistinct_publish_all()")
            if role != publisher:
                _call_as_admin(db)
            db.execute("DISCARD TEMP")
            db.execute("RESET search_path")
    # psycopg's parameters and these statements themselves look up names as anybody's would.
    assert db.execute("SELECT DISTINCT who, what FROM shadow.seen").fetchall() == []


def _call_as_admin(db: Connection) -> None:
    for call in (
        "SELECT public.mdistinct_allow_update('ward', 'Flu', '{Flu,Gastritis,Pneumonia}')",
        "SELECT public.mdistinct_load_updates('ward', 'public.model')",
        "SELECT public.mdistinct_allow_update('ward', 'Flu', '{Flu,Gastritis,Pneumonia}')",
        "SELECT public.mdistinct_register('x', 'public.ward', 'id', '{age}', 'disease', 2)",
        "SELECT public.mdistinct_drop('x')",
        "SELECT * FROM public.mdistinct_create_buckets('ward')",
        "SELECT * FROM public.mdistinct_assign_records('ward')",
        "SELECT * FROM public.mdistinct_split_buckets('ward')",
        "SELECT * FROM public.mdistinct_preview_risk('ward')",
        "SELECT * FROM public.mdistinct_verify('ward')",
        "SELECT * FROM public.mdistinct_risk('ward')",
        "SELECT public.mdistinct_republication_risk('ward')",
        "SELECT * FROM public.mdistinct_sug('ward', '1')",
        "TABLE mdistinct.audit",
        "TABLE mdistinct.schedule",
    ):
        db.execute(call)


def test_a_temporary_table_catches_no_snapshot(db: Connection) -> None:
    """A preview works on a temporary table: one that the caller has made must not be taken."""
    make_ward(db)
    with acting_as(db, "mdistinct_publisher"):
        db.execute(
            "CREATE TEMPORARY TABLE mdistinct_snapshot (release int, first int, record_id text[],"
            " q1 int[], label text[])"
        )
        with pytest.raises(psycopg.errors.DuplicateTable):
            db.execute("SELECT mdistinct_preview('ward')")
        assert one(db, "SELECT count(*) FROM pg_temp.mdistinct_snapshot") == 0


@pytest.mark.parametrize("role", ["mdistinct_admin", "mdistinct_owner", "postgres"])
def test_no_role_is_a_way_to_another(db: Connection, new_role: NewRole, role: str) -> None:
    make_ward(db)
    publisher = new_role("publisher", "mdistinct_publisher", login=True)
    with psycopg.connect(db.info.dsn, user=publisher, autocommit=True) as session:
        for statement in (f"SET ROLE {role}", f"SET SESSION AUTHORIZATION {role}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(statement)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT set_config('role', %s, false)", (role,))
        publish(session)
        assert one(session, "SELECT current_user::text") == publisher


def test_a_caller_is_judged_by_the_role_that_he_has_set(db: Connection) -> None:
    """A superuser who acts as a publisher hears what a publisher hears."""
    make_ward(db)
    db.execute("UPDATE public.ward SET disease = 'Secret' WHERE id = 4")
    with acting_as(db, "mdistinct_publisher"), pytest.raises(psycopg.Error) as caught:
        publish(db)
    assert "Secret" not in str(caught.value)
    with refused(db, "MD001", '"Secret"'):
        publish(db)


SETTINGS = (
    "plpython3.path",
    "plpython3u.path",
    "plpython.python_path",
    "python.path",
    "python.home",
    "pg_mdistinct.code",
    "mdistinct.code",
    "mdistinct.installer",
)


def plant(db: Connection) -> str:
    """Put a package of our name into a folder of the server, and return the folder."""
    db.execute(
        "CREATE FUNCTION pg_temp.plant() RETURNS text LANGUAGE plpython3u AS $$\n"
        "import pathlib, tempfile\n"
        "folder = pathlib.Path(tempfile.mkdtemp(prefix='mdistinct-other-'))\n"
        "(folder / 'pg_mdistinct').mkdir()\n"
        "text = 'raise AssertionError(\"other code\")'\n"
        "(folder / 'pg_mdistinct' / '__init__.py').write_text(text)\n"
        "return str(folder)\n$$"
    )
    return str(one(db, "SELECT pg_temp.plant()"))


def uproot(db: Connection, folder: str) -> None:
    db.execute(
        "CREATE FUNCTION pg_temp.uproot(folder text) RETURNS void LANGUAGE plpython3u AS"
        " $$import shutil; shutil.rmtree(folder)$$"
    )
    db.execute("SELECT pg_temp.uproot(%s)", (folder,))


def test_settings_do_not_lead_to_other_code(db: Connection, dsn: str, new_role: NewRole) -> None:
    """No setting that a user can make says where Python looks.

    What another PL/Python function does to the interpreter of its session is a superuser's doing:
    nobody else can make one.
    """
    make_ward(db)
    folder = plant(db)
    publisher = new_role("publisher", "mdistinct_publisher", login=True)
    try:
        with psycopg.connect(dsn, user=publisher, autocommit=True) as session:
            for setting in SETTINGS:
                session.execute("SELECT set_config(%s, %s, false)", (setting, folder))
            for setting in ("session_preload_libraries", "dynamic_library_path"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(f"SET {setting} = 'evil'")
            assert publish(session)["release"] == 1
    finally:
        uproot(db, folder)
    with pytest.raises(psycopg.errors.InsufficientPrivilege), acting_as(db, publisher):
        db.execute("CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE plpython3u AS 'return 1'")


def test_a_folder_on_the_path_of_python_does_not_come_first(db: Connection, dsn: str) -> None:
    """As PYTHONPATH would put it there: the plugin's own folder comes before it."""
    make_ward(db)
    folder = plant(db)
    db.execute(
        "CREATE FUNCTION public.lead_astray(folder text) RETURNS void LANGUAGE plpython3u AS"
        " $$import sys; sys.path.insert(0, folder)$$"
    )
    try:
        with psycopg.connect(dsn, autocommit=True) as session:
            session.execute("SELECT public.lead_astray(%s)", (folder,))
            assert publish(session)["release"] == 1
    finally:
        uproot(db, folder)


def test_other_code_that_was_loaded_before_is_not_used(db: Connection, dsn: str) -> None:
    make_ward(db)
    db.execute(
        "CREATE FUNCTION public.load_other(version text) RETURNS void LANGUAGE plpython3u AS $$\n"
        "import sys, types\n"
        "other = types.ModuleType('pg_mdistinct')\n"
        "other.__file__, other.__version__ = '/elsewhere/pg_mdistinct/__init__.py', version\n"
        "sys.modules['pg_mdistinct'] = other\n$$"
    )
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute("SELECT public.load_other(%s)", (pg_mdistinct.__version__,))
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has loaded"):
            publish(session)
