"""Loading the compiler: quick, and nobody else notices."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pg_mdistinct.core.garbage import uncollected

LOADED_ALONE = """
import gc, sys
import pg_mdistinct.core.compiled as compiled
assert gc.isenabled()
assert compiled.njit(lambda x: x + 1)(1) == 2
for name in compiled.NOT_NEEDED:
    assert name not in sys.modules, name
"""

LOADED_AFTERWARDS = """
import sys, types
yaml = sys.modules["yaml"] = types.ModuleType("yaml")
import pg_mdistinct.core.compiled
assert sys.modules["yaml"] is yaml
"""


@pytest.mark.parametrize("program", [LOADED_ALONE, LOADED_AFTERWARDS])
def test_modules_that_are_not_needed_stay_as_they_were(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


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
