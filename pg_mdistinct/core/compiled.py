"""Numba's compiler, loaded as quickly as it can be: every session's first call waits for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pg_mdistinct.core.garbage import uncollected

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


with uncollected(), _absent(NOT_NEEDED):
    from numba import njit

    if "plpy" in sys.modules:
        # Looks for SciPy's linear algebra, which takes longer to load than all kernels. Outside of
        # PostgreSQL others may want to use it in theirs.
        import numba.np.arraymath  # noqa: F401

__all__ = ["njit"]
