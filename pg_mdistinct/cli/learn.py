"""`pg-mdistinct learn`: the update model from a history of values."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.console import Console

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.cli.output import json_option, print_json, print_table


@click.command()
@click.argument("dataset")
@click.argument("history")
@click.option("--id", "id_column", required=True, help="Column of HISTORY: who.")
@click.option("--order", required=True, help="Column of HISTORY: when.")
@click.option("--value", required=True, help="Column of HISTORY: which value.")
@click.option("--smoothing", type=float, help="Added to the count of every possible update.")
@click.option(
    "--possible",
    type=click.Choice(["observed", "symmetric", "all"]),
    help="Updates that are possible: those seen, these and their reverses, or all.",
)
@click.option("--max-gap", help="Longest time from one value to the next that counts.")
@click.option("--rare", type=int, help="Call updates rare that were seen less often than this.")
@click.option("--thin", type=int, help="Warn of values with fewer updates than this.")
@click.option("--dry-run", is_flag=True, help="Show the model; change nothing.")
@json_option
@dsn_option
def learn(
    dataset: str,
    history: str,
    id_column: str,
    order: str,
    value: str,
    dry_run: bool,
    as_json: bool,
    dsn: str | None,
    **options: float | str | None,
) -> None:
    """Learn the update model of DATASET from the table or view HISTORY."""
    given = {name: option for name, option in options.items() if option is not None}
    with connected(dsn) as client, Console(stderr=True).status("Learning ..."):
        learned = client.dataset(dataset).learn_updates(
            history, id_column, order, value, apply=not dry_run, **given
        )
    for warning in learned.warnings:
        say(f"WARNING: {warning}")
    if as_json:
        print_json(asdict(learned))
        return
    possible = [found for found in learned.transitions if found.note != "impossible"]
    print_table(
        ("old value", "new value", "seen", "probability", "note"),
        [(t.old_value, t.new_value, t.seen, t.probability, t.note) for t in possible],
    )
    impossible = len(learned.transitions) - len(possible)
    said = "nothing was changed" if dry_run else f"the model of {dataset} is in place"
    click.echo(f"{len(possible)} updates are possible, {impossible} are not; {said}")
