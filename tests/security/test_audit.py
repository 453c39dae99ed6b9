"""The audit trail: every call leaves a trace, failures and killed ones too, and nobody edits it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from pg_mdistinct.server import audit
from pg_mdistinct.server.spool import FOLDER, Spool, is_alive, this_process
from tests.concurrency.sessions import Background
from tests.fix_database import Connection, acting_as
from tests.integration.cases import make_table, make_ward, one, publish, state
from tests.security.conftest import NewRole

# Calls others of the list for each dataset, and reads what is published already.
NOT_AUDITED = {"publish_all", "estimate"}


def trail(db: Connection, condition: str = "true") -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            f"SELECT * FROM mdistinct.audit WHERE {condition} ORDER BY began_at"
        ).fetchall()


def last(db: Connection, action: str) -> dict[str, Any]:
    return trail(db, f"action = '{action}'")[-1]


def test_who_did_what_and_how_it_went(db: Connection, dsn: str, new_role: NewRole) -> None:
    make_ward(db)
    name = new_role("pat", "mdistinct_publisher", "mdistinct_admin", login=True)
    with psycopg.connect(dsn, user=name, autocommit=True) as session:
        session.execute("SELECT mdistinct_publish('ward', wait => true)")
        with acting_as(session, "mdistinct_publisher"):
            publish(session)
        session.execute("SELECT * FROM mdistinct_verify('ward')")
    first, second = trail(db, "action = 'publish'")
    assert (first["login"], first["role"]) == (name, name)
    assert (second["login"], second["role"]) == (name, "mdistinct_publisher")
    assert first["dataset"] == "ward"
    assert first["options"] == {"wait": True}
    assert first["outcome"] == second["outcome"] == "succeeded"
    assert first["result"]["release"] == 1
    assert second["result"]["release"] == 2
    assert first["began_at"] < first["ended_at"] < second["began_at"]
    assert last(db, "verify")["outcome"] == "succeeded"


def test_what_changed_the_model_is_there_to_the_letter(db: Connection) -> None:
    make_ward(db)
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Gastritis}', '{0.25,0.75}')")
    assert last(db, "allow_update")["options"] == {
        "old_value": "Flu",
        "new_values": ["Flu", "Gastritis"],
        "probabilities": [0.25, 0.75],
    }
    with pytest.raises(psycopg.Error):
        db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}', %s)", ([math.nan],))
    assert last(db, "allow_update")["options"]["probabilities"] == ["nan"]
    assert last(db, "register")["options"]["qi_columns"] == ["age"]
    db.execute("CREATE TABLE public.model AS SELECT 'Flu' AS old_value, 'Flu' AS new_value")
    db.execute("SELECT mdistinct_load_updates('ward', 'public.model')")
    assert last(db, "load_updates")["outcome"] == "succeeded"


def test_failures_are_there_although_they_are_undone(db: Connection) -> None:
    make_ward(db)
    db.execute("UPDATE ward SET disease = 'Unheard' WHERE id = 1")
    with pytest.raises(psycopg.Error):
        publish(db)
    failed = last(db, "publish")
    assert (failed["outcome"], failed["sqlstate"]) == ("failed", "MD001")
    assert "Unheard" in failed["message"]
    # The table has it when the next call that writes has taken it over.
    assert one(db, "SELECT count(*) FROM mdistinct.audit_trail WHERE outcome = 'failed'") == 0
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
    assert one(db, "SELECT count(*) FROM mdistinct.audit_trail WHERE outcome = 'failed'") == 1
    assert trail(db, "outcome = 'failed'") == [failed]


def test_every_public_function_leaves_a_trace(db: Connection) -> None:
    """Also where it is called with nothing that it can use."""
    functions = db.execute(
        "SELECT p.proname, p.pronargs FROM pg_proc AS p WHERE p.proname LIKE 'mdistinct\\_%'"
    ).fetchall()
    assert len(functions) > 10
    for name, count in functions:
        action = name.removeprefix("mdistinct_")
        if action in NOT_AUDITED:
            continue
        with pytest.raises(psycopg.Error):
            db.execute(f"SELECT public.{name}({', '.join(['NULL'] * count)})")
        assert last(db, action)["outcome"] == "failed", name


def test_parts_that_are_called_by_themselves_leave_a_trace(db: Connection) -> None:
    """An admin may call the functions that write without those that check first."""
    make_table(db)
    oid = one(db, "SELECT 'public.ward'::regclass::oid")
    with acting_as(db, "mdistinct_admin"):
        db.execute(
            "SELECT mdistinct.create_dataset('ward', %s, 'id', '{age}', 'disease', 2,"
            " 'm-distinct', NULL)",
            (oid,),
        )
    assert last(db, "register")["role"] == "mdistinct_admin"


def test_one_call_is_one_row(db: Connection) -> None:
    make_ward(db)
    publish(db)
    db.execute("SELECT mdistinct_preview('ward')")
    db.execute("SELECT mdistinct_drop('ward')")
    assert Counter(row["action"] for row in trail(db)) == {
        "register": 1,
        "allow_update": 4,
        "publish": 1,
        "preview": 1,
        "drop": 1,
    }


def test_what_the_caller_takes_back(db: Connection) -> None:
    make_ward(db)
    publish(db)
    with db.transaction(force_rollback=True):
        publish(db)
        assert last(db, "publish")["outcome"] == "succeeded"
    assert last(db, "publish")["outcome"] == "rolled back"
    with db.transaction():
        with db.transaction(force_rollback=True):
            publish(db)
        db.execute("SELECT 1")
    outcomes = [row["outcome"] for row in trail(db, "action = 'publish'")]
    assert outcomes == ["succeeded", "rolled back", "rolled back"]
    publish(db)
    outcomes = [row["outcome"] for row in trail(db, "action = 'publish'")]
    assert outcomes == ["succeeded", "rolled back", "rolled back", "succeeded"]


def test_moving_lines_that_is_taken_back_loses_and_doubles_nothing(db: Connection) -> None:
    make_ward(db)
    # The file is tidied up when it has grown.
    for _ in range(25):
        with pytest.raises(psycopg.Error):
            db.execute("SELECT mdistinct_allow_update('nope', %s, '{Flu}')", ("long" * 500,))
    before = trail(db)
    for _ in range(2):
        with db.transaction(force_rollback=True):
            db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
            assert trail(db)[: len(before)] == before
        assert trail(db)[: len(before)] == before
    for _ in range(3):
        db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
    assert trail(db)[: len(before)] == before
    assert len({row["call"] for row in trail(db)}) == len(trail(db)) == len(before) + 5
    # What is in the table has left the file.
    assert one(db, "SELECT count(*) FROM mdistinct.open_calls()") < 10


def test_a_call_that_runs_and_one_that_was_killed(db: Connection, dsn: str) -> None:
    make_ward(db)
    db.execute("ALTER TABLE ward RENAME TO people")
    db.execute("CREATE VIEW ward AS SELECT people.* FROM people, pg_sleep(60)")
    victim = psycopg.connect(dsn, autocommit=True)
    ended: list[str] = []

    def run() -> None:
        try:
            publish(victim)
        except psycopg.OperationalError as error:
            ended.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not trail(db, "action = 'publish'"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert last(db, "publish")["outcome"] == "running"
    finally:
        db.execute("SELECT pg_terminate_backend(%s, 10000)", (victim.info.backend_pid,))
        thread.join()
    assert ended
    unfinished = last(db, "publish")
    assert (unfinished["outcome"], unfinished["ended_at"]) == ("unfinished", None)
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
    assert last(db, "publish") == unfinished
    assert one(db, "SELECT count(*) FROM mdistinct.audit_trail WHERE outcome = 'unfinished'") == 1


def test_many_sessions_at_once(db: Connection, dsn: str) -> None:
    """Their lines are moved while others write theirs: all are there in the end, once."""
    make_ward(db)
    before = len(trail(db))
    sessions, calls = 6, 12

    def work(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as session:
            for i in range(calls):
                dataset = "ward" if (i + number) % 3 else "nope"
                with suppress(psycopg.errors.UndefinedObject):
                    session.execute(
                        "SELECT mdistinct_allow_update(%s, 'Flu', '{Flu,Gastritis}')", (dataset,)
                    )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = trail(db)[before:]
    assert len(rows) == len({row["call"] for row in rows}) == sessions * calls
    assert Counter(row["outcome"] for row in rows) == {
        "succeeded": sessions * calls * 2 // 3,
        "failed": sessions * calls // 3,
    }


def test_a_call_whose_transaction_is_still_open(db: Connection, dsn: str) -> None:
    """It has ended, but nobody knows yet what will have become of it."""
    make_ward(db)
    register_another(db)
    with psycopg.connect(dsn) as other:
        publish(other)
        assert last(db, "publish")["outcome"] == "running"
        # Whatever is moved meanwhile, this call is not among it.
        db.execute("SELECT mdistinct_allow_update('another', 'Flu', '{Flu}')")
        assert last(db, "publish")["outcome"] == "running"
        other.commit()
    assert last(db, "publish")["outcome"] == "succeeded"
    db.execute("SELECT mdistinct_allow_update('another', 'Flu', '{Flu}')")
    (row,) = trail(db, "action = 'publish'")
    assert (row["outcome"], row["result"]["release"]) == ("succeeded", 1)


def test_a_session_that_moves_lines_holds_up_no_other(db: Connection, dsn: str) -> None:
    make_ward(db)
    register_another(db)
    with pytest.raises(psycopg.errors.UndefinedObject):
        publish(db, "nope")
    moved = "SELECT count(*) FROM mdistinct.audit_trail WHERE outcome = 'failed'"
    with psycopg.connect(dsn) as mover:
        mover.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
        assert one(mover, moved) == 1
        # The same line is there for others to move, who would wait for the end of this session.
        statement = "SELECT mdistinct_allow_update('another', 'Flu', '{Flu}') IS NULL"
        Background(dsn, statement).answer()
        mover.rollback()
    assert one(db, moved) == 0
    db.execute("SELECT mdistinct_allow_update('ward', 'Flu', '{Flu}')")
    assert one(db, moved) == 1


def register_another(db: Connection) -> None:
    db.execute("SELECT mdistinct_register('another', 'ward', 'id', '{age}', 'disease', 2)")


@pytest.mark.parametrize("role", ["mdistinct_admin", "mdistinct_publisher", "mdistinct_reader"])
def test_nobody_edits_the_trail(db: Connection, role: str) -> None:
    make_ward(db)
    with acting_as(db, role):
        for statement in (
            "DELETE FROM mdistinct.audit_trail",
            "TRUNCATE mdistinct.audit_trail",
            "UPDATE mdistinct.audit_trail SET login = 'somebody else'",
            "INSERT INTO mdistinct.audit_trail (call) VALUES (gen_random_uuid())",
            "DELETE FROM mdistinct.audit",
        ):
            with pytest.raises(psycopg.Error) as caught:
                db.execute(statement)
            assert caught.value.sqlstate in ("42501", "55000"), statement


@pytest.mark.parametrize("role", ["mdistinct_publisher", "mdistinct_reader"])
def test_only_admins_read_the_trail(db: Connection, role: str) -> None:
    with acting_as(db, "mdistinct_admin"):
        trail(db)
    for relation in ("audit", "audit_trail", "open_calls()"):
        with acting_as(db, role), pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"SELECT * FROM mdistinct.{relation}")


def test_where_the_file_cannot_be_written_nothing_is_done(db: Connection) -> None:
    make_ward(db)
    before = state(db)
    _on_server(db, "os.rename(path, path + '.away'); os.mkdir(path)")
    try:
        for call in ("mdistinct_publish('ward')", "mdistinct_verify('ward')"):
            with pytest.raises(psycopg.errors.IoError, match="audit trail") as caught:
                db.execute(f"SELECT {call}")
            assert caught.value.diag.message_hint
    finally:
        _on_server(db, "os.rmdir(path); os.rename(path + '.away', path)")
    assert state(db) == before
    publish(db)


def test_an_end_that_is_written_while_the_file_is_read_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session may end its call and be gone before anybody looks for its process."""
    spool = Spool(1, tmp_path)
    for call in ("quick", "killed"):
        spool.append({"call": call, "action": "publish", "process": {}})
    end = {"call": "quick", "outcome": "failed"}

    def is_alive(process: dict[str, Any]) -> bool:
        spool.append(end)
        return False

    monkeypatch.setattr(audit, "is_alive", is_alive)
    found = {begun["call"]: ended for begun, ended in audit._calls_of(spool)}
    assert found == {"quick": end, "killed": {"outcome": "unfinished"}}


def test_nobody_else_on_the_machine_reads_the_file(tmp_path: Path) -> None:
    """Whatever umask the server was started with."""
    spool = Spool(1, tmp_path)
    path = tmp_path / FOLDER / "1.jsonl"
    former = os.umask(0)
    try:
        for call in "ab":
            spool.append({"call": call})
        assert oct(path.parent.stat().st_mode)[-3:] == "700"
        assert oct(path.stat().st_mode)[-3:] == "600"
        spool.forget({"a"})
    finally:
        os.umask(former)
    assert oct(path.stat().st_mode)[-3:] == "600"


def _on_server(db: Connection, statement: str) -> Any:
    """Do something with the file of this database, as the server."""
    db.execute(
        "CREATE OR REPLACE FUNCTION pg_temp.on_server(folder text, path text) RETURNS text"
        f" LANGUAGE plpython3u AS $$\nimport os\nresult = None\n{statement}\nreturn result\n$$"
    )
    oid = one(db, "SELECT oid FROM pg_database WHERE datname = current_database()")
    return one(db, "SELECT pg_temp.on_server(%s, %s)", (FOLDER, f"{FOLDER}/{oid}.jsonl"))


def test_a_line_that_a_crash_has_torn_spoils_no_other(tmp_path: Path) -> None:
    spool = Spool(1, tmp_path)
    spool.append({"call": "a"})
    path = tmp_path / FOLDER / "1.jsonl"
    with path.open("a") as file:
        file.write('{"call": "torn')
    spool.append({"call": "b"})
    assert [line["call"] for line in spool.read()] == ["a", "b"]
    spool.forget({"a"})
    assert [line["call"] for line in spool.read()] == ["b"]
    spool.forget({"b"})
    assert spool.read() == []
    assert path.stat().st_size == 0


def test_a_line_that_comes_while_others_are_taken_out(tmp_path: Path) -> None:
    spool = Spool(1, tmp_path)
    writers, lines = 4, 100

    def write(writer: int) -> None:
        for i in range(lines):
            spool.append({"call": f"{writer}-{i}", "stays": i % 2 == 0}, for_good=False)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    spool.append({"call": "first", "stays": True})
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        spool.forget({line["call"] for line in spool.read() if not line["stays"]})
    left = [line["call"] for line in spool.read() if line["stays"]]
    assert len(left) == len(set(left)) == writers * lines // 2 + 1


def test_a_later_process_of_the_same_number_is_another_one() -> None:
    here = this_process()
    assert is_alive(here)
    assert not is_alive({**here, "since": -1})
    assert not is_alive({"pid": 2**22 + 1, "since": None})
