"""`pg-mdistinct sug`: the update graph of one record as a picture."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from pg_mdistinct.cli.console import say
from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.picture import UpdateGraphPicture, as_svg, as_text, as_words


@click.command()
@click.argument("dataset")
@click.argument("record")
@click.option(
    "--svg",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the picture to this file; - is standard output.",
)
@click.option("--true-path", is_flag=True, help="Show the truth, too; for admins only.")
@dsn_option
def sug(dataset: str, record: str, svg: Path | None, true_path: bool, dsn: str | None) -> None:
    """Draw what an adversary makes of RECORD in DATASET: its update graph.

    Versions go from left to right; each has its candidates and how likely they are. Lines are
    updates that can have happened; what can be excluded is struck out.
    """
    with connected(dsn) as client, Console(stderr=True).status("Drawing ..."):
        picture = client.sug(dataset, record, true_path=true_path)
    if not picture.nodes:
        raise click.ClickException(f"{dataset}: no release has a record {record}")
    if svg is None:
        show(picture, Console())
    elif str(svg) == "-":
        click.echo(as_svg(picture), nl=False)
    else:
        write(picture, svg)
        say(f"The picture is in {svg}")


def show(picture: UpdateGraphPicture, console: Console) -> None:
    """Draw on a terminal; one that cannot show the signs gets words."""
    if console.encoding.startswith("utf"):
        console.print(as_text(picture, console.width), no_wrap=True, crop=False)
    else:
        click.echo(as_words(picture))


def write(picture: UpdateGraphPicture, path: Path) -> None:
    """Write an SVG file."""
    try:
        path.write_text(as_svg(picture), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
