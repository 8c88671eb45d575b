"""Whether noise has a shape that intervals bear badly: skew, or ties; judged over all conditions together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION, Floats, is_constant

Shape = Literal["normal", "skewed", "very skewed", "tied", "very tied"]
"""Normal; exponential (skewness 2); lognormal with sigma 1 (skewness 6.2); normal, rounded to steps of one or of two
standard deviations that start anywhere."""

SEEDS: Final = (3, 5, 10)


class Coverage(NamedTuple):
    """The shares of intervals that hold the true value.

    Attributes:
        paired: of differences of two conditions of one spread.
        unpaired: the same by Welch.
        unequal: by Welch where one spread is ten times the other.
    """

    mean: float
    paired: float
    unpaired: float
    unequal: float


REAL_COVERAGE: Final[Mapping[tuple[Shape, int], Coverage]] = {
    ("normal", 3): Coverage(0.9506, 0.9512, 0.9657, 0.9429),
    ("normal", 5): Coverage(0.9495, 0.9496, 0.9560, 0.9483),
    ("normal", 10): Coverage(0.9508, 0.9507, 0.9519, 0.9502),
    ("skewed", 3): Coverage(0.8849, 0.9675, 0.9743, 0.8734),
    ("skewed", 5): Coverage(0.8820, 0.9655, 0.9736, 0.8802),
    ("skewed", 10): Coverage(0.9014, 0.9572, 0.9624, 0.9006),
    ("very skewed", 3): Coverage(0.8389, 0.9735, 0.9797, 0.8296),
    ("very skewed", 5): Coverage(0.8198, 0.9756, 0.9807, 0.8224),
    ("very skewed", 10): Coverage(0.8387, 0.9677, 0.9724, 0.8435),
    ("tied", 3): Coverage(0.9091, 0.9377, 0.9663, 0.9319),
    ("tied", 5): Coverage(0.9474, 0.9498, 0.9554, 0.9485),
    ("tied", 10): Coverage(0.9510, 0.9516, 0.9522, 0.9512),
    ("very tied", 3): Coverage(0.7270, 0.8617, 0.9227, 0.8031),
    ("very tied", 5): Coverage(0.8891, 0.9410, 0.9559, 0.9083),
    ("very tied", 10): Coverage(0.9446, 0.9490, 0.9524, 0.9467),
}
"""What nominal 95 % intervals of so many seeds really cover: `python benchmarks/coverage.py` prints these numbers."""

SURE: Final = 1.96
"""Standard errors of the mean skewness from 0: 5 % of normal metrics pass it, hardly any in many conditions, where
their skewness is below `SKEWED`."""

SKEWED: Final = 0.12
"""A share of the largest skewness that so many values can have: about that of a gamma distribution of skewness 0.75,
from which on an interval of a mean covers less than 94 %."""

VERY_SKEWED: Final = 0.38
"""Between the exponential and the lognormal distribution, at 5 and 10 seeds."""

TIED: Final = 0.17
VERY_TIED: Final = 0.35
VERY_TIED_OF_THREE: Final = 0.25
"""Shares of equal pairs in conditions that are not constant. Rounding to steps of 1 standard deviation makes 0.20 of
three values and 0.26 of five, steps of 2 make 0.30 and 0.43."""

HIDDEN: Final = 0.01
"""From this share on, a condition whose values are all equal may hide its noise."""


def warnings(groups: Iterable[Sequence[float]]) -> tuple[str, ...]:
    """Sentences about a metric's noise, with what intervals really cover under such noise; none if nothing is wrong.

    Args:
        groups: the metric's values over seeds in each condition.
    """
    by_size = _by_size(groups)
    sentences = []
    if (share := _skewness(by_size)) > SKEWED:
        shape: Shape = "very skewed" if share > VERY_SKEWED else "skewed"
        sentences.append(f"the noise is {shape}: {_covers(shape, by_size)}")
    if (share := _tied_share(by_size)) >= TIED:
        most = VERY_TIED_OF_THREE if _usual_size(by_size) == 3 else VERY_TIED
        shape = "very tied" if share > most else "tied"
        sentences.append(f"the noise is {shape}, with equal values under different seeds: {_covers(shape, by_size)}")
    return tuple(sentences)


def may_hide_noise(groups: Iterable[Sequence[float]]) -> bool:
    """Whether values also repeat in conditions that are not constant, so that a constant one need not be certain."""
    return _tied_share(_by_size(groups)) >= HIDDEN


def _by_size(groups: Iterable[Sequence[float]]) -> list[Floats]:
    """The groups of two values or more that are not constant, those of one size as rows of one array.

    Each is divided by a power of two, which no shape depends on.
    """
    groups_of: dict[int, list[Sequence[float]]] = {}
    for values in groups:
        if len(values) > 1:
            groups_of.setdefault(len(values), []).append(values)
    arrays = [scale.normalised(np.array(groups_of[n], np.float64))[0] for n in sorted(groups_of)]
    return [rows[~is_constant(rows)] for rows in arrays]


def _skewness(by_size: Sequence[Floats]) -> float:
    """The mean skewness over conditions, as a share of the largest that so many values can have; 0 where it may be 0.

    The skewness of n normal values (third moment over the second's power 1.5) has mean 0 and variance
    6 (n - 2) / ((n + 1) (n + 3)) (Fisher 1930), and cannot exceed (n - 2) / sqrt(n - 1). It does not depend on each
    condition's mean and spread, so it may be averaged over them. Where it varies more, as with ties, its own variance
    counts.
    """
    total = variance = square = count = 0.0
    for rows in by_size:
        n = rows.shape[1]
        if n < 3:
            continue
        centred = rows - rows.mean(1, keepdims=True)
        skewness = (centred**3).mean(1) / (centred**2).mean(1) ** 1.5
        largest = (n - 2) / np.sqrt(n - 1)
        total += float(skewness.sum()) / largest
        square += float((skewness**2).sum()) / largest**2
        variance += len(rows) * 6 * (n - 2) / ((n + 1) * (n + 3)) / largest**2
        count += len(rows)
    own = (square - total**2 / count) * count / (count - 1) if count > 1 else 0.0
    return abs(total) / count if abs(total) > SURE * max(variance, own) ** 0.5 else 0.0


def _tied_share(by_size: Sequence[Floats]) -> float:
    """The share of equal pairs among all pairs of values in one condition."""
    num_equal = num_pairs = 0
    for rows in by_size:
        gaps = np.diff(np.sort(rows, 1), axis=1) > RESOLUTION * np.abs(rows).max(1, keepdims=True)
        runs = np.concatenate([np.zeros((len(rows), 1), np.intp), np.cumsum(gaps, 1)], axis=1)
        num_equal += int(((runs[:, :, None] == runs[:, None, :]).sum() - rows.size) // 2)
        num_pairs += len(rows) * rows.shape[1] * (rows.shape[1] - 1) // 2
    return num_equal / num_pairs if num_pairs else 0.0


def _usual_size(by_size: Sequence[Floats]) -> float:
    """The median number of values in a condition."""
    return float(np.median(np.repeat([rows.shape[1] for rows in by_size], [len(rows) for rows in by_size])))


def _covers(shape: Shape, by_size: Sequence[Floats]) -> str:
    """What 95 % intervals really cover with noise of `shape`, at the simulated number of seeds nearest to the usual."""
    usual = _usual_size(by_size)
    n = min(SEEDS, key=lambda size: abs(size - usual))
    mean, paired, unpaired, unequal = (f"{100 * share:.0f} %" for share in REAL_COVERAGE[shape, n])
    return (
        f"by simulation at {n} seeds, a 95 % interval of a mean covers {mean}, of a paired difference {paired}, "
        f"of an unpaired one {unpaired}, or {unequal} where one spread is ten times the other"
    )
