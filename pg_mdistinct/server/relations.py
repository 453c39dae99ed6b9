"""The relations of one dataset: their names, how they are made, and how they go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server.plpython import Plpy, run
from pg_mdistinct.server.qi_types import QiType

LONGEST_NAME = 50
"""In bytes: what the longest derived name leaves of PostgreSQL's 63."""

DATA, PUBLISHED, CATALOG, SOURCES = (
    "mdistinct_data",
    "mdistinct_published",
    "mdistinct",
    "mdistinct_sources",
)
VIEWS = ((PUBLISHED, ""), (PUBLISHED, "_counterfeits"), (CATALOG, "_membership"))
KINDS = ("versions", "placement", "groups", "absent", "domain", "knowledge")
LATEST = (
    "model",
    "record_ids",
    "gid",
    "value",
    "group_sizes",
    "group_values",
    "state",
    "candidates",
    "kept",
    "belief",
    "past",
)
"""The columns that keep the latest release packed."""
TABLES = tuple((DATA, f"_{kind}") for kind in KINDS)


@dataclass(frozen=True)
class Relations:
    """The quoted names of a dataset's relations; ``reader`` is its function without arguments."""

    published: str
    counterfeits: str
    membership: str
    versions: str
    placement: str
    groups: str
    absent: str
    domain: str
    knowledge: str
    reader: str

    def placed(self, *columns: str) -> str:
        """Return a subquery with a row for every version: release, gid, and columns of versions."""
        members = _side_by_side({"gid": "p.gids"} | {name: f"v.{name}" for name in columns})
        return (
            f"(SELECT v.release, m.* FROM {self.versions} AS v JOIN {self.placement} AS p"
            f" ON p.release = v.release AND p.first = v.first CROSS JOIN LATERAL {members})"
        )


def unnested(versions: str, *columns: str) -> str:
    """Return a subquery with a row for every version in a table of them: release, and columns."""
    members = _side_by_side({name: f"v.{name}" for name in columns})
    return f"(SELECT v.release, m.* FROM {versions} AS v CROSS JOIN LATERAL {members})"


def _side_by_side(arrays: Mapping[str, str]) -> str:
    """Return a table whose columns are the elements of arrays."""
    unnested = ", ".join(f"pg_catalog.unnest({array})" for array in arrays.values())
    return f"ROWS FROM ({unnested}) AS m ({', '.join(arrays)})"


def relations_of(plpy: Plpy, dataset: str) -> Relations:
    """Return the names of a dataset's relations."""
    names = [
        qualified(plpy, schema, dataset + suffix)
        for schema, suffix in (*VIEWS, *TABLES, (SOURCES, ""))
    ]
    return Relations(*names)


def partition_of(plpy: Plpy, dataset: str, kind: str, release: int) -> str:
    """Return the name of one release's partition of versions, placement or groups."""
    return qualified(plpy, DATA, f"{dataset}_{kind[0]}{release}")


def provide_groups(plpy: Plpy, dataset: str, release: int) -> str:
    """Return the partition for the groups of a release; make and attach it if it is not there.

    That is done a release ahead. A reader may plan before a release is committed and look
    afterwards: he sees that there is one, and would miss the partition that came with it.
    """
    partition = partition_of(plpy, dataset, "groups", release)
    if not _relation_exists(plpy, DATA, f"{dataset}_g{release}"):
        groups = relations_of(plpy, dataset).groups
        plpy.execute(f"CREATE TABLE {partition} (LIKE {groups})")
        # With a lock that lets readers read on; making it a partition at once would not.
        plpy.execute(f"ALTER TABLE {groups} ATTACH PARTITION {partition} FOR VALUES IN ({release})")
    return partition


def qualified(plpy: Plpy, schema: str, name: str) -> str:
    """Quote a name with its schema."""
    return f"{plpy.quote_ident(schema)}.{plpy.quote_ident(name)}"


def check_free(plpy: Plpy, dataset: str) -> None:
    """Refuse a dataset whose relations would collide with existing ones."""
    taken = [
        f"{schema}.{dataset}{suffix}"
        for schema, suffix in (*VIEWS, *TABLES)
        if _relation_exists(plpy, schema, dataset + suffix)
    ]
    taken += [f"{SOURCES}.{dataset}()" for _ in _functions(plpy, dataset)]
    if taken:
        raise MdistinctError(
            f'dataset "{dataset}" would collide with the existing {taken[0]}',
            hint="Choose another dataset name.",
            sqlstate="42P07",
        )


def create(plpy: Plpy, dataset: str, qi: Sequence[QiType], value_type: str) -> None:
    """Make the tables, empty."""
    names = relations_of(plpy, dataset)
    own = "".join(f"q{i} {column.stored_array}, " for i, column in enumerate(qi, start=1))
    general = "".join(f"q{i} {column.generalized}, " for i, column in enumerate(qi, start=1))
    for statement in (
        f"CREATE TABLE {names.domain} ("
        f'code integer PRIMARY KEY, label text COLLATE "C" NOT NULL UNIQUE, value {value_type})',
        # A thousand versions a row, an array a column: a row for each takes twice as long to write.
        # ``first`` counts those in the rows before.
        f"CREATE TABLE {names.versions} (release integer NOT NULL, first integer NOT NULL,"
        f' record_id text[] COLLATE "C" NOT NULL, {own} label text[] COLLATE "C" NOT NULL'
        ") PARTITION BY LIST (release)",
        # The groups of the versions in the row that begins with the same one.
        f"CREATE TABLE {names.placement} (release integer NOT NULL, first integer NOT NULL,"
        " gids integer[] NOT NULL) PARTITION BY LIST (release)",
        f"CREATE TABLE {names.groups} ("
        # Every partition gets its index when it is full, which is quicker.
        f"release integer NOT NULL, gid integer NOT NULL, {general} candidates integer[] NOT NULL,"
        " counterfeits integer NOT NULL) PARTITION BY LIST (release)",
        f"CREATE TABLE {names.absent} ("
        'record_id text COLLATE "C" PRIMARY KEY, release integer NOT NULL, gid integer NOT NULL,'
        " value integer NOT NULL, knowledge bytea NOT NULL, risk double precision NOT NULL)",
        f"CREATE INDEX ON {names.absent} (risk)",
        f"CREATE TABLE {names.knowledge} (first integer PRIMARY KEY, "
        + ", ".join(f"{column} bytea NOT NULL" for column in LATEST)
        + ")",
        _uncompressed(names.knowledge, LATEST),
        _uncompressed(names.placement, ["gids"]),
        _uncompressed(
            names.versions, ["record_id", *(f"q{i}" for i in range(1, len(qi) + 1)), "label"]
        ),
    ):
        plpy.execute(statement)
    provide_groups(plpy, dataset, 1)


def _uncompressed(table: str, columns: Sequence[str]) -> str:
    """Return the statement that keeps columns as they are: trying to compress takes longer."""
    changes = (f"ALTER COLUMN {column} SET STORAGE EXTERNAL" for column in columns)
    return f"ALTER TABLE {table} {', '.join(changes)}"


def create_views(
    plpy: Plpy, dataset: str, qi_columns: Sequence[str], sensitive_column: str
) -> None:
    """Make the relations that readers and admins look at."""
    names = relations_of(plpy, dataset)
    qi = "".join(
        f"g.q{i} AS {plpy.quote_ident(column)}, " for i, column in enumerate(qi_columns, start=1)
    )
    for statement in (
        # A barrier: a reader's own function in WHERE sees no value that was never published.
        f"CREATE VIEW {names.published} WITH (security_barrier) AS"
        f" SELECT g.release, g.gid, {qi} d.value AS {plpy.quote_ident(sensitive_column)}"
        f" FROM {names.groups} AS g"
        " CROSS JOIN LATERAL pg_catalog.unnest(g.candidates) AS c (code)"
        f" JOIN {names.domain} AS d ON d.code = c.code",
        f"CREATE VIEW {names.counterfeits} WITH (security_barrier) AS"
        f" SELECT g.release, g.gid, g.counterfeits AS count FROM {names.groups} AS g"
        " WHERE g.counterfeits > 0",
        f"CREATE VIEW {names.membership} AS"
        f" SELECT p.release, p.record_id, p.gid FROM {names.placed('record_id')} AS p",
        f"GRANT SELECT ON {names.published}, {names.counterfeits}"
        " TO mdistinct_reader, mdistinct_admin",
        f"GRANT SELECT ON {names.membership} TO mdistinct_admin",
    ):
        plpy.execute(statement)


def add_columns(plpy: Plpy, dataset: str, had: int, qi: Sequence[QiType]) -> None:
    """Give the tables of versions and groups more columns; past releases are NULL there."""
    names = relations_of(plpy, dataset)
    for i, column in enumerate(qi, start=had + 1):
        plpy.execute(f"ALTER TABLE {names.versions} ADD COLUMN q{i} {column.stored_array}")
        plpy.execute(_uncompressed(names.versions, [f"q{i}"]))
        plpy.execute(f"ALTER TABLE {names.groups} ADD COLUMN q{i} {column.generalized}")


def drop(plpy: Plpy, dataset: str) -> None:
    """Drop all that belongs to the dataset; never the source."""
    drop_views(plpy, dataset)
    for schema, suffix in TABLES:
        plpy.execute(f"DROP TABLE IF EXISTS {qualified(plpy, schema, dataset + suffix)}")
    drop_readers(plpy, dataset)


def drop_views(plpy: Plpy, dataset: str) -> None:
    """Drop the relations that readers and admins look at."""
    for schema, suffix in VIEWS:
        plpy.execute(f"DROP VIEW IF EXISTS {qualified(plpy, schema, dataset + suffix)}")


def drop_readers(plpy: Plpy, dataset: str) -> None:
    """Drop the functions that touch the source."""
    for signature in list(_functions(plpy, dataset)):
        plpy.execute(f"DROP ROUTINE {signature}")


def _relation_exists(plpy: Plpy, schema: str, name: str) -> bool:
    found = run(
        plpy,
        "SELECT FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relname = $2",
        ["name", "name"],
        [schema, name],
    )
    return found.nrows() > 0


def _functions(plpy: Plpy, dataset: str) -> Iterator[str]:
    """Yield the dataset's functions as DROP ROUTINE takes them."""
    for row in run(
        plpy,
        "SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text AS signature"
        " FROM pg_catalog.pg_proc AS p"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace"
        " WHERE n.nspname = $1 AND p.proname = $2",
        ["name", "name"],
        [SOURCES, dataset],
    ):
        yield str(row["signature"])
