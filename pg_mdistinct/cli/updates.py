"""`pg-mdistinct allow-update` and `load-updates`: the update model, value by value or at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.client.calls import Targets
from pg_mdistinct.core.errors import MdistinctError

if TYPE_CHECKING:
    from pg_mdistinct.foreign import ModelRow


@click.command("allow-update")
@click.argument("dataset")
@click.argument("old_value")
@click.argument("new_values", nargs=-1, required=True)
@click.option(
    "--probability",
    "probabilities",
    type=float,
    multiple=True,
    help="How likely each of them is; give it once for each, in the same order.",
)
@dsn_option
def allow_update(
    dataset: str,
    old_value: str,
    new_values: Sequence[str],
    probabilities: Sequence[float],
    dsn: str | None,
) -> None:
    """Declare what OLD_VALUE of DATASET may become by the next release: NEW_VALUES.

    Itself, too, if it may stay what it is. Without probabilities all are equally likely.
    """
    targets: Targets = new_values
    if probabilities:
        if len(probabilities) != len(new_values):
            raise click.UsageError(
                f"{len(new_values)} new values, but {len(probabilities)} probabilities"
            )
        targets = dict(zip(new_values, probabilities, strict=True))
    with connected(dsn) as client:
        client.allow_update(dataset, old_value, targets)
    click.echo(f"{dataset}: {old_value} may become {', '.join(new_values)}")


@click.command("load-updates")
@click.argument("dataset")
@click.argument("source", required=False)
@click.option(
    "--csv",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the model from this file instead.",
)
@dsn_option
def load_updates(dataset: str, source: str | None, file: Path | None, dsn: str | None) -> None:
    """Declare the update model of DATASET from the table or view SOURCE, or from a CSV file.

    Its columns are old_value, new_value and perhaps probability.
    """
    if (source is None) == (file is None):
        raise click.UsageError("Give the model once: as SOURCE or --csv.")
    model = source if file is None else _model(file)
    assert model is not None
    with connected(dsn) as client:
        count = client.load_updates(dataset, model)
    click.echo(f"{dataset}: possible updates: {count}")


def _model(file: Path) -> dict[str, Targets]:
    # Imported late: the other commands need not wait for Numba.
    from pg_mdistinct.foreign import csv_model

    try:
        rows = list(csv_model(file))
    except MdistinctError as error:
        raise click.ClickException(str(error)) from error
    model: dict[str, Targets] = {}
    for old_value in dict.fromkeys(row.old_value for row in rows):
        model[old_value] = _targets(row for row in rows if row.old_value == old_value)
    return model


def _targets(rows: Iterable[ModelRow]) -> Targets:
    rows = list(rows)
    if all(row.probability is None for row in rows):
        return [row.new_value for row in rows]
    try:
        return {row.new_value: float(row.probability or "") for row in rows}
    except ValueError as error:
        raise click.ClickException(
            f'the probabilities of "{rows[0].old_value}" are not all numbers'
        ) from error
