"""Axes of figures in SVG: where a value lies, and the numbers beside it."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from orchestrator.report.numerals import fixed, written_decimals
from orchestrator.statistics.subsample import subsample

LOG_RATIO: Final = 50
MARGIN: Final = 0.06
ROOM: Final = 1e10
"""What matplotlib places ticks on must stay this far from the largest number."""
LEAST_LOG: Final = -323
MOST_LOG: Final = 308.25
"""Powers of ten of the least and the largest number."""
LEAST_POWER: Final = -306
"""The least power of ten of a unit: smaller numbers have few digits."""


class Area(NamedTuple):
    """A figure in units of its own: how large it is, and where the edges of its frame lie."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Axis:
    """One axis of a figure.

    Attributes:
        low, high: values at its ends, after the logarithm where `is_log`.
        start, end: where its ends lie, in units of the figure; the end of a vertical axis is above its start.
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, extremes: Sequence[float] = ()) -> Self:
        """The axis that holds all finite `values` with some room, and of the `extremes` what lies near them.

        Logarithmic where all are above 0 and the largest is 50 times the least or more.
        """
        inner = [value for value in values if math.isfinite(value)] or [0.0]
        is_log = min(inner) > 0 and max(inner) / min(inner) >= LOG_RATIO
        outer = [value for value in extremes if math.isfinite(value) and (value > 0 or not is_log)]
        if is_log:
            inner, outer = [math.log10(value) for value in inner], [math.log10(value) for value in outer]
        low, high = min(inner), max(inner)
        reach = (high - low) / 2 or math.inf
        low = max(min([low, *outer]), low - reach)
        high = min(max([high, *outer]), high + reach)
        room = MARGIN * (high - low) or abs(low) / 10 or 1.0
        most = MOST_LOG if is_log else sys.float_info.max
        return cls(max(low - room, -most), min(high + room, most), start, end, is_log)

    @property
    def limits(self) -> tuple[float, float]:
        """The values at its ends."""
        return (10**self.low, 10**self.high) if self.is_log else (self.low, self.high)

    def holds(self, value: float) -> bool:
        """Whether `value` lies between its ends."""
        return self.limits[0] <= value <= self.limits[1]

    def at(self, value: float) -> float:
        """Where `value` lies; what lies outside is at the nearer end."""
        if self.is_log:
            value = math.log10(value) if value > 0 else -math.inf
        halves = value / 2 - self.low / 2, self.high / 2 - self.low / 2  # the whole range may be infinite
        share = min(1.0, max(0.0, halves[0] / halves[1]))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, count: int = 6) -> tuple[tuple[float, str], ...]:
        """Up to about `count` round numbers: where each lies, and its text, without the power of ten in `unit`."""
        values = self._log_ticks() if self.is_log else []
        if len(values) < 2:
            values, digits = self._even_ticks(count)
            return tuple((self.at(value), fixed(value / 10**self.power, digits)) for value in values)
        return tuple((self.at(value), f"{value:,.12g}" if 1e-4 <= value < 1e6 else f"{value:.0e}") for value in values)

    @property
    def power(self) -> int:
        """The power of ten, a multiple of 3, that the ticks of large and of very small numbers are divided by."""
        largest = max(abs(self.low), abs(self.high))
        if self.is_log or 1e-3 <= largest < 1e5:
            return 0
        return max(LEAST_POWER, 3 * math.floor(math.log10(largest) / 3))

    @property
    def unit(self) -> str:
        """What follows the name of the quantity: ` / 10⁶`."""
        digits = str(self.power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f" / 10{digits}" if self.power else ""

    def _even_ticks(self, count: int) -> tuple[list[float], int]:
        """Multiples of 1, 2, 2.5 or 5 times a power of ten, and how many digits after the point they need."""
        from matplotlib.ticker import MaxNLocator

        low, high = self.limits
        unit = ROOM if max(abs(low), abs(high)) > sys.float_info.max / ROOM else 1.0
        locator = MaxNLocator(nbins=count, steps=[1, 2, 2.5, 5, 10], min_n_ticks=4)
        found = locator.tick_values(low / unit, high / unit)
        step = float(f"{found[1] - found[0]:.6g}") / 10**self.power * unit
        values = [float(value) * unit for value in found]
        return [value for value in values if low <= value <= high], written_decimals(step)

    def _log_ticks(self) -> list[float]:
        """Powers of ten, and their doubles and fives where few fit."""
        powers = range(max(math.floor(self.low), LEAST_LOG), min(math.ceil(self.high), math.floor(MOST_LOG)) + 1)
        factors = (1,) if self.high - self.low > 3 else (1, 2, 5)
        values = [factor * 10.0**power for power in powers for factor in factors]
        found = [value for value in values if self.low <= math.log10(value) <= self.high]
        return [found[i] for i in subsample(len(found), 7)]
