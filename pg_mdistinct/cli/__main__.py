"""Lets `python -m pg_mdistinct.cli` do what `pg-mdistinct` does."""

from __future__ import annotations

from pg_mdistinct.cli import main

main(prog_name="pg-mdistinct")
