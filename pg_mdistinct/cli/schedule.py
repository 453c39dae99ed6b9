"""`pg-mdistinct schedule` and `unschedule`: publications by pg_cron."""

from __future__ import annotations

import click

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.cli.output import json_option, print_json


@click.command()
@click.argument("dataset")
@click.argument("cron")
@json_option
@dsn_option
def schedule(dataset: str, cron: str, as_json: bool, dsn: str | None) -> None:
    """Let pg_cron publish DATASET whenever CRON ("0 2 * * 0") comes round."""
    with connected(dsn) as client:
        first_run = client.dataset(dataset).schedule(cron)
    if as_json:
        print_json({"dataset": dataset, "cron": cron, "first_run": first_run})
    else:
        click.echo(f"{dataset} is scheduled; first run: {first_run:%Y-%m-%d %H:%M %Z}")


@click.command()
@click.argument("dataset")
@dsn_option
def unschedule(dataset: str, dsn: str | None) -> None:
    """End the schedule of DATASET."""
    with connected(dsn) as client:
        client.dataset(dataset).unschedule()
    click.echo(f"{dataset} is no longer scheduled")
