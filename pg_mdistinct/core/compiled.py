"""Numba's compiler, loaded as quickly as it can be: every session's first call waits for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pg_mdistinct.core.garbage import staying

Function = Callable[..., Any]

NOT_NEEDED = ("scipy", "yaml")
"""What Numba loads for linear algebra and for configuration files, if it is there."""


@contextmanager
def _absent(names: tuple[str, ...]) -> Iterator[None]:
    """Let modules that nobody has loaded yet seem not to be installed."""
    hidden = [name for name in names if name not in sys.modules]
    # That is how Python itself notes that a module cannot be imported.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with staying(), _absent(NOT_NEEDED):
    from llvmlite import binding as llvm
    from numba import njit
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.runtime.nrt import rtsys

kernel_part = njit
"""Marks a function that kernels call and Python does not: each kernel has its own copy of it."""

loop_part: Any = njit(forceinline=True, _nrt=False)  # type: ignore[call-overload]
"""Marks a part that makes no arrays and returns none, and so need not count who holds them.

Its code is put where it is called: handing arrays over takes longer than many a loop.
"""


class _MachineCode(CompileResultCacheImpl):
    """Keeps the machine code of a kernel, without the bitcode that another one would be built of.

    Numba takes from the bitcode which functions there are, so it is left with two empty ones.
    """

    def reduce(self, cres: Any) -> Any:
        (name, kind, (code, _)), *others = super().reduce(cres)  # type: ignore[no-untyped-call]
        called = (cres.fndesc.llvm_func_name, cres.fndesc.llvm_cpython_wrapper_name)
        empty = "".join(f'define void @"{symbol}"() {{ unreachable }}' for symbol in called)
        return ((name, kind, (code, llvm.parse_assembly(empty).as_bitcode())), *others)


class _KernelCache(FunctionCache):
    """Loads compiled kernels without all that Numba can compile, which takes longer than they do.

    Numba itself loads that when something is to be compiled.
    """

    _impl_class = _MachineCode

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Kernels get their memory from it, and newer Numbas leave it to what is skipped here.
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def kernel(*, nogil: bool = False) -> Callable[[Function], Function]:
    """Mark a function that is compiled once per machine, and that only Python calls."""

    def compiled(function: Function) -> Function:
        dispatcher: Any = njit(nogil=nogil)(function)
        dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
        return dispatcher  # type: ignore[no-any-return]

    return compiled
