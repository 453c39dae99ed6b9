"""`pg-mdistinct report`: a page about all releases of a dataset, for people."""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex

import click
from rich.console import Console

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.database import database_dsn, dsn_option
from pg_mdistinct.client import MdistinctSqlError


@click.command()
@click.argument("dataset")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write, such as report.html.",
)
@click.option("--record", help="Show the update graph of this record, too; for admins only.")
@click.option("--for-readers", is_flag=True, help="Leave out what only admins may know.")
@dsn_option
def report(
    dataset: str, output: Path, record: str | None, for_readers: bool, dsn: str | None
) -> None:
    """Write a page about DATASET: its releases, what they promise, and what they give away.

    The page is one file, without scripts, that needs no network. Members of mdistinct_admin get
    risks, the update model and identifiers of the riskiest records; others get none of these.
    """
    if record is not None and for_readers:
        raise click.UsageError("--record is for admins, and cannot go with --for-readers")
    with Console(stderr=True).status(f"Writing about {dataset} ..."):
        page, private = _page(database_dsn(dsn), dataset, record, for_readers)
        write(page, output, private=private)
    audience = "for admins only: it names records" if private else "without anything private"
    say(f"The report is in {output}, {audience}")


def _page(dsn: str, dataset: str, record: str | None, for_readers: bool) -> tuple[str, bool]:
    # Drawing takes a second to import, which the other commands need not wait for.
    try:
        from pg_mdistinct.report.page import as_html
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"reports need {error.name}; install it with: pip install 'pg-mdistinct[report]'"
        ) from error
    from pg_mdistinct.report.figures import read_figures

    try:
        figures = read_figures(dsn, dataset, for_readers=for_readers, record=record)
    except MdistinctSqlError as error:
        raise click.ClickException(str(error)) from error
    return as_html(figures), figures.inside is not None


def write(page: str, path: Path, *, private: bool) -> None:
    """Write the whole file or nothing; a private one is for its owner's eyes."""
    unfinished = path.with_name(f".{path.name}.{token_hex(4)}")
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666
    try:
        with os.fdopen(os.open(unfinished, flags, mode), "w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
