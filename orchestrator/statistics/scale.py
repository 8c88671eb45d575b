"""Powers of two by which numbers are divided before they are added or multiplied, so that no step leaves float64.

Division by a power of two is exact, so results have the digits that they have without it. What it takes away is smaller
than the largest number by a factor of 1e-300, which no sum with that number would show.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Exponents = NDArray[np.intp]

ROOM: Final = 990
"""The exponent of 1e298: ten billion numbers below that can be added."""


def exponents(sizes: Floats) -> Exponents:
    """The power of two by which each of `sizes` must be divided to lie in [0.5, 1); 0 for 0 and no number."""
    powers: Exponents = np.frexp(np.where(np.isfinite(sizes), sizes, 0.0))[1].astype(np.intp)
    return powers


def headroom(*arrays: Floats) -> Exponents:
    """The power of two by which the numbers of each row (...) of `arrays` (..., n) must be divided to leave room.

    It is 0 but where the largest is above 1e298 or below 1e-298: of others no sum or difference is infinite or coarse.
    """
    powers = exponents(largest(*arrays))
    return powers - np.clip(powers, -ROOM, ROOM)


def largest(*arrays: Floats) -> Floats:
    """The largest size in each row (...) of all `arrays` (..., n); 0 where there is none."""
    size = np.abs(arrays[0]).max(-1, initial=0.0)
    for array in arrays[1:]:
        size = np.maximum(size, np.abs(array).max(-1, initial=0.0))
    return np.asarray(size)


def times(values: Floats, powers: Exponents | np.intp) -> Floats:
    """`values` times 2 to the power of `powers`; infinite where float64 ends."""
    with np.errstate(over="ignore", under="ignore"):
        product: Floats = np.ldexp(values, powers)
    return product


def divided(values: Floats, powers: Exponents) -> Floats:
    """Rows (..., n) divided by 2 to the power of `powers` (...)."""
    return times(values, -np.asarray(powers)[..., None])


def normalised(*arrays: Floats) -> tuple[Floats, ...]:
    """Rows (..., n) of all `arrays` divided alike, so that the largest size in a row lies in [0.5, 1)."""
    powers = exponents(largest(*arrays))
    return tuple(divided(array, powers) for array in arrays)


def between(x: float, places: Sequence[float], values: Sequence[float], left: float, right: float | None) -> float:
    """The value at `x` on straight lines through `values` at rising `places`; `left` and `right` beyond them.

    Args:
        right: None for the last value.
    """
    (on_line, *scaled_places) = normalised(np.array([x, *places], np.float64))[0]
    power = exponents(largest(np.asarray(values, np.float64)))
    value = np.interp(on_line, scaled_places, divided(np.asarray(values, np.float64), power), left, right)
    return float(times(np.asarray(value), power))
