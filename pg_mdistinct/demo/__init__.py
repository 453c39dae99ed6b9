"""The paper's hospital, played on the embedded server: `pg-mdistinct demo`."""

from __future__ import annotations

from pg_mdistinct.demo.play import play

__all__ = ["play"]
