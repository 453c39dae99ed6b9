"""`pg-mdistinct register`, `alter`, `drop`, `publish`, `preview`, `verify`, `releases`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, fields

import click

from pg_mdistinct.cli.database import connected, dsn_option
from pg_mdistinct.cli.output import json_option, print_figures, print_json, print_table
from pg_mdistinct.cli.progress import progress_bar
from pg_mdistinct.client import Publication, ReleaseInfo, Violation

_variants = click.Choice(["m-distinct", "m-distinct*", "m-invariance"])


@click.command()
@click.argument("dataset")
@click.argument("source")
@click.option("--id", "id_column", required=True, help="Column that tells records apart.")
@click.option(
    "--qi",
    "qi_columns",
    required=True,
    multiple=True,
    help="Quasi-identifying column; give it once for each.",
)
@click.option("--sensitive", "sensitive_column", required=True, help="Column to protect.")
@click.option("-m", "m", required=True, type=int, help="Distinct values in each group, at least.")
@click.option(
    "--variant",
    type=_variants,
    default="m-distinct",
    show_default=True,
    help="Variant of the principle.",
)
@click.option("--max-risk", type=float, help="Bound on the adversary's best guess.")
@click.option("--updates", help="Table of allowed updates: old_value, new_value, probability.")
@dsn_option
def register(
    dataset: str,
    source: str,
    id_column: str,
    qi_columns: Sequence[str],
    sensitive_column: str,
    m: int,
    variant: str,
    max_risk: float | None,
    updates: str | None,
    dsn: str | None,
) -> None:
    """Register the table or view SOURCE as DATASET."""
    if variant == "m-invariance" and updates is not None:
        raise click.UsageError("under m-invariance values never change: leave out --updates")
    with connected(dsn) as client:
        client.register(
            dataset, source, id_column, qi_columns, sensitive_column, m, variant, max_risk
        )
        if updates is not None:
            client.load_updates(dataset, updates)
    if updates is not None or variant == "m-invariance":
        click.echo(f"{dataset} is registered; publish it with: pg-mdistinct publish {dataset}")
    else:
        click.echo(
            f"{dataset} is registered; now say what its values may become:"
            " pg-mdistinct load-updates, allow-update or learn"
        )


@click.command()
@click.argument("dataset")
@click.option("--source", help="Table or view to read from now on.")
@click.option(
    "--qi",
    "qi_columns",
    multiple=True,
    help="Quasi-identifying column; give all of them, once for each.",
)
@click.option("-m", "m", type=int, help="Distinct values in each group, at least.")
@click.option("--variant", type=_variants, help="Variant of the principle.")
@click.option("--max-risk", type=float, help="Bound on the adversary's best guess.")
@json_option
@dsn_option
def alter(
    dataset: str,
    source: str | None,
    qi_columns: Sequence[str],
    m: int | None,
    variant: str | None,
    max_risk: float | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Change what DATASET was registered with, from its next release on.

    What is not given stays. Without any option, show what is registered.
    """
    changes = {"source": source, "m": m, "variant": variant, "max_risk": max_risk}
    with connected(dsn) as client:
        found = client.dataset(dataset)
        if qi_columns or any(value is not None for value in changes.values()):
            found.alter(
                source=source,
                qi_columns=qi_columns or None,
                m=m,
                variant=variant,
                max_risk=max_risk,
            )
        info = asdict(found.info)
    if as_json:
        print_json(info)
    else:
        unbounded = {"max_risk": info["max_risk"] or "not bounded"}
        print_figures({**info, **unbounded, "qi_columns": ", ".join(info["qi_columns"])})


@click.command()
@click.argument("dataset")
@click.option("--yes", is_flag=True, help="Do not ask.")
@dsn_option
def drop(dataset: str, yes: bool, dsn: str | None) -> None:
    """Forget DATASET with all of its releases; its source is never touched."""
    if not yes:
        click.confirm(
            f"This deletes all releases of {dataset} and the history that keeps further ones"
            " safe. Go on?",
            abort=True,
        )
    with connected(dsn) as client:
        client.drop(dataset)
    click.echo(f"{dataset} is forgotten")


@click.command()
@click.argument("dataset")
@click.option("--wait", is_flag=True, help="Wait for a publication of the dataset that is running.")
@click.option("--preview", "only_preview", is_flag=True, help="The same as the verb preview.")
@json_option
@dsn_option
def publish(dataset: str, wait: bool, only_preview: bool, as_json: bool, dsn: str | None) -> None:
    """Publish DATASET as its source is now."""
    if only_preview:
        _print_publication(_previewed(dataset, wait, dsn), as_json)
        return
    with connected(dsn) as client, progress_bar(f"Publishing {dataset}") as on_progress:
        figures = client.publish(dataset, wait=wait, on_progress=on_progress)
    _print_publication(figures, as_json)


@click.command()
@click.argument("dataset")
@click.option("--wait", is_flag=True, help="Wait for a publication of the dataset that is running.")
@json_option
@dsn_option
def preview(dataset: str, wait: bool, as_json: bool, dsn: str | None) -> None:
    """Say what publishing DATASET would give; write nothing."""
    _print_publication(_previewed(dataset, wait, dsn), as_json)


@click.command()
@click.argument("dataset")
@json_option
@dsn_option
def verify(dataset: str, as_json: bool, dsn: str | None) -> None:
    """Check the whole history of DATASET; exit code 1 if it breaks the principle."""
    with connected(dsn) as client, progress_bar(f"Verifying {dataset}") as on_progress:
        violations = client.verify(dataset, on_progress=on_progress)
    if as_json:
        print_json([asdict(violation) for violation in violations])
    elif violations:
        print_table([field.name for field in fields(Violation)], map(astuple, violations))
    else:
        click.echo(f"{dataset}: no violation")
    if violations:
        raise SystemExit(1)


@click.command()
@click.argument("dataset", required=False)
@json_option
@dsn_option
def releases(dataset: str | None, as_json: bool, dsn: str | None) -> None:
    """List what has been published, of DATASET or of all."""
    with connected(dsn) as client:
        found = client.releases(dataset)
    if as_json:
        print_json([asdict(info) for info in found])
    else:
        headings = [field.name.replace("_", " ") for field in fields(ReleaseInfo)]
        print_table(headings, map(astuple, found))


def _previewed(dataset: str, wait: bool, dsn: str | None) -> Publication:
    with connected(dsn) as client, progress_bar(f"Previewing {dataset}") as on_progress:
        return client.preview(dataset, wait=wait, on_progress=on_progress)


def _print_publication(figures: Publication, as_json: bool) -> None:
    if as_json:
        print_json(asdict(figures))
    else:
        print_figures(asdict(figures))
