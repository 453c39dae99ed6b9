"""Loading the compiler: quick, and nobody else notices."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from pg_mdistinct.core.garbage import uncollected

KERNELS = """
from pg_mdistinct.core.compiled import njit

@njit(cache=True)
def twice(number):
    return 2 * number
"""

USED = """
import gc, sys
from kernels import twice
from pg_mdistinct.core.compiled import NOT_NEEDED
assert twice(21) == 42
assert gc.isenabled()
print(sum(twice.stats.cache_hits.values()))
print(*(name for name in NOT_NEEDED if name in sys.modules))
"""

LOADED_AFTERWARDS = """
import sys, types
yaml = sys.modules["yaml"] = types.ModuleType("yaml")
import pg_mdistinct.core.compiled
assert sys.modules["yaml"] is yaml
"""


def run(program: str, folder: Path) -> list[str]:
    finished = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=folder, capture_output=True, text=True
    )
    return finished.stdout.splitlines()


def test_a_kernel_is_compiled_once_and_nothing_is_loaded_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    inside = "import sys; sys.modules['plpy'] = sys" + USED
    compiled, loaded = run(inside, tmp_path), run(inside, tmp_path)
    assert compiled == ["0", ""]
    assert loaded == ["1", ""]


def test_modules_that_others_have_loaded_stay_as_they_were(tmp_path: Path) -> None:
    assert run(LOADED_AFTERWARDS, tmp_path) == []


def test_collecting_goes_on_as_before() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        raise KeyError
    assert gc.isenabled()
