"""The released versions that are kept for upgrades, each run with its own code."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.integration.cases import Connection, one, publish
from tests.released import freeze

VERSIONS = sorted(
    path.name.removeprefix("pg_mdistinct-").removesuffix(".tar.xz")
    for path in freeze.FOLDER.glob("pg_mdistinct-*.tar.xz")
)
# Without the warm-up: it would compile for a minute what is used three times.
_INSTALL = """
import sys
from pg_mdistinct.install import commands
commands._warm_up = lambda *_: None
commands.install(sys.argv[1], on_message=lambda _: None)
"""


class Released:
    """One released version, unpacked."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self._folder = folder
        with tarfile.open(freeze.FOLDER / f"pg_mdistinct-{version}.tar.xz") as packed:
            packed.extractall(folder, filter="data")

    def install(self, dsn: str) -> None:
        """Put this version into a database, by `pg-mdistinct install`."""
        self._run("-c", _INSTALL, dsn)

    def install_extension(self, pg_config: str) -> None:
        """Put this version where CREATE EXTENSION finds it."""
        self._run("-m", "pg_mdistinct.install.extension", "--pg-config", pg_config)

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def interpreted(db: Connection) -> Connection:
    """Keep Numba from compiling in this session, which publishes a handful of records."""
    db.execute("CREATE EXTENSION IF NOT EXISTS plpython3u")
    db.execute("DO LANGUAGE plpython3u $$ import os; os.environ['NUMBA_DISABLE_JIT'] = '1' $$")
    return db


def publish_history(db: Connection) -> None:
    """Publish two datasets three times: values move, records leave and return, some are lonely."""
    db.execute(
        "CREATE TABLE public.ward (id integer PRIMARY KEY, age integer, disease text);"
        "CREATE TABLE public.staff (id text, pay numeric, hired date, town text, grade text)"
    )
    db.execute(
        "INSERT INTO public.ward"
        " SELECT i, 20 + i, (ARRAY['Flu','Flu','Flu','Gastritis'])[1 + i % 4]"
        " FROM generate_series(1, 17) AS i"
    )
    db.execute(
        "INSERT INTO public.staff SELECT 's' || i, 1000 + i / 3.0, date '2020-01-01' + i,"
        " (ARRAY['Ulm','Bonn','Kiel'])[1 + i % 3], (ARRAY['A','B','C','D'])[1 + i % 4]"
        " FROM generate_series(1, 13) AS i"
    )
    db.execute(
        "SELECT mdistinct_register('ward', 'public.ward', 'id', '{age}', 'disease', 2);"
        "SELECT mdistinct_register('staff', 'public.staff', 'id', '{pay,hired,town}', 'grade', 2,"
        " 'm-distinct*', 0.5);"
        "SELECT mdistinct_allow_update('ward', 'Flu', '{Flu,Pneumonia}', '{0.9,0.1}');"
        "SELECT mdistinct_allow_update('ward', 'Pneumonia', '{Pneumonia,Flu}');"
        "SELECT mdistinct_allow_update('ward', 'Gastritis', '{Gastritis,Dyspepsia}');"
        "SELECT mdistinct_allow_update('ward', 'Dyspepsia', '{Dyspepsia}');"
        "SELECT mdistinct_allow_update('staff', g, ARRAY[g]) FROM unnest('{A,B,C,D}'::text[]) AS g"
    )
    for change in (
        "SELECT",
        "DELETE FROM public.ward WHERE id IN (3, 4, 5);"
        "UPDATE public.ward SET disease = 'Pneumonia' WHERE id IN (1, 2);"
        "DELETE FROM public.staff WHERE id = 's1'",
        "INSERT INTO public.ward VALUES (3, 40, 'Dyspepsia'), (30, 41, 'Flu')",
    ):
        db.execute(change)
        publish(db, "ward")
        publish(db, "staff")
    assert one(db, "SELECT sum(counterfeits) FROM mdistinct.releases") > 0


def publish_on(db: Connection) -> None:
    """Publish what has become of these records since."""
    db.execute(
        "INSERT INTO public.ward VALUES (4, 50, 'Flu'), (31, 42, 'Pneumonia');"
        "DELETE FROM public.ward WHERE id = 10;"
        "INSERT INTO public.staff SELECT 's1', 900, date '2020-01-01', 'Ulm', 'B'"
    )
    for dataset in ("ward", "staff"):
        assert publish(db, dataset)["release"] == 4
        assert db.execute("SELECT * FROM mdistinct_verify(%s)", (dataset,)).fetchall() == []


def published(db: Connection) -> list[list[tuple[object, ...]]]:
    """Return what readers and admins have seen of the first three releases."""
    return [
        sorted(db.execute(query).fetchall(), key=str)
        for query in (
            "SELECT * FROM mdistinct_published.releases WHERE release < 4",
            "SELECT * FROM mdistinct_published.ward WHERE release < 4",
            "SELECT * FROM mdistinct_published.staff WHERE release < 4",
            "SELECT * FROM mdistinct_published.ward_counterfeits WHERE release < 4",
            "SELECT * FROM mdistinct.ward_membership WHERE release < 4",
            "SELECT * FROM mdistinct.staff_membership WHERE release < 4",
        )
    ]
