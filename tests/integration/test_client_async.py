"""`AsyncClient`, with engines, connections and sessions of SQLAlchemy and with psycopg alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from pg_mdistinct.client import AsyncClient, AsyncDataset, Client, UnknownDatasetError
from pg_mdistinct.client import dataset as datasets
from tests.integration.client_cases import COLUMNS, MODEL, make_patients

Connection = psycopg.Connection[Any]


@pytest.fixture
def source(db: Connection) -> str:
    return make_patients(db)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def test_a_dataset_from_beginning_to_end(dsn: str, source: str) -> None:
    async def main() -> None:
        async with AsyncClient(dsn) as client:
            ward = await client.register("ward", source, *COLUMNS)
            assert repr(ward) == "<AsyncDataset 'ward'>"
            assert (await ward.info()).m == 2
            assert (await ward.alter(max_risk=0.9)).max_risk == 0.9
            assert await ward.load_updates(MODEL) == 8
            await ward.allow_update("Flu", {"Flu": 0.5, "Pneumonia": 0.5})
            assert (await ward.preview()).release == 1
            assert (await ward.publish(on_progress=lambda _: None)).records == 12
            assert [info.release for info in await client.releases()] == [1]
            assert len(await ward.releases()) == 1
            release = await ward.release()
            rows = await release.rows()
            assert len(rows) == 12 + sum((await release.counterfeits()).values())
            assert len(await release.to_pandas()) == len(rows)
            assert (await release.to_arrow()).num_rows == len(rows)
            assert release.selectable.selected_columns.keys()[-1] == "disease"
            assert await ward.verify() == []
            assert len(await ward.risk()) == 12
            assert await ward.republication_risk() is not None
            assert (await ward.sug("3")).nodes
            assert await ward.index() == 1
            assert (await ward.estimate()).count == 12
            assert [info.dataset for info in await client.datasets()] == ["ward"]
            await ward.drop()
            assert await client.datasets() == []

    run(main())


def test_calls_run_side_by_side(dsn: str, source: str) -> None:
    async def main() -> None:
        async with AsyncClient(dsn) as client:
            ward = await client.register("ward", source, *COLUMNS)
            await ward.load_updates(MODEL)
            await ward.publish()
            answers = await asyncio.gather(*(ward.estimate({"age": n}) for n in range(21, 27)))
            assert len(answers) == 6

    run(main())


def test_errors(dsn: str) -> None:
    async def main() -> None:
        async with AsyncClient(dsn) as client:
            with pytest.raises(UnknownDatasetError) as caught:
                await client.dataset("nowhere").publish()
            assert caught.value.hint
            with pytest.raises(UnknownDatasetError, match="nowhere"):
                await client.dataset("nowhere").info()

    run(main())


def test_in_transactions_of_sqlalchemy(dsn: str, source: str) -> None:
    async def main() -> None:
        engine = create_async_engine(
            "postgresql+psycopg://", async_creator=lambda: psycopg.AsyncConnection.connect(dsn)
        )
        outside = AsyncClient(engine)
        async with engine.connect() as connection:
            await AsyncClient(connection).register("ward", source, *COLUMNS)
            assert await outside.datasets() == []
            await connection.rollback()
            assert await outside.datasets() == []
        async with AsyncSession(engine) as session:
            mine = AsyncClient(session)
            await mine.register("ward", source, *COLUMNS)
            with pytest.raises(UnknownDatasetError):
                await mine.dataset("nowhere").publish()
            assert await outside.datasets() == []
            await session.commit()
        assert len(await outside.datasets()) == 1
        await outside.close()
        assert len(await outside.datasets()) == 1
        await engine.dispose()

    run(main())


def test_in_transactions_of_psycopg(dsn: str, source: str) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            client = AsyncClient(connection)
            await client.register("ward", source, *COLUMNS)
            await connection.rollback()
            assert await client.datasets() == []
            await client.register("ward", source, *COLUMNS)
            await connection.commit()
        with Client(dsn) as client_of_threads:
            assert len(client_of_threads.datasets()) == 1

    run(main())


def test_both_kinds_of_datasets_have_the_same_methods() -> None:
    def methods(kind: type[object]) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    of_the_catalog = {
        "dataset",
        "id_column",
        "m",
        "max_risk",
        "qi_columns",
        "sensitive_column",
        "variant",
    }
    assert methods(AsyncDataset) == methods(datasets.Dataset) - of_the_catalog


def test_without_greenlet_the_rest_works() -> None:
    code = (
        "import sys; sys.modules['greenlet'] = None\n"
        "from pg_mdistinct.client import Client\n"
        "try:\n    from pg_mdistinct.client import AsyncClient\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sqlalchemy[asyncio]" in done.stdout
