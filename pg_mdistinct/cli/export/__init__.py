"""`pg-mdistinct export`: a release as files for somebody who has no database."""

from __future__ import annotations

from pathlib import Path

import click

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.database import dsn_option, one_snapshot
from pg_mdistinct.cli.export import contents
from pg_mdistinct.cli.export.folder import new_folder
from pg_mdistinct.client import Client, ReleaseInfo


@click.command()
@click.argument("dataset")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to write; it must not exist yet.",
)
@click.option("--release", "number", type=int, help="The release to write, not the latest.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Parquet needs pg-mdistinct[pyarrow].",
)
@click.option("--force", is_flag=True, help="Replace an export that is in the folder.")
@dsn_option
def export(
    dataset: str, folder: Path, number: int | None, kind: str, force: bool, dsn: str | None
) -> None:
    """Write a release of DATASET to a folder, to be handed on.

    Its rows, how many of them are counterfeits in each group, and a README that tells how to use
    both. Nothing is in it that a reader (mdistinct_reader) could not read, and a reader may
    export. The folder is there when all of it is written, or not at all.
    """
    with new_folder(folder, may_replace=contents.ALL_FILES if force else None) as fresh:
        try:
            with one_snapshot(dsn) as connection:
                client = Client(connection)
                info = _chosen(client.releases(dataset), dataset, number)
                release = client.release(dataset, info.release)
                contents.write(fresh, connection, info, release, kind)
        except ImportError as error:
            raise click.ClickException(str(error)) from error
    say(f"Release {info.release} of {dataset} is in {folder}; its README.md says how to use it")


def _chosen(found: list[ReleaseInfo], dataset: str, number: int | None) -> ReleaseInfo:
    for info in reversed(found):
        if number in (None, info.release):
            return info
    if not found:
        raise click.ClickException(f"{dataset}: nothing has been published under this name")
    raise click.ClickException(
        f"{dataset} has no release {number}; it has 1 to {found[-1].release}"
    )
