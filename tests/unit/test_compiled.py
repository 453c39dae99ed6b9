"""Loading the compiler: quick, and nobody else notices."""

from __future__ import annotations

import gc
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from numba.core.dispatcher import Dispatcher

from pg_mdistinct import core, experiments
from pg_mdistinct.core.garbage import uncollected

KERNELS = """
import numpy as np
from pg_mdistinct.core.compiled import kernel, kernel_part

@kernel_part
def times(numbers, factor):
    return np.array([factor * number for number in numbers])

@kernel()
def twice(numbers):
    return times(numbers, 2)

@kernel()
def thrice(numbers):
    return times(numbers, 3)
"""

USED = """
import gc, sys
import numpy as np
from kernels import twice
from pg_mdistinct.core.compiled import NOT_NEEDED
assert list(twice(np.array([21, 4]))) == [42, 8]
assert gc.isenabled()
assert gc.get_freeze_count() > 10_000
print(sum(twice.stats.cache_hits.values()))
print(*(name for name in NOT_NEEDED if name in sys.modules))
"""

COMPILED_AFTERWARDS = """
from kernels import thrice
assert list(thrice(np.array([21, 4]))) == [63, 12]
assert list(twice(np.array([1.5]))) == [3]
print(sum(thrice.stats.cache_misses.values()), sum(twice.stats.cache_misses.values()))
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


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        yield import_module(found.name)


def test_a_kernel_is_compiled_once_and_nothing_is_loaded_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    compiled, loaded = run(USED, tmp_path), run(USED, tmp_path)
    assert compiled[0] == "0"
    assert loaded == ["1", ""]
    # What compiling needs is there as soon as it is needed.
    *loaded, afterwards = run(USED + COMPILED_AFTERWARDS, tmp_path)
    assert loaded == ["1", ""]
    assert afterwards == "1 1"


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


def test_kernels_contain_parts_only() -> None:
    """A kernel that is loaded has no bitcode, of which another one could be built."""
    functions = [
        function
        for package in (core, experiments)
        for module in modules_of(package)
        for function in vars(module).values()
        if isinstance(function, Dispatcher)
    ]
    kernels = {function for function in functions if function.stats.cache_path}
    assert len(kernels) > 20
    assert len(set(functions) - kernels) > 30
    for function in functions:
        names = function.py_func.__code__.co_names
        called = {function.py_func.__globals__.get(name) for name in names if name != "np"}
        assert not kernels & called, function.py_func.__name__
