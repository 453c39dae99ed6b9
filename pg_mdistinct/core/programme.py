"""Small packing programmes: as much as possible of what shares a few limited goods.

Maximize c·x where Ax ≤ b and x ≥ 0, all of A and b being at least 0. Doing nothing is feasible, so
the simplex method needs no first phase, may stop at any moment, and a solution may be rounded down.
"""

from __future__ import annotations

import numpy as np

from pg_mdistinct.core.arrays import FloatArray
from pg_mdistinct.core.compiled import kernel, kernel_part

TOLERANCE = 1e-9
PERTURBATION = 1e-6
PIVOTS_A_ROW = 20
"""Beyond so many pivots the gain is not worth the time; what was found by then is feasible."""


class Packing:
    """A programme that is solved for one gain after another, each time from where it stands.

    It is given by its columns A and its limits b. The tableau has a row for each unknown of the
    basis and a column for each other one; the last column is the stock. Unknowns 0 to rows - 1 are
    what is left over of each good.
    """

    def __init__(self, columns: FloatArray, limits: FloatArray) -> None:
        rows, width = columns.shape
        # Slightly different limits, so that the method never walks in a circle.
        apart = PERTURBATION * np.arange(1, rows + 1) / max(rows, 1)
        self._tableau = np.column_stack([columns, limits + apart])
        self._basis = np.arange(rows)
        self._others = np.arange(rows, rows + width)

    def maximize(self, gain: FloatArray) -> FloatArray:
        """Return how much of each column to take."""
        amounts = np.zeros(len(gain))
        _maximize(self._tableau, self._basis, self._others, gain, amounts)
        return amounts


@kernel()
def _maximize(tableau, basis, others, gain, amounts):  # type: ignore[no-untyped-def]
    """Solve for one gain: what more of each unknown promises is what it yields, less its price."""
    rows, width = tableau.shape
    promise = np.zeros(width)
    for column in range(width - 1):
        if others[column] >= rows:
            promise[column] = gain[others[column] - rows]
    for row in range(rows):
        if basis[row] >= rows:
            _subtract(promise, gain[basis[row] - rows], tableau[row])
    _improve(tableau, basis, others, promise)
    for row in range(rows):
        if basis[row] >= rows:
            amounts[basis[row] - rows] = max(tableau[row, width - 1], 0.0)


@kernel_part
def _improve(tableau, basis, others, promise):  # type: ignore[no-untyped-def]
    """Bring in the unknown that promises the most, again and again, until none does."""
    rows, width = tableau.shape
    for _ in range(PIVOTS_A_ROW * rows):
        entering = 0
        for column in range(width - 1):
            if promise[column] > promise[entering]:
                entering = column
        if promise[entering] <= TOLERANCE:
            return
        leaving, scarcest = -1, np.inf
        for row in range(rows):
            use, stock = tableau[row, entering], max(tableau[row, width - 1], 0.0)
            if use > TOLERANCE and stock / use < scarcest:
                leaving, scarcest = row, stock / use
        if leaving < 0:
            return
        _change_places(tableau, promise, leaving, entering)
        basis[leaving], others[entering] = others[entering], basis[leaving]


@kernel_part
def _change_places(tableau, promise, leaving, entering):  # type: ignore[no-untyped-def]
    """Solve the leaving row for the entering unknown, and put it into all the others."""
    pivot = tableau[leaving, entering]
    tableau[leaving, entering] = 1.0
    for column in range(tableau.shape[1]):
        tableau[leaving, column] /= pivot
    for row in range(len(tableau)):
        use = tableau[row, entering]
        if row != leaving and use != 0.0:
            tableau[row, entering] = 0.0
            _subtract(tableau[row], use, tableau[leaving])
    use = promise[entering]
    promise[entering] = 0.0
    _subtract(promise, use, tableau[leaving])


@kernel_part
def _subtract(numbers, times, others):  # type: ignore[no-untyped-def]
    """Subtract a multiple of other numbers: a loop is a fraction of the code of an expression.

    How much code there is decides how long a session takes to load it.
    """
    for i in range(len(numbers)):
        numbers[i] -= times * others[i]
