"""The source of a dataset: its columns, and the function that reads it with its owner's rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pg_mdistinct.core import errors
from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server import caller, relations
from pg_mdistinct.server.catalog import Dataset
from pg_mdistinct.server.foreign_code import foreign_code
from pg_mdistinct.server.plpython import Plpy, Row, run, sqlstate_of
from pg_mdistinct.server.qi_types import qi_type_of

# Texts of values must not depend on the settings of whoever publishes. Row-level security that
# would hide rows, or run its owner's code, is an error. What the source has to say besides errors
# is not for publishers.
SETTINGS = (
    "SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, YMD' SET intervalstyle = postgres"
    " SET timezone = 'UTC' SET extra_float_digits = 1 SET bytea_output = hex SET lc_monetary = 'C'"
    " SET row_security = off SET client_min_messages = error"
)

ROWS_AT_ONCE = 1_000
"""More make no difference, much fewer take longer."""

RELATION_KINDS = "rvmpf"
VIEW = "v"

# Failures of the source whose message tells nothing of its data.
_HARMLESS = ("57014", "55P03", "40001", "40P01")

# A statement that is prepared locks what it would read, until the transaction ends, and runs
# nothing: no other statement does that for tables and views of all kinds, with any right to read.
_HOLD = "PREPARE mdistinct_source AS SELECT FROM {0}; DEALLOCATE mdistinct_source"

# Constants in these are computed by whoever reads the table, before he reads it.
_COMPUTED = """
    WITH RECURSIVE tree (oid) AS (
        SELECT $1 UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i, tree AS t
        WHERE i.inhparent = t.oid
    ), part (class, oid) AS (
        SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.oid FROM tree AS t
        UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid
        FROM pg_catalog.pg_index AS i, tree AS t WHERE i.indrelid = t.oid
        UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid
        FROM pg_catalog.pg_statistic_ext AS s, tree AS t WHERE s.stxrelid = t.oid
    ), used (owner) AS (
        SELECT coalesce(p.proowner, o.oprowner) FROM part
        JOIN pg_catalog.pg_depend AS d ON d.classid = part.class AND d.objid = part.oid
        LEFT JOIN pg_catalog.pg_proc AS p
            ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.oid = d.refobjid
        LEFT JOIN pg_catalog.pg_operator AS o
            ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
    )
    SELECT FROM used JOIN pg_catalog.pg_roles AS r ON r.oid = used.owner
    WHERE NOT r.rolsuper AND r.oid <> $2 LIMIT 1
"""

# A type is stored as itself only if reading its texts runs no code of the type's owner: domains
# and composite types may hide a CHECK, whose functions would run with the rights of our owner.
_COLUMNS = """
    WITH RECURSIVE resolved (name, declared, type) AS (
        SELECT a.attname, pg_catalog.format_type(a.atttypid, -1), a.atttypid
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        SELECT r.name, r.declared, t.typbasetype
        FROM resolved AS r JOIN pg_catalog.pg_type AS t ON t.oid = r.type
        WHERE t.typtype = 'd'
    )
    SELECT r.name, r.declared, pg_catalog.format_type(r.type, -1) AS base,
        coalesce(e.typtype, t.typtype) IN ('b', 'e')
        OR t.typtype IN ('r', 'm') AND n.nspname = 'pg_catalog' AS storable
    FROM resolved AS r
    JOIN pg_catalog.pg_type AS t ON t.oid = r.type
    JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'
    WHERE t.typtype <> 'd'
"""


@dataclass(frozen=True)
class Column:
    """A column of the source: its type as declared, and the type behind it if that is a domain."""

    name: str
    declared: str
    base: str
    storable: bool

    @property
    def value_type(self) -> str:
        """Return the type that a sensitive column is published as."""
        return self.base if self.storable else "text"


def columns_of(plpy: Plpy, source: int) -> dict[str, Column]:
    """Return the columns of a relation by name."""
    return {
        row["name"]: Column(row["name"], row["declared"], row["base"], row["storable"])
        for row in run(plpy, _COLUMNS, ["oid"], [source])
    }


def oid_of(plpy: Plpy, relation: str) -> int:
    """Return the OID of a relation that came as a regclass."""
    return int(run(plpy, "SELECT $1::oid AS oid", ["regclass"], [relation])[0]["oid"])


def place_of(plpy: Plpy, oid: int) -> tuple[str, str]:
    """Return schema and name of a table or view."""
    rows = run(
        plpy,
        "SELECT n.nspname AS schema, c.relname AS relation, c.relkind AS kind"
        " FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = $1",
        ["oid"],
        [oid],
    )
    if not rows.nrows():
        raise MdistinctError(
            f"there is no relation with OID {oid}",
            hint="Give the name of a table or view, such as 'public.patients'.",
            sqlstate="42P01",
        )
    schema, relation = rows[0]["schema"], rows[0]["relation"]
    if rows[0]["kind"] not in RELATION_KINDS:
        raise MdistinctError(
            f"{schema}.{relation} is neither a table nor a view",
            hint="Give the name of a table or view, such as 'public.patients'.",
            sqlstate="42809",
        )
    return schema, relation


def quoted_name(plpy: Plpy, oid: int) -> str:
    """Return the name of a table or view as SQL takes it."""
    return relations.qualified(plpy, *place_of(plpy, oid))


def check(plpy: Plpy, dataset: Dataset) -> None:
    """Refuse a source that is gone, or whose columns are not those that were registered.

    Its owner could put something else in its place while we wait for a lock of his: so that comes
    first, and nobody changes or replaces it from then on until the transaction ends.
    """
    _readers(plpy, dataset)
    held = _hold(plpy, dataset)
    check_columns(dataset, columns_of(plpy, held))
    _check_rights(plpy, dataset, held)
    _check_isolation(plpy, dataset, held)


def _hold(plpy: Plpy, dataset: Dataset) -> int:
    """Lock the source; return the OID that its name has now, whatever the transaction sees."""
    reader = relations.relations_of(plpy, dataset.name).reader
    try:
        with _foreseen(plpy, dataset), foreign_code(plpy):
            held = plpy.execute(f"SELECT {reader}(true) AS source")[0]["source"]
    except plpy.SPIError:
        # That it is gone is the better reason.
        find(plpy, dataset)
        raise
    return find(plpy, dataset) if held is None else int(held)


@contextmanager
def reading(plpy: Plpy, dataset: Dataset) -> Iterator[None]:
    """Read a source that has been checked.

    It is checked once more afterwards: what no lock keeps anybody from, such as giving its schema
    another name, has then happened for nothing.
    """
    with _foreseen(plpy, dataset), foreign_code(plpy):
        yield
    _check_rights(plpy, dataset, find(plpy, dataset))


@contextmanager
def _foreseen(plpy: Plpy, dataset: Dataset) -> Iterator[None]:
    """Tell whoever may not see what a source holds no more than that it cannot be read."""
    try:
        yield
    except plpy.SPIError as error:
        sqlstate, may_see = sqlstate_of(error), caller.sees_microdata(plpy)
        if sqlstate == "42501":
            raise no_right_to_read(dataset, str(error) if may_see else None) from None
        if sqlstate in _HARMLESS or may_see:
            raise
        raise unreadable(dataset, error) from None


def find(plpy: Plpy, dataset: Dataset) -> int:
    """Return the OID of the source, which is known by its name; none is an error."""
    found = _look_up(plpy, dataset)
    if found is None:
        raise MdistinctError(
            f'the source {dataset.source} of dataset "{dataset.name}" does not exist',
            hint="Create it again under this name, or name another one: "
            "mdistinct_alter(dataset, source => ...).",
            sqlstate="42P01",
        )
    return found


def _look_up(plpy: Plpy, dataset: Dataset) -> int | None:
    found = run(
        plpy,
        "SELECT c.oid FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $1 AND c.relname = $2",
        ["name", "name"],
        [dataset.source_schema, dataset.source_table],
    )
    return int(found[0]["oid"]) if found.nrows() else None


def check_columns(dataset: Dataset, columns: Mapping[str, Column]) -> None:
    """Refuse columns that are not those that were registered."""
    for name, declared in dataset.column_types:
        if name in columns and columns[name].declared == declared:
            continue
        trouble = f"is now of type {columns[name].declared}" if name in columns else "is gone"
        raise MdistinctError(
            f'column "{name}" of {dataset.source} was registered as {declared} and {trouble}',
            hint="Give the column its name and type back, or make a view that has the columns as "
            "they were registered the source: mdistinct_alter(dataset, source => ...).",
            sqlstate=errors.SOURCE_CHANGED,
        )


def create_reader(plpy: Plpy, source: int, dataset: Dataset) -> None:
    """Make the functions that touch the source, with the caller's rights or its owner's.

    One reads the source, a thousand rows at a time, one turns a text into the text of a sensitive
    value; they do all conversions, so that code behind the source's types runs as the source's
    owner. The third locks the source.
    """
    if dataset.source_schema.startswith("pg_temp"):
        raise MdistinctError(
            f"{dataset.source_table} is a temporary table or view",
            hint="Register one that is there for everybody who publishes.",
            sqlstate="42809",
        )
    columns = columns_of(plpy, source)
    sensitive = columns[dataset.sensitive_column]
    record_id = columns[dataset.id_column]
    types, expressions = ["text"], [_text(plpy.quote_ident(record_id.name), record_id)]
    for name in dataset.qi_columns:
        is_set = qi_type_of(columns[name].base).is_set
        own = plpy.quote_ident(name)
        types.append("text" if is_set else columns[name].base)
        expressions.append(_text(own, columns[name]) if is_set else f"{own}::{columns[name].base}")
    types.append("text")
    expressions.append(_text(plpy.quote_ident(sensitive.name), sensitive))
    result = dict(zip(_result(dataset), types, strict=True))
    table = relations.qualified(plpy, dataset.source_schema, dataset.source_table)
    reader = relations.relations_of(plpy, dataset.name).reader
    _create_function(
        plpy,
        f"{reader}()",
        f"TABLE ({', '.join(f'{name} {of}[]' for name, of in result.items())}) STABLE",
        _in_arrays(f"SELECT {', '.join(expressions)} FROM {table}", result),
    )
    _create_function(
        plpy,
        f"{reader}(text)",
        "text STABLE STRICT",
        f"SELECT {_text(f'$1::{sensitive.declared}', sensitive)}",
    )
    _create_function(
        plpy,
        f"{reader}(boolean)",
        "oid VOLATILE",
        f"{_HOLD.format(table)};"
        f" SELECT pg_catalog.to_regclass({plpy.quote_literal(table)})::pg_catalog.oid",
    )
    _hand_over(plpy, source, _signatures(plpy, dataset))
    _check_rights(plpy, dataset, source)


def _in_arrays(query: str, types: Mapping[str, str]) -> str:
    """Return a query that gives the rows of another one as arrays of its columns, some at a time.

    So they are handed on and stored with hardly more effort than it takes to read them.
    """
    # Equal numbers are to be written in one way.
    values = (
        f"pg_catalog.trim_scale(s.{name})" if of == "numeric" else f"s.{name}"
        for name, of in types.items()
    )
    return (
        f"SELECT {', '.join(f'pg_catalog.array_agg({value})' for value in values)} FROM"
        f" (SELECT (pg_catalog.row_number() OVER () - 1) / {ROWS_AT_ONCE} AS part, s.*"
        f" FROM ({query}) AS s ({', '.join(types)})) AS s GROUP BY s.part"
    )


def _signatures(plpy: Plpy, dataset: Dataset) -> tuple[str, ...]:
    reader = relations.relations_of(plpy, dataset.name).reader
    return f"{reader}()", f"{reader}(text)", f"{reader}(boolean)"


def _text(expression: str, column: Column) -> str:
    """Return the SQL for a value's text, the same for equal values."""
    value = f"({expression})::{column.base}"
    if column.base == "numeric":
        return f"pg_catalog.trim_scale({value})::text"
    if column.base in ("real", "double precision"):
        # 0 and -0 are equal.
        return f"({value} + 0::{column.base})::text"
    return f"({value})::text"


def _create_function(plpy: Plpy, signature: str, result: str, body: str) -> None:
    plpy.execute(
        f"CREATE FUNCTION {signature} RETURNS {result} LANGUAGE sql PARALLEL UNSAFE"
        # Definer on purpose: the source is read with its owner's rights, not with ours.
        f" SECURITY DEFINER {SETTINGS} AS {plpy.quote_literal(body)}"
    )
    plpy.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
    plpy.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO mdistinct_owner")


def _hand_over(plpy: Plpy, source: int, signatures: tuple[str, ...]) -> None:
    """Give the functions to the source's owner if the caller may do that; else he keeps them."""
    row = run(
        plpy,
        "SELECT pg_catalog.pg_get_userbyid(c.relowner) AS owner"
        " FROM pg_catalog.pg_class AS c WHERE c.oid = $1",
        ["oid"],
        [source],
    )[0]
    try:
        with plpy.subtransaction():
            for signature in signatures:
                plpy.execute(
                    f"ALTER FUNCTION {signature} OWNER TO {plpy.quote_ident(row['owner'])}"
                )
    except plpy.SPIError as error:
        if sqlstate_of(error) != "42501":
            raise


def _result(dataset: Dataset) -> list[str]:
    """Return the names of the columns that are read."""
    return ["record_id", *(f"q{i}" for i, _ in enumerate(dataset.qi_columns, start=1)), "label"]


def _readers(plpy: Plpy, dataset: Dataset) -> dict[int, str]:
    """Return the functions that touch the source by their owners: one for each, reader() first.

    One that is missing, or would run anybody's code with our rights, is an error.
    """
    owners: dict[int, str] = {}
    for row in run(
        plpy,
        "SELECT s.signature, p.prosecdef, p.proowner AS owner,"
        " s.number > 1 OR p.proargnames IS NOT DISTINCT FROM $2 AS has_columns,"
        # A type of somebody's own may bring casts, which would run with the rights of ours.
        " NOT EXISTS (SELECT FROM pg_catalog.pg_type AS t WHERE t.oid = ANY"
        " (coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[]) || p.prorettype)"
        " AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace) AS has_plain_types"
        " FROM pg_catalog.unnest($1) WITH ORDINALITY AS s (signature, number)"
        " LEFT JOIN pg_catalog.pg_proc AS p ON p.oid = pg_catalog.to_regprocedure(s.signature)"
        " ORDER BY s.number",
        ["text[]", "text[]"],
        [list(_signatures(plpy, dataset)), _result(dataset)],
    ):
        if trouble := _trouble_with(row):
            raise MdistinctError(
                f"function {row['signature']}, which reads the source of the dataset, {trouble}",
                hint="It is made by mdistinct_register; restore it from a backup.",
                sqlstate="55000",
            )
        owners.setdefault(int(row["owner"]), row["signature"])
    return owners


def _trouble_with(reader: Row) -> str | None:
    if reader["owner"] is None:
        return "does not exist"
    if not reader["prosecdef"]:
        return "is not SECURITY DEFINER"
    if not reader["has_columns"]:
        return "has other columns than it was made with"
    return None if reader["has_plain_types"] else "uses types that are not PostgreSQL's own"


def _check_rights(plpy: Plpy, dataset: Dataset, source: int | None) -> None:
    """Refuse a source whose owner could have code of his run with the rights of another.

    Views, types, indexes and statistics run code when they are read, with the rights of whoever
    reads.
    """
    columns = [name for name, _ in dataset.column_types]
    for owner, reader in _readers(plpy, dataset).items():
        for row in run(
            plpy,
            "SELECT c.relkind AS kind, pg_catalog.pg_get_userbyid(c.relowner) AS owner,"
            " pg_catalog.pg_get_userbyid($2) AS reads, EXISTS (SELECT FROM"
            " pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid"
            " WHERE a.attrelid = c.oid AND a.attname = ANY ($3)"
            " AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace) AS has_own_types"
            " FROM pg_catalog.pg_class AS c WHERE c.oid = $1 AND c.relowner <> $2",
            ["oid", "oid", "name[]"],
            [source, owner, columns],
        ):
            computed = run(plpy, _COMPUTED, ["oid", "oid"], [source, owner])
            if row["kind"] == VIEW or row["has_own_types"] or computed.nrows():
                raise MdistinctError(
                    f"code of {dataset.source}, which belongs to {row['owner']}, would run with "
                    f"the rights of {row['reads']}, who reads it",
                    hint="A view, and a table with types, or indexes or statistics with functions, "
                    "that are not PostgreSQL's own, is registered by its owner or a superuser; a "
                    f"superuser can give function {reader} to {row['owner']}.",
                    sqlstate="42501",
                )


def _check_isolation(plpy: Plpy, dataset: Dataset, source: int) -> None:
    """Refuse to trust what a transaction sees of somebody else's table.

    Above READ COMMITTED it sees the catalogs as they were when it began, and reads what is there.
    """
    reader = next(iter(_readers(plpy, dataset)))
    for row in run(
        plpy,
        "SELECT r.rolname AS owner, pg_catalog.pg_get_userbyid($2) AS reads"
        " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_roles AS r ON r.oid = c.relowner"
        " WHERE c.oid = $1 AND r.oid <> $2 AND NOT r.rolsuper"
        " AND pg_catalog.current_setting('transaction_isolation')"
        " IN ('repeatable read', 'serializable')",
        ["oid", "oid"],
        [source, reader],
    ):
        raise MdistinctError(
            f"{row['reads']} reads {dataset.source}, which belongs to {row['owner']}, who may have "
            "made something else of it than this transaction sees",
            hint="Publish in a transaction of isolation level READ COMMITTED.",
            sqlstate="25001",
        )


def labels_of(plpy: Plpy, dataset: Dataset, texts: list[str]) -> dict[str, str]:
    """Return the canonical text of each value, as the source's own type writes it."""
    _check_rights(plpy, dataset, _look_up(plpy, dataset))
    reader = relations.relations_of(plpy, dataset.name).reader
    statement = (
        f"SELECT t.value, {reader}(t.value) AS label FROM pg_catalog.unnest($1) AS t (value)"
    )
    try:
        with foreign_code(plpy):
            rows = run(plpy, statement, ["text[]"], [texts])
    except plpy.SPIError as error:
        if len(texts) > 1:
            return {text: labels_of(plpy, dataset, [text])[text] for text in texts}
        raise MdistinctError(
            f'"{texts[0]}" is not a value of column "{dataset.sensitive_column}", '
            f"which is of type {dataset.sensitive_type}",
            hint="Give values as the column's type reads them.",
            detail=str(error),
            sqlstate=sqlstate_of(error),
        ) from None
    return {row["value"]: row["label"] for row in rows}


def no_right_to_read(dataset: Dataset, reason: str | None) -> MdistinctError:
    """Return the error for a source whose reader has lost its rights."""
    return MdistinctError(
        f'the source {dataset.source} of dataset "{dataset.name}" may not be read',
        hint=f"Grant SELECT on {dataset.source} to the owner of function "
        f'{relations.SOURCES}."{dataset.name}"(), and see that no row-level security keeps rows '
        "from that role.",
        detail=reason,
        sqlstate="42501",
    )


def unreadable(dataset: Dataset, error: Exception) -> MdistinctError:
    """Return the error for callers who must not see what a failing source says of its data."""
    return MdistinctError(
        f'the source {dataset.source} of dataset "{dataset.name}" cannot be read',
        hint="A member of mdistinct_admin sees the reason: SELECT mdistinct_preview(...).",
        sqlstate=sqlstate_of(error),
    )
