"""What so many seeds can show, and how many it takes: power of the t-tests, from the noncentral t distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import scale
from orchestrator.statistics.student import Floats

POWER: Final = 0.8
MOST_SEEDS: Final = 999
DOUBLED: Final = (2, 4, 8, 16, 32, 64, 128, 256, 512, MOST_SEEDS)
FEW: Final = range(2, 64)
"""Tried one by one where power need not rise for ever: against a published spread the degrees of freedom rise with n,
and fall again to those of that spread."""

FAR: Final = 100.0
"""Beyond this quantile of t the noncentral distribution is that of its denominator, to 1e-4 of the noncentrality."""

CERTAIN: Final = 1e100
"""So many standard errors are shown for certain."""


@dataclass(frozen=True)
class Design:
    """How a difference's standard error falls as groups grow to n seeds each.

    Attributes:
        stds: the sample standard deviation of each group that grows: one (paired differences, or values held against
            a number), or two (Welch). A float, or an array with one for each of many comparisons.
        fixed_error: standard error of what does not grow, such as a published mean.
        fixed_freedom: its degrees of freedom.
    """

    stds: tuple[float | Floats, ...]
    fixed_error: float = 0.0
    fixed_freedom: float = math.inf

    @classmethod
    def against_published(
        cls, std: float, published_std: float | None = None, published_n: int | None = None
    ) -> "Design":
        """Values of sample standard deviation `std` against a published mean, which without its own counts as exact."""
        if published_std is None or published_n is None or published_n < 2:
            return cls((std,))
        return cls((std,), published_std / math.sqrt(published_n), published_n - 1)

    def at(self, n: int | Floats) -> tuple[Floats, Floats]:
        """Standard error and degrees of freedom (Welch 1947) with n seeds, 2 or more, in each growing group."""
        numbers = np.asarray(n, np.float64)
        sizes = np.stack(np.broadcast_arrays(*self.stds, self.fixed_error), axis=-1)
        powers = scale.exponents(scale.largest(sizes))
        squares = [np.square(scale.times(np.asarray(std, np.float64), -powers)) / numbers for std in self.stds]
        fixed = np.square(scale.times(np.asarray(self.fixed_error), -powers))
        total = sum(squares) + fixed
        shares = sum(np.square(square) / (numbers - 1) for square in squares) + np.square(fixed) / self.fixed_freedom
        most = len(squares) * (numbers - 1.0)
        is_constant = total == 0
        freedom = np.where(is_constant, most, np.square(total) / np.where(is_constant, 1.0, shares))
        return scale.times(np.sqrt(total), powers), freedom


def required_sample_size(difference: float, design: Design, level: float = 0.05) -> int | None:
    """The least number of seeds (in each group that grows) with which a t-test shows a true `difference`.

    None where no number below 1,000 does, as for a difference of 0.
    """
    number = float(required_sample_size_rows(np.asarray(difference), design, level))
    return None if math.isnan(number) else int(number)


def required_sample_size_rows(differences: Floats, design: Design, level: float | Floats) -> Floats:
    """`required_sample_size` of each difference, NaN for None.

    Args:
        level: of each test; or for every number of seeds from 0 to 999 its own.
    """
    levels = np.broadcast_to(level, MOST_SEEDS + 1)

    def is_enough(n: Floats) -> NDArray[np.bool_]:
        error, freedom = design.at(n)
        is_certain = error == 0
        centres = np.abs(differences) / np.where(is_certain, 1.0, error)
        probability = detection(centres, freedom, levels[n.astype(np.intp)])
        return np.where(is_certain, differences != 0, probability >= POWER)

    return _least_n(is_enough, differences.shape, design)


def equivalence_required_sample_size(
    difference: float, design: Design, margin: float, level: float = 0.05
) -> int | None:
    """The least number of seeds with which two one-sided t-tests (Schuirmann 1987) find a true `difference` small.

    None where no number below 1,000 does, as for a difference that is not within the margin.
    """
    if abs(difference) >= margin:
        return None

    def is_enough(n: Floats) -> NDArray[np.bool_]:
        error, freedom = (float(x) for x in design.at(n))
        return np.asarray(equivalence_power(difference, error, freedom, margin, level) >= POWER)

    number = float(_least_n(is_enough, (), design))
    return None if math.isnan(number) else int(number)


def equivalence_power(
    difference: float, standard_error: float, freedom: float, margin: float, level: float = 0.05
) -> float:
    """The probability that two one-sided t-tests find a true `difference` to be within `margin`.

    Given the standard error seen, s times the true one, the mean must lie within the margin less t s on either side;
    averaged over 1,000 quantiles of s, which is a chi variable over the root of its degrees of freedom.
    """
    from scipy.special import gammaincinv, ndtr, stdtrit

    if standard_error == 0:
        return float(abs(difference) < margin)
    quantiles = (np.arange(1000) + 0.5) / 1000
    seen = stdtrit(freedom, 1 - level) * np.sqrt(2 * gammaincinv(freedom / 2, quantiles) / freedom)
    below, above = ((sign * margin - difference) / standard_error for sign in (-1, 1))
    return float(np.maximum(ndtr(above - seen) - ndtr(below + seen), 0.0).mean())


def noncentrality(freedom: Floats, level: float, power: float = POWER) -> Floats:
    """How many standard errors a true difference must be for a two-sided t-test to show it with probability `power`.

    In its direction; that a test shows the opposite is not counted.
    """
    from scipy.special import gammaincinv, nctdtrinc, stdtrit

    limit = stdtrit(freedom, 1 - level / 2)
    far = limit * np.sqrt(2 * gammaincinv(freedom / 2, power) / freedom)
    near = nctdtrinc(freedom, 1 - power, np.minimum(limit, FAR))
    centre: Floats = np.where(limit > FAR, far, near)
    return centre


def detection(centres: Floats, freedom: Floats, level: float | Floats) -> Floats:
    """The probability that a two-sided t-test shows true differences of so many standard errors, in their direction."""
    from scipy.special import gammainc, nctdtr, stdtrit

    limit = stdtrit(freedom, 1 - level / 2)
    far = gammainc(freedom / 2, freedom * np.square(np.minimum(centres, CERTAIN) / limit) / 2)
    near = 1 - nctdtr(freedom, np.minimum(centres, 10 * FAR), np.minimum(limit, FAR))
    probability: Floats = np.where((limit > FAR) | (centres > 10 * FAR), far, near)
    return probability


def _least_n(is_enough: Callable[[Floats], NDArray[np.bool_]], shape: tuple[int, ...], design: Design) -> Floats:
    """The least n from 2 to `MOST_SEEDS` that is enough, by doubling, then halving; NaN where none is."""
    low, high = np.full(shape, 1.0), np.full(shape, np.nan)
    for n in sorted({*DOUBLED, *FEW}) if design.fixed_error else DOUBLED:
        if not np.isnan(high).any():
            break
        enough = np.isnan(high) & is_enough(np.full(shape, float(n)))
        high = np.where(enough, n, high)
        low = np.where(np.isnan(high), n, low)
    for _ in range(MOST_SEEDS.bit_length() - 1):
        middle = np.floor((low + np.nan_to_num(high, nan=MOST_SEEDS)) / 2)
        is_open = middle > low
        if not is_open.any():
            break
        enough = is_enough(np.maximum(middle, 2.0))
        low, high = np.where(is_open & ~enough, middle, low), np.where(is_open & enough, middle, high)
    return high
