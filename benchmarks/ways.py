"""Ways for numbers from PostgreSQL to NumPy and back, one column, as multiples of scanning it."""

from __future__ import annotations

from benchmarks.database import REPEAT, Connection, Run
from benchmarks.figures import Figure

RECORDS = 200_000

_TABLE = "CREATE TABLE public.numbers AS SELECT i AS n FROM generate_series(1, {0}) AS i"
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
    "arrays of 400 inserted from a literal": (
        "plpy.execute(plpy.prepare('INSERT INTO chunks SELECT ((SELECT $1::int4[]))[i:i+399]"
        " FROM generate_series(1, %d, 400) AS i', ['text']), [literal(given)])"
    ),
}
_BODY = """
import time
import numpy as np
from pg_mdistinct.server.packed import literal
given = np.arange({records})
def shortest(work):
    times = []
    for _ in range({repeat}):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
plpy.notice(shortest(lambda: {work}))
"""


def measure(run: Run) -> list[Figure]:
    """Time every way within one session."""
    records = int(RECORDS * run.scale)
    with run.database() as connection:
        connection.execute(_TABLE.format(records))
        connection.execute("CREATE TABLE public.target (n integer)")
        connection.execute("CREATE TABLE public.chunks (n integer[])")
        # Any call loads the server's code, which the blocks below use.
        connection.execute("SELECT mdistinct.warm_up()")
        scan = _time(connection, _SCAN, records)
        figures = [Figure(f"sum of {records:,} numbers, s", scan)]
        for direction, ways in (("read", _FROM), ("write", _TO)):
            for name, work in ways.items():
                took = _time(connection, work.replace("%d", str(records)), records)
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
