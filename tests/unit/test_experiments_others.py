"""Other tools get the same snapshots; without them only what is told of their absence is tested."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from pg_mdistinct.cli import main
from pg_mdistinct.experiments import others
from pg_mdistinct.experiments.registry import Setting

NEEDED = ("anonypy", "anonypyx", "pycanon")
MISSING = [module for module in NEEDED if find_spec(module) is None]
with_tools = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")
without_tools = pytest.mark.skipif(not MISSING, reason="all tools are there")


@without_tools
def test_missing_tools_are_named(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["experiment", "others", "-o", str(tmp_path)])
    assert found.exit_code == 1
    assert f"others needs {', '.join(MISSING)}: pip install" in found.stderr
    assert not list(tmp_path.iterdir())


@with_tools
def test_all_tools_publish_everybody_in_diverse_groups() -> None:
    setting = Setting(0.05)
    snapshots = list(others.workload(setting).releases(2))
    for publish in (others.publish_with_anonypy, others.publish_with_anonypyx):
        found = publish(snapshots)
        assert found.boxes.records.sum() == len(snapshots[-1])
        assert len(found.seconds) == len(snapshots)
        for group in range(len(found.boxes.rows)):
            assert len(set(found.boxes.rows.row(group).tolist())) >= others.M
        people = snapshots[-1]
        last = found.history.version_release == len(snapshots)
        group = found.history.group[last] - found.history.group[last].min()
        place = np.searchsorted(people["id"], found.history.record[last])
        assert (people["age"][place] >= found.boxes.low[0][group]).all()
        assert (people["age"][place] <= found.boxes.high[0][group]).all()


@with_tools
def test_tools_are_set_side_by_side() -> None:
    table = others.side_by_side(Setting(0.05), lambda words, share: None).tables[0]
    rows = {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(rows) == ["anonypy", "anonypyx", "pg_mdistinct"]
    assert all(int(str(row["pycanon_l"])) >= others.M for row in rows.values())
    assert rows["pg_mdistinct"]["disclosed"] == 0
    assert float(str(rows["anonypy"]["disclosed"])) > 0
