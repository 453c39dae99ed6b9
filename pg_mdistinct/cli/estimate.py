"""`pg-mdistinct estimate`: an analyst's question to a release."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.cli.output import json_option, print_figures, print_json


@click.command()
@click.argument("dataset")
@click.argument("predicate", default="{}")
@click.option("--measure", help="QI column with numbers, for sum and average.")
@click.option("--release", type=int, help="The release to ask, not the latest.")
@json_option
@dsn_option
def estimate(
    dataset: str,
    predicate: str,
    measure: str | None,
    release: int | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Estimate how many records of DATASET meet PREDICATE, without the counterfeits.

    PREDICATE is a JSON object of columns: '{"age": [30, 49], "town": ["Bath"]}'.
    """
    with connected(dsn) as client:
        found = client.dataset(dataset).estimate(
            _conditions(predicate), measure=measure, release=release
        )
    figures = asdict(found)
    if as_json:
        print_json(figures)
    else:
        # Sum and average are there only where a column was to be measured.
        print_figures({name: value for name, value in figures.items() if value is not None})


def _conditions(predicate: str) -> dict[str, Any]:
    try:
        conditions = json.loads(predicate)
    except ValueError as error:
        raise click.BadParameter(
            f"not JSON, such as '{{\"age\": [30, 49]}}': {error}", param_hint="PREDICATE"
        ) from error
    if not isinstance(conditions, dict):
        raise click.BadParameter("not a JSON object of columns", param_hint="PREDICATE")
    return conditions
