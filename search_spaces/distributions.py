"""Typed ranges that a search draws from."""

import math
from dataclasses import dataclass

from search_spaces.value_lists import check_choices, is_list
from trainables.errors import InputError, shown

Scalar = bool | int | float | str


@dataclass(frozen=True)
class Real:
    """A real number in [low, high], on a logarithmic scale if `log`.

    Raises:
        ValueError: unless low < high, and 0 < low where `log`.
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log)


@dataclass(frozen=True)
class Integer:
    """A whole number in [low, high], on a logarithmic scale if `log`.

    Raises:
        ValueError: as of `Real`.
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log)


@dataclass(frozen=True)
class Choice:
    """One of `values`, a list or tuple whose values differ.

    Raises:
        ValueError: if there is none.
        InputError: if they are no list, or two are alike.
    """

    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if not is_list(self.values):
            raise InputError(f"`values` of a Choice must be a list or tuple, but got {shown(self.values)}.")
        check_choices(self.values, "The values of a Choice")
        if not self.values:
            raise ValueError("`values` must hold at least one value, but got ().")


@dataclass(frozen=True)
class Exponential:
    """A real number in [low, high] whose density falls from `low` on, over (high - low) / 4 by the factor e.

    Raises:
        ValueError: unless low < high.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, log=False)

    def quantile(self, share: float) -> float:
        """The value below which `share` of the draws lie."""
        return self.low - (self.high - self.low) / 4 * math.log1p(share * math.expm1(-4))


Distribution = Real | Integer | Choice | Exponential


def listed(distribution: Distribution) -> tuple[Scalar, ...]:
    """All values of a distribution that has a list of them.

    Raises:
        ValueError: for real numbers, which a grid cannot list.
    """
    match distribution:
        case Choice():
            return distribution.values
        case Integer():
            return tuple(range(distribution.low, distribution.high + 1))
        case _:
            raise ValueError(f"A grid takes Choice and Integer, but got {distribution}; list its values as a Choice.")


def _check_range(low: float, high: float, log: bool) -> None:
    if not low < high:
        raise ValueError(f"`low` must be below `high`, but got {low} and {high}.")
    if log and low <= 0:
        raise ValueError(f"`low` must be positive on a logarithmic scale, but got {low}.")
