"""Registered datasets, as the catalog has them."""

from __future__ import annotations

from dataclasses import dataclass

from pg_mdistinct.core.errors import MdistinctError
from pg_mdistinct.server.errors import require
from pg_mdistinct.server.plpython import Plpy, Row, run, sqlstate_of

LOCK_NOT_AVAILABLE = "55P03"
READ_ONLY = "25006"


@dataclass(frozen=True)
class Dataset:
    """A row of mdistinct.datasets."""

    name: str
    source_schema: str
    source_table: str
    id_column: str
    id_type: str
    qi_columns: tuple[str, ...]
    qi_types: tuple[str, ...]
    sensitive_column: str
    sensitive_type: str
    m: int
    variant: str
    max_risk: float | None
    last_release: int

    @property
    def source(self) -> str:
        """Return the source as messages name it."""
        return f"{self.source_schema}.{self.source_table}"

    @property
    def column_types(self) -> list[tuple[str, str]]:
        """Return the columns that a publication reads, with their types."""
        return [
            (self.id_column, self.id_type),
            *zip(self.qi_columns, self.qi_types, strict=True),
            (self.sensitive_column, self.sensitive_type),
        ]


def find(plpy: Plpy, dataset: str) -> Dataset:
    """Return a dataset; unknown ones are an error."""
    return _select(plpy, dataset, "")


def lock(plpy: Plpy, dataset: str, *, wait: bool) -> Dataset:
    """Return a dataset that nobody else publishes or changes until the transaction ends.

    The row is read by the statement that locks it: after waiting it is what the other left.
    """
    try:
        return _select(plpy, dataset, "FOR UPDATE" if wait else "FOR UPDATE NOWAIT")
    except plpy.SPIError as error:
        if sqlstate_of(error) == READ_ONLY:
            raise _read_only(plpy) from None
        if sqlstate_of(error) != LOCK_NOT_AVAILABLE:
            raise
        raise MdistinctError(
            f'dataset "{dataset}" is being published or changed by another transaction',
            hint="Try again when that has ended, or wait for it: "
            "mdistinct_publish(..., wait => true).",
            sqlstate=LOCK_NOT_AVAILABLE,
        ) from None


def from_row(row: Row) -> Dataset:
    """Return a dataset from its row."""
    return Dataset(
        name=row["dataset"],
        source_schema=row["source_schema"],
        source_table=row["source_table"],
        id_column=row["id_column"],
        id_type=row["id_type"],
        qi_columns=tuple(row["qi_columns"]),
        qi_types=tuple(row["qi_types"]),
        sensitive_column=row["sensitive_column"],
        sensitive_type=row["sensitive_type"],
        m=row["m"],
        variant=row["variant"],
        max_risk=row["max_risk"],
        last_release=row["last_release"],
    )


def _select(plpy: Plpy, dataset: str, locking: str) -> Dataset:
    require(dataset=dataset)
    rows = run(
        plpy,
        f"SELECT * FROM mdistinct.datasets AS d WHERE d.dataset = $1 {locking}",
        ["name"],
        [dataset],
    )
    if not rows.nrows():
        raise MdistinctError(
            f'dataset "{dataset}" is not registered',
            hint="Register it with mdistinct_register. "
            "Admins find the names of all datasets in mdistinct.datasets.",
            sqlstate="42704",
        )
    return from_row(rows[0])


def _read_only(plpy: Plpy) -> MdistinctError:
    """Return the error for a session in which nothing can be published or changed."""
    if plpy.execute("SELECT pg_catalog.pg_is_in_recovery() AS standby")[0]["standby"]:
        return MdistinctError(
            "this server is a standby: it shows what was published, and publishes nothing",
            hint="Connect to its primary; what is published there is to be read here soon after.",
            sqlstate=READ_ONLY,
        )
    return MdistinctError(
        "this transaction is read-only: it can neither publish nor change anything",
        hint="See SHOW default_transaction_read_only, and begin with SET TRANSACTION READ WRITE.",
        sqlstate=READ_ONLY,
    )
