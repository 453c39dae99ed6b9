"""`Client.dataset`: what its methods return and raise, also in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from decimal import Decimal
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy
from psycopg.types.range import Range
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session

from pg_mdistinct import client as package
from pg_mdistinct.client import Client, Dataset, Estimate, Progress, Publication, models
from pg_mdistinct.client.calls import Frame
from pg_mdistinct.client.errors import MdistinctSqlError
from pg_mdistinct.picture import UpdateGraphPicture
from tests.integration.cases import one
from tests.integration.client_cases import COLUMNS, MODEL, make_patients

Connection = psycopg.Connection[Any]


@pytest.fixture
def source(db: Connection) -> str:
    return make_patients(db)


@pytest.fixture
def engine(dsn: str) -> Iterator[Engine]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    yield engine
    engine.dispose()


@pytest.fixture
def client(engine: Engine) -> Client:
    return Client(engine)


@pytest.fixture
def ward(client: Client, source: str) -> Dataset:
    dataset = client.register("ward", source, *COLUMNS)
    assert dataset.load_updates(MODEL) == 8
    return dataset


def test_a_dataset_from_beginning_to_end(ward: Dataset, db: Connection) -> None:
    assert ward.preview().release == 1
    first = ward.publish()
    assert isinstance(first, Publication)
    db.execute("UPDATE ward.\"Patients\" SET disease = 'Flu' WHERE disease = 'Pneumonia'")
    assert ward.publish(wait=True).release == 2
    assert [info.release for info in ward.releases()] == [1, 2]
    assert ward.verify() == []
    assert len(ward.risk(1)) == 12
    assert len(ward.risk()) == 24
    assert ward.republication_risk() is not None
    assert isinstance(ward.sug("3"), UpdateGraphPicture)
    assert ward.index() == 2
    found = ward.estimate({"age": [21, 26], "Town": ["Bath"]}, measure="age", release=1)
    assert isinstance(found, Estimate)
    assert 0 < found.count < 12
    assert found.avg is not None
    with pytest.raises(FrozenInstanceError):
        found.count = 0.0  # type: ignore[misc]
    ward.drop()
    with pytest.raises(package.UnknownDatasetError):
        ward.publish()


def test_what_the_catalog_knows(client: Client, ward: Dataset) -> None:
    found = client.dataset("ward")
    assert repr(found) == "<Dataset 'ward'>"
    assert (found.dataset, found.m, found.variant, found.max_risk) == (
        "ward",
        2,
        "m-distinct",
        None,
    )
    assert (found.id_column, found.qi_columns, found.sensitive_column) == (
        "id",
        ["age", "Town"],
        "disease",
    )
    assert found.info == ward.info == client.datasets()[0]
    assert (found.info.source_schema, found.info.source_table) == ("ward", "Patients")
    assert found.alter(m=3, max_risk=0.9).m == 3
    assert (found.m, found.variant, found.max_risk) == (3, "m-distinct", 0.9)
    with pytest.raises(package.UnknownDatasetError, match="nowhere"):
        _ = client.dataset("nowhere").info


ROWS: list[dict[str, Any]] = [
    {"old_value": "Flu", "new_value": "Flu", "probability": 0.75},
    {"old_value": "Flu", "new_value": "Pneumonia", "probability": 0.25},
    {"old_value": "Pneumonia", "new_value": "Flu", "probability": None},
    {"old_value": "Pneumonia", "new_value": "Pneumonia", "probability": None},
    {"old_value": "Gastritis", "new_value": "Gastritis", "probability": None},
]


def test_models_from_data_frames(ward: Dataset, db: Connection) -> None:
    frames: tuple[Frame, ...] = (pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS))
    for frame in frames:
        db.execute("DELETE FROM mdistinct.updates")
        assert ward.load_updates(frame) == 5
        rows = db.execute("SELECT old_value, new_value, probability FROM mdistinct.updates")
        assert {(old, new): p for old, new, p in rows} == {
            (row["old_value"], row["new_value"]): row["probability"]
            or (1.0 if row["old_value"] == "Gastritis" else 0.5)
            for row in ROWS
        }


def test_models_without_probabilities_or_rows(ward: Dataset, db: Connection) -> None:
    frame = pd.DataFrame(ROWS)[["old_value", "new_value"]]
    ward.load_updates(frame)
    rows = db.execute(
        "SELECT probability FROM mdistinct.updates WHERE old_value = 'Flu'"
    ).fetchall()
    assert rows == [(0.5,), (0.5,)]
    with pytest.raises(package.BadArgumentError, match="no updates"):
        ward.load_updates({})


def test_tables_of_sqlalchemy_are_sources(client: Client, engine: Engine, source: str) -> None:
    metadata = sqlalchemy.MetaData()
    patients = sqlalchemy.Table("Patients", metadata, schema="ward", autoload_with=engine)
    ward = client.register("ward", patients, *COLUMNS)
    changes = sqlalchemy.Table(
        "The changes",
        metadata,
        sqlalchemy.Column("old_value", sqlalchemy.Text),
        sqlalchemy.Column("new_value", sqlalchemy.Text),
    )
    values = list(MODEL)
    with engine.begin() as connection:
        changes.create(connection)
        connection.execute(
            changes.insert(), [{"old_value": a, "new_value": b} for a in values for b in values]
        )
    assert ward.load_updates(changes) == 16
    assert ward.publish().release == 1


def test_learning(ward: Dataset, db: Connection) -> None:
    db.execute(
        "CREATE TABLE panel AS SELECT i AS who, t AS at,"
        " (ARRAY['Dyspepsia', 'Gastritis', 'Flu', 'Pneumonia'])[1 + (i + t * (i / 4)) % 4] AS what"
        " FROM generate_series(1, 12) AS i, generate_series(1, 3) AS t"
    )
    learned = ward.learn_updates("panel", "who", "at", "what", smoothing=1, possible="all")
    assert len(learned.transitions) == 16
    assert {t.note for t in learned.transitions} >= {"rare", "unseen"}
    (warning,) = learned.warnings
    assert warning.startswith("4 values of 4 had fewer than 30 updates to learn from")
    assert "HINT: " in warning
    assert ward.learn_updates("panel", "who", "at", "what", thin=0, apply=False).warnings == []
    with pytest.raises(MdistinctSqlError, match="does not exist"):
        ward.learn_updates("panel", "who", "at", "what", **{'x" => 1) --': 1})


# Small work takes no time: here the server tells of every step.
TELL_ALL = """
DO LANGUAGE plpython3u $python$
from pg_mdistinct.server import progress
progress.QUIET_SECONDS = progress.BREATH_SECONDS = 0.0
$python$
"""


def test_progress(ward: Dataset, db: Connection) -> None:
    ward.publish()
    mine = Client(db).dataset("ward")
    mine.preview()
    db.execute("SET application_name = 'patient'")
    db.execute(TELL_ALL)
    for call, phases in (
        (mine.publish, {"assign", "split", "generalize", "learn"}),
        (mine.preview, {"assign", "split", "generalize", "learn"}),
        (mine.verify, {"read", "compare releases", "attack", "compare values"}),
        (mine.risk, {"read", "attack"}),
        (mine.republication_risk, {"read", "learn"}),
    ):
        told: list[Progress] = []
        call(on_progress=told.append)
        assert {progress.phase for progress in told} >= phases
        assert all(0 <= progress.share <= 1 for progress in told)
        assert one(db, "SHOW application_name") == "patient"


def test_notices_become_progress(dsn: str) -> None:
    from pg_mdistinct.client.calls import Call, Statement
    from pg_mdistinct.client.connections import Sender

    told: list[Progress] = []
    call = Call(
        [
            Statement(
                "DO $$ BEGIN RAISE NOTICE '%%', 'reading: 25%%'; RAISE NOTICE 'hello';"
                " RAISE WARNING 'thin' USING HINT = 'look'; END $$"
            )
        ],
        lambda answer: answer.warnings,
    )
    sender = Sender(dsn)
    assert sender.send(call, told.append) == ["thin\nHINT: look"]
    assert told == [Progress("reading", 0.25)]
    # Nobody listens any more.
    assert sender.send(call) == ["thin\nHINT: look"]
    assert len(told) == 1
    sender.close()


def test_a_release_to_select_from(ward: Dataset, engine: Engine) -> None:
    ward.publish()
    release = ward.release(1)
    rows = release.selectable
    assert [type(column.type).__name__ for column in rows.selected_columns] == [
        "Integer",
        "Integer",
        "INT4RANGE",
        "ARRAY",
        "Text",
    ]
    table = rows.subquery()
    with engine.connect() as connection:
        found = connection.execute(rows).all()
        assert len(found) == ward.releases()[0].rows
        assert found[0].age.lower is not None
        old = select(sqlalchemy.func.count()).where(
            table.c.age.overlaps(sqlalchemy.dialects.postgresql.Range(30, 40))
        )
        in_ayr = select(sqlalchemy.func.count()).where(table.c.Town.contains(["Ayr"]))
        assert 0 < (connection.scalar(old) or 0) < len(found)
        assert 0 < (connection.scalar(in_ayr) or 0) <= len(found)


def test_a_release_as_rows(ward: Dataset) -> None:
    assert ward.release().rows == []
    ward.publish()
    release = ward.release()
    assert (release.dataset, release.release) == ("ward", 1)
    assert (release.qi_columns, release.sensitive_column) == (("age", "Town"), "disease")
    assert release == ward.release(1)
    row = release.rows[0]
    assert row.gid == 1
    assert isinstance(row.qi["age"], Range)
    assert sum(release.counterfeits.values()) == len(release.rows) - 12


def test_a_release_as_a_frame_of_pandas(ward: Dataset) -> None:
    ward.publish()
    release = ward.release()
    frame = release.to_pandas()
    assert list(frame.columns) == ["release", "gid", "age", "Town", "disease"]
    assert len(frame) == len(release.rows)
    assert frame["age"].dtype == pd.IntervalDtype("int64", "left")
    first = release.rows[0]
    assert frame["age"][0] == pd.Interval(first.qi["age"].lower, first.qi["age"].upper, "left")
    assert frame["Town"][0] == first.qi["Town"]
    assert frame.groupby("gid")["disease"].nunique().min() >= 2


def test_a_release_as_an_arrow_table(ward: Dataset) -> None:
    ward.publish()
    release = ward.release()
    table = release.to_arrow()
    assert table.num_rows == len(release.rows)
    assert table.schema.field("age").type == pa.struct(
        [("lower", pa.int32()), ("upper", pa.int32())]
    )
    assert table.schema.field("age").metadata == {b"bounds": b"[)"}
    assert table.schema.field("Town").type == pa.list_(pa.string())
    first = release.rows[0]
    assert table.to_pylist()[0] == {
        "release": 1,
        "gid": 1,
        "age": {"lower": first.qi["age"].lower, "upper": first.qi["age"].upper},
        "Town": first.qi["Town"],
        "disease": first.sensitive,
    }


def test_frames_of_every_type(client: Client, db: Connection) -> None:
    db.execute(
        "CREATE TABLE every AS SELECT i AS id, i::bigint AS whole, i::numeric + 0.5 AS exact,"
        " i::float8 AS real, DATE '2020-01-01' + i AS day, TIMESTAMP '2020-01-01' + i * INTERVAL"
        " '1 hour' AS moment, TIMESTAMPTZ '2020-01-01Z' + i * INTERVAL '1 hour' AS zoned,"
        " CASE WHEN i = 1 THEN 2147483647 ELSE i END AS greatest, i % 4 AS value"
        " FROM generate_series(1, 8) AS i"
    )
    columns = ["whole", "exact", "real", "day", "moment", "zoned", "greatest"]
    every = client.register("every", "every", "id", columns, "value", 2)
    values = [str(value) for value in range(4)]
    every.load_updates(dict.fromkeys(values, values))
    every.publish()
    release = every.release()
    frame = release.to_pandas()
    for name in columns[:-1]:
        assert isinstance(frame[name].dtype, pd.IntervalDtype), name
    # A range without an end is no interval.
    assert frame["greatest"].dtype == object
    table = release.to_arrow()
    assert table.num_rows == len(frame)
    assert isinstance(table.to_pylist()[0]["exact"]["lower"], Decimal)
    assert pa.types.is_timestamp(table.schema.field("zoned").type.field("lower").type)


def test_a_missing_library_is_named(ward: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'pg-mdistinct\[pandas\]'"):
        ward.release().to_pandas()


def test_errors_have_classes(client: Client, ward: Dataset, db: Connection) -> None:
    with pytest.raises(package.AlreadyRegisteredError) as caught:
        client.register("ward", 'ward."Patients"', *COLUMNS)
    assert caught.value.sqlstate == "42710"
    assert caught.value.hint
    with pytest.raises(package.UnknownColumnError, match="height"):
        client.register("other", 'ward."Patients"', "height", ["age"], "disease", 2)
    with pytest.raises(package.BadArgumentError, match="m is 1"):
        client.register("other", 'ward."Patients"', "id", ["age"], "disease", 1)
    with pytest.raises(package.SourceMissingError, match="nothing"):
        client.register("other", "nothing", "id", ["age"], "disease", 2)
    db.execute("UPDATE ward.\"Patients\" SET disease = 'Cough' WHERE id = 1")
    with pytest.raises(package.UnknownValueError, match="Cough"):
        ward.publish()
    db.execute('UPDATE ward."Patients" SET disease = NULL WHERE id = 1')
    with pytest.raises(package.NullValueError):
        ward.publish()
    db.execute("UPDATE ward.\"Patients\" SET disease = 'Flu' WHERE id = 1")
    ward.publish()
    db.execute("UPDATE ward.\"Patients\" SET disease = 'Gastritis' WHERE id = 1")
    with pytest.raises(package.ImpossibleUpdateError, match="1 record"):
        ward.publish()
    with pytest.raises(package.DomainTooSmallError):
        client.register("other", 'ward."Patients"', "id", ["age"], "disease", 9).load_updates(MODEL)
    db.execute('ALTER TABLE ward."Patients" RENAME age TO years')
    with pytest.raises(package.SourceChangedError):
        ward.publish()
    with db.transaction():
        db.execute("SELECT FROM mdistinct.datasets FOR UPDATE")
        with pytest.raises(package.DatasetBusyError):
            ward.publish()


def test_every_class_stands_for_codes_of_its_own() -> None:
    classes = MdistinctSqlError.__subclasses__()
    codes = [code for subclass in classes for code in subclass.sqlstates]
    assert len(codes) == len(set(codes))
    assert all(subclass.sqlstates and subclass.__doc__ for subclass in classes)
    assert {subclass.__name__ for subclass in classes} <= set(package.__all__)


def count(connection: Any) -> int:
    return int(
        connection.execute(sqlalchemy.text("SELECT count(*) FROM mdistinct.datasets")).scalar()
    )


def test_in_a_connection_of_sqlalchemy(engine: Engine, source: str, client: Client) -> None:
    with engine.connect() as connection:
        mine = Client(connection)
        mine.register("ward", source, *COLUMNS).load_updates(MODEL)
        # The first model's table is gone, so that another can be loaded in the same transaction.
        mine.load_updates("ward", MODEL)
        assert mine.publish("ward").release == 1
        assert client.datasets() == []
        connection.rollback()
    assert client.datasets() == []
    with engine.connect() as connection:
        Client(connection).register("ward", source, *COLUMNS)
        connection.commit()
    assert len(client.datasets()) == 1
    with engine.begin() as connection:
        Client(connection).drop("ward")
    assert client.datasets() == []


def test_a_failed_call_undoes_itself_alone(engine: Engine, source: str, client: Client) -> None:
    with engine.begin() as connection:
        mine = Client(connection)
        mine.register("ward", source, *COLUMNS)
        with pytest.raises(package.AlreadyRegisteredError):
            mine.register("ward", source, *COLUMNS)
        mine.load_updates("ward", MODEL)
        assert count(connection) == 1
    assert len(client.datasets()) == 1


def test_in_a_session(engine: Engine, source: str, client: Client) -> None:
    with Session(engine) as session:
        Client(session).register("ward", source, *COLUMNS)
        found = session.scalars(select(models.Dataset)).one()
        assert (found.dataset, found.qi_columns) == ("ward", ["age", "Town"])
        assert client.datasets() == []
        session.commit()
    assert len(client.datasets()) == 1


def test_in_a_connection_of_psycopg(dsn: str, source: str, client: Client) -> None:
    with psycopg.connect(dsn) as connection:
        Client(connection).register("ward", source, *COLUMNS)
        assert client.datasets() == []
        connection.rollback()
        assert client.datasets() == []
        Client(connection).register("ward", source, *COLUMNS)
    assert len(client.datasets()) == 1
    with psycopg.connect(dsn, autocommit=True) as connection:
        Client(connection).drop("ward")
        assert client.datasets() == []


def test_a_session_of_another_driver_is_refused() -> None:
    with pytest.raises(ValueError, match="psycopg"):
        Client(Session(create_engine("sqlite://")))


def test_the_mapped_classes_are_the_catalog(ward: Dataset, engine: Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    for mapper in models.Base.registry.mappers:
        table = mapper.local_table
        assert isinstance(table, sqlalchemy.Table)
        found = {c["name"]: c for c in inspector.get_columns(table.name, schema=table.schema)}
        assert [c.name for c in table.columns] == list(found), table
        views = inspector.get_view_names(table.schema)
        for column in table.columns:
            kind = found[column.name]["type"]
            assert kind.python_type is column.type.python_type, (table, column, kind)
            if table.name not in views:
                assert found[column.name]["nullable"] == column.nullable, (table, column)
        if table.name not in views:
            key = inspector.get_pk_constraint(table.name, schema=table.schema)
            assert key["constrained_columns"] == [c.name for c in table.primary_key.columns]


def test_the_mapped_classes_are_joined(ward: Dataset, engine: Engine) -> None:
    ward.publish()
    with Session(engine) as session:
        found = session.get_one(models.Dataset, "ward")
        assert len(found.updates) == 8
        assert [release.release for release in found.releases] == [1]
        assert found.schedule is None
        shown = session.scalars(select(models.PublishedRelease)).one()
        assert shown.rows == found.releases[0].records + found.releases[0].counterfeits
