"""Ways for numbers from PostgreSQL to NumPy and back, one column, as multiples of scanning it.

Those over a file need rights on the server's files, which nobody should have who publishes.
"""

from __future__ import annotations

from benchmarks.database import REPEAT, Connection, Run
from benchmarks.figures import Figure

RECORDS = 200_000

_TABLE = "CREATE TABLE public.numbers AS SELECT i AS n FROM generate_series(1, {0}) AS i"
_PACKED = (
    "CREATE TABLE public.packed AS SELECT array_agg(n) AS n FROM (SELECT n, (row_number() OVER ()"
    " - 1) / 1000 AS part FROM public.numbers) AS s GROUP BY part;"
    " ALTER TABLE public.packed ALTER n SET STORAGE EXTERNAL"
)
_SCAN = "plpy.execute('SELECT sum(n) FROM public.numbers')"
_FROM = {
    "rows as dictionaries": "np.array([r['n'] for r in plpy.execute('SELECT n FROM numbers')])",
    "array_agg": "np.array(plpy.execute('SELECT array_agg(n) AS n FROM numbers')[0]['n'])",
    "string_agg of int4send": (
        "np.frombuffer(plpy.execute("
        "\"SELECT string_agg(int4send(n), '') AS n FROM numbers\")[0]['n'], '>i4')"
    ),
    "the same, two columns as one int8send": (
        "np.frombuffer(plpy.execute("
        "\"SELECT string_agg(int8send((n::int8 << 32) | n), '') AS n FROM numbers\""
        ")[0]['n'], '>i4')"
    ),
    "array_send of a thousand a row": (
        "elements([r['n'] for r in plpy.execute('SELECT array_send(n) AS n FROM packed')], '>i4')"
    ),
    "binary COPY to a file": (
        "plpy.execute(\"COPY numbers TO '%s' (FORMAT binary)\" % file),"
        " np.fromfile(file, np.dtype([('fields', '>i2'), ('size', '>i4'), ('n', '>i4')]),"
        " count={records}, offset=19)['n'].astype(np.int64)"
    ),
}
_TO = {
    "list to int4[]": (
        "plpy.execute(plpy.prepare('SELECT cardinality($1)', ['int4[]']), [given.tolist()])"
    ),
    "literal of an int4[]": (
        "plpy.execute(plpy.prepare('SELECT cardinality($1::int4[])', ['text']), [literal(given)])"
    ),
    "rows inserted from a list": (
        "plpy.execute(plpy.prepare('INSERT INTO target SELECT unnest($1)', ['int4[]']),"
        " [given.tolist()])"
    ),
    "rows inserted from a literal": (
        "plpy.execute(plpy.prepare('INSERT INTO target SELECT unnest($1::int4[])', ['text']),"
        " [literal(given)])"
    ),
    "arrays of 1000 inserted from a literal": (
        "plpy.execute(plpy.prepare('INSERT INTO chunks SELECT ((SELECT $1::int4[]))[i:i+999]"
        " FROM generate_series(1, {records}, 1000) AS i', ['text']), [literal(given)])"
    ),
    "arrays of 1000 as the source gives them": (
        "plpy.execute('INSERT INTO chunks SELECT array_agg(n) FROM (SELECT n, (row_number() OVER ()"
        " - 1) / 1000 AS part FROM numbers) AS s GROUP BY part')"
    ),
    "binary COPY to a file and back": (
        "plpy.execute(\"COPY numbers TO '%s' (FORMAT binary)\" % file),"
        " plpy.execute(\"COPY target FROM '%s' (FORMAT binary)\" % file)"
    ),
}
_BODY = """
import tempfile
import time
import numpy as np
from pg_mdistinct.server.packed import elements, literal
folder = tempfile.TemporaryDirectory()
file = folder.name + "/numbers"
given = np.arange({records})
def shortest(work):
    times = []
    for _ in range({repeat}):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
plpy.notice(shortest(lambda: ({work})))
folder.cleanup()
"""


def measure(run: Run) -> list[Figure]:
    """Time every way within one session."""
    records = int(RECORDS * run.scale)
    with run.database() as connection:
        connection.execute(_TABLE.format(records))
        connection.execute(_PACKED)
        connection.execute(
            "CREATE TABLE public.target (n integer); CREATE TABLE public.chunks (n integer[]);"
            "ALTER TABLE public.chunks ALTER n SET STORAGE EXTERNAL"
        )
        # Any call loads the server's code, which the blocks below use.
        connection.execute("SELECT mdistinct.warm_up()")
        scan = _time(connection, _SCAN, records)
        figures = [Figure(f"sum of {records:,} numbers, s", scan)]
        for direction, ways in (("read", _FROM), ("write", _TO)):
            for name, work in ways.items():
                took = _time(connection, work.replace("{records}", str(records)), records)
                figures.append(Figure(f"{direction}: {name} ÷ sum", took / scan))
    return figures


def _time(connection: Connection, work: str, records: int) -> float:
    found: list[float] = []

    def note(diagnostic: object) -> None:
        found.append(float(getattr(diagnostic, "message_primary", "") or 0))

    connection.add_notice_handler(note)
    with connection.transaction(force_rollback=True):
        body = _BODY.format(records=records, repeat=REPEAT, work=work)
        connection.execute(f"DO LANGUAGE plpython3u $body${body}$body$")
    connection.remove_notice_handler(note)
    return found[0]
