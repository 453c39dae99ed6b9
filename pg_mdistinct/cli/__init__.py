"""The command line, `pg-mdistinct`."""

from __future__ import annotations

import click

from pg_mdistinct import __version__
from pg_mdistinct.cli.attack import attack
from pg_mdistinct.cli.datasets import alter, drop, preview, publish, register, releases, verify
from pg_mdistinct.cli.demo import demo
from pg_mdistinct.cli.doctor import doctor
from pg_mdistinct.cli.estimate import estimate
from pg_mdistinct.cli.experiment import experiment
from pg_mdistinct.cli.export import export
from pg_mdistinct.cli.install import install, uninstall, upgrade
from pg_mdistinct.cli.learn import learn
from pg_mdistinct.cli.report import report
from pg_mdistinct.cli.risk import risk
from pg_mdistinct.cli.schedule import schedule, unschedule
from pg_mdistinct.cli.server import server
from pg_mdistinct.cli.sug import sug
from pg_mdistinct.cli.updates import allow_update, load_updates


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pg-mdistinct")
def main() -> None:
    """Publish a table that changes, again and again, without giving anybody away."""


main.add_command(server)
main.add_command(install)
main.add_command(upgrade)
main.add_command(uninstall)
main.add_command(doctor)
main.add_command(register)
main.add_command(alter)
main.add_command(drop)
main.add_command(allow_update)
main.add_command(load_updates)
main.add_command(learn)
main.add_command(preview)
main.add_command(publish)
main.add_command(schedule)
main.add_command(unschedule)
main.add_command(verify)
main.add_command(releases)
main.add_command(estimate)
main.add_command(export)
main.add_command(risk)
main.add_command(report)
main.add_command(sug)
main.add_command(attack)
main.add_command(experiment)
main.add_command(demo)
