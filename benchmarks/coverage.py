"""How often intervals hold the true value and tests find what is not there, by simulation: nominal beside real.

    python benchmarks/coverage.py [--draws 20000]

Noise, of one standard deviation before it is rounded:
    normal
    skewed: exponential (skewness 2).
    very skewed: lognormal with sigma 1 (skewness 6.2), not scaled.
    tied, very tied: normal, rounded to steps of 1 or 2 that start anywhere.

Intervals, nominal 95 %: the share that holds the true value.
    mean, paired, unpaired: Student's t, the same of paired differences, Welch; "1 : 10" are the two spreads.
    published: the mean of n seeds against a published mean ± standard deviation of 5.
    front apart: hypervolume of five conditions 10 standard deviations apart, by the jackknife.
    front tied: of three such places with two equal conditions each. The mean of the best of two lies beyond both, so
        the volume is too large by nature; the jackknife takes off about half of that.
    front of fives: the same with five equal conditions each.
    seeds ~ speakers, of speakers, of both alone: an error rate over n seeds and 20 speakers of unequal lengths, as
        `orchestrator.statistics.over_groups` has it. Spreads of seeds, speakers and single cells: 1, 1, 1; 1, 8, 2;
        0, 0, 1. Only seeds' noise has the shape.
    bootstrap: the first of them by the quantiles of 400 resamples of seeds and speakers, of fewer draws.

Tests, nominal 5 %: the share that finds a difference where none is. In brackets the most that the exact test can
reach with so many seeds; 0 means that it can decide nothing.
    Holm: any of five conditions against the same reference, by Welch.
    equivalence: two one-sided t-tests, the true difference being exactly the margin, of 5 standard deviations.
    ASO < .5, < .2: the bound of almost stochastic order, which is no test; what it would be as one.
    seem apart: of two equal conditions one is shown as surely on the front (P >= 0.95) and the other as surely off it,
        as `orchestrator.pareto.membership` draws seeds again; nominal 10 %, 5 % for each of them.

Intervals take five times as many draws. The first four rows of each noise are `REAL_COVERAGE` in
orchestrator/statistics/shape.py, which warnings name. Normal data must be covered in 94 to 96 % of
draws; the last lines name each cell that is not.
"""

import argparse
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from orchestrator.pareto.seed_values import every_resample, num_distinct, random_resamples, stretch
from orchestrator.statistics import over_groups, pairwise, permutation, student
from orchestrator.statistics.equivalence import equivalence_p
from orchestrator.statistics.permutation_power import attained_level
from orchestrator.statistics.shape import SEEDS
from orchestrator.statistics.significance import holm, least_paired_p, least_permutation_p

SHAPES: Final = ("normal", "skewed", "very skewed", "tied", "very tied")
STEPS: Final = {"tied": 1.0, "very tied": 2.0}
NUM_PUBLISHED: Final = 5
APART: Final = 100 + 10.0 * np.stack([np.arange(5), np.arange(5)[::-1]], axis=1)
TIED_FRONT: Final = np.repeat(APART[::2], 2, axis=0)
FRONT_OF_FIVES: Final = np.repeat(APART[::2], 5, axis=0)
MARGIN: Final = 5.0
NUM_SPEAKERS: Final = 20
LENGTHS: Final = np.random.default_rng(20).gamma(20, size=NUM_SPEAKERS)
MAX_RESAMPLES: Final = 1000
Floats = NDArray[np.float64]
Draws = tuple[Floats, Floats]
"""Values (..., n) and the true means (...) that they scatter around."""


@dataclass(frozen=True)
class Row:
    """One line: a share in percent at each number of seeds.

    Attributes:
        most: what an exact test can reach, at each.
    """

    name: str
    shape: str
    shares: tuple[float, ...]
    most: tuple[float, ...] = ()

    def line(self) -> str:
        """The line as it is printed."""
        ends = [f" ({100 * most:4.2f})" for most in self.most] or [" " * 7] * len(self.shares)
        cells = "".join(f"{100 * share:9.2f}{end}" for share, end in zip(self.shares, ends, strict=True))
        return f"{self.name:<18} {self.shape:<12}{cells}".rstrip()


def draw(shape: str, rng: np.random.Generator, size: tuple[int, ...]) -> Draws:
    """Noise of one shape; the last axis of `size` is that of seeds."""
    if shape == "skewed":
        return rng.exponential(size=size), np.ones(size[:-1])
    if shape == "very skewed":
        return rng.lognormal(size=size), np.full(size[:-1], np.exp(0.5))
    if shape == "normal":
        return rng.standard_normal(size), np.zeros(size[:-1])
    step = STEPS[shape]
    start = rng.uniform(0, step, (*size[:-1], 1))
    return step * np.round((rng.standard_normal(size) + start) / step), _mean_of_rounded(start[..., 0], step)


def _mean_of_rounded(start: Floats, step: float) -> Floats:
    """The mean of a standard normal variable that is shifted by `start` and rounded to multiples of `step`."""
    numbers = np.arange(-12, 13)
    ends = special.ndtr((numbers + 0.5) * step - start[..., None])
    shares = np.diff(ends, prepend=0.0, axis=-1)
    mean: Floats = shares @ (numbers * step)
    return mean


def covered(estimates: student.Estimates, true: Floats) -> float:
    """The share of 95 % intervals that hold the true values; their ends count, up to rounding."""
    return float((np.abs(estimates.value - true) <= student.half_width(estimates, 0.95) + 1e-9).mean())


def mean(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    values, true = draw(shape, rng, (num_draws, n))
    return covered(student.of_mean(values), true)


def paired(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    (a, mean_a), (b, mean_b) = (draw(shape, rng, (num_draws, n)) for _ in range(2))
    return covered(student.of_paired_difference(a, b), mean_a - mean_b)


def unpaired(shape: str, n: int, num_draws: int, rng: np.random.Generator, m: int = 0, ratio: float = 1.0) -> float:
    (a, mean_a), (b, mean_b) = (draw(shape, rng, (num_draws, size)) for size in (n, m or n))
    return covered(student.of_unpaired_difference(a, ratio * b), mean_a - ratio * mean_b)


def unequal(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return unpaired(shape, n, num_draws, rng, ratio=10.0)


def published(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return unpaired(shape, n, num_draws, rng, m=NUM_PUBLISHED)


def volume(means: Floats, reference: Floats) -> Floats:
    """Hypervolumes (...) of points (..., K, 2) up to reference points (..., 2); less is better."""
    within = np.minimum(means, reference[..., None, :])
    order = np.argsort(within[..., 0], axis=-1)
    x, y = (np.take_along_axis(within[..., i], order, -1) for i in (0, 1))
    widths = np.diff(np.concatenate([x, reference[..., :1]], axis=-1), axis=-1)
    total: Floats = (widths * (reference[..., 1:] - np.minimum.accumulate(y, -1))).sum(-1)
    return total


def front(places: Floats, shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    """Coverage of the volume up to the worst means seen, 1 % further, as a study's is counted."""
    noise, shifts = draw(shape, rng, (num_draws, *places.shape, n))
    values = places[..., None] + noise
    means = values.mean(-1)
    reference = 1.01 * means.max(-2)
    without = [volume((values.sum(-1) - values[..., i]) / (n - 1), reference) for i in range(n)]
    estimates = student.of_jackknife(volume(means, reference), np.stack(without, axis=-1))
    return covered(estimates, volume(places + shifts, reference))


def front_apart(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return front(APART, shape, n, num_draws, rng)


def front_tied(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return front(TIED_FRONT, shape, n, num_draws, rng)


def front_of_fives(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return front(FRONT_OF_FIVES, shape, n, num_draws // 5, rng)


def grouped(spreads: tuple[float, float, float], shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    rates, lengths, true = _rates_of_speakers(spreads, shape, n, num_draws, rng)
    return covered(over_groups.of_mean(rates * lengths, lengths), true)


def bootstrapped(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    rates, lengths, true = _rates_of_speakers((1.0, 1.0, 1.0), shape, n, num_draws // 20, rng)
    seeds = rng.multinomial(n, np.full(n, 1 / n), size=400) / n
    speakers = rng.multinomial(NUM_SPEAKERS, np.full(NUM_SPEAKERS, 1 / NUM_SPEAKERS), size=400) * lengths
    speakers = speakers / speakers.sum(1, keepdims=True)
    means = np.einsum("dsk,bs,bk->db", rates, seeds, speakers, optimize=True)
    low, high = np.quantile(means, [0.025, 0.975], axis=1)
    return float(((low <= true) & (true <= high)).mean())


def _rates_of_speakers(
    spreads: tuple[float, float, float], shape: str, n: int, num_draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Rates (num_draws, n, speakers), lengths (speakers), and the true rates (num_draws)."""
    of_seeds, of_speakers, of_cells = spreads
    noise, true = draw(shape, rng, (num_draws, n))
    speakers, cells = (
        rng.standard_normal((num_draws, 1, NUM_SPEAKERS)),
        rng.standard_normal((num_draws, n, NUM_SPEAKERS)),
    )
    return of_seeds * noise[..., None] + of_speakers * speakers + of_cells * cells, LENGTHS, of_seeds * true


def same(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> Draws:
    """Two conditions of one distribution, each (num_draws, n); rounded ones to the same values."""
    values, _ = draw(shape, rng, (num_draws, 2 * n))
    return values[:, :n], values[:, n:]


def welch(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return found(student.two_sided_p(student.of_unpaired_difference(*same(shape, n, num_draws, rng))))


def found(p: Floats) -> float:
    """The share of p-values up to 0.05."""
    return float((p <= 0.05).mean())


def sign_flips(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    a, b = same(shape, n, num_draws, rng)
    return found(permutation.sign_flip_p(a - b, np.maximum(np.abs(a), np.abs(b)).max(1)))


def regroupings(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return found(permutation.regrouping_p(*same(shape, n, num_draws, rng)))


def family(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    values = draw(shape, rng, (num_draws, 6 * n))[0].reshape(num_draws, 6, n)
    p = student.two_sided_p(student.of_unpaired_difference(values[:, 1:], values[:, :1]))
    return float(np.mean([min(x for x in (*holm(row), 1.0) if x == x) <= 0.05 for row in p.tolist()]))


def equivalence(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    values, true = draw(shape, rng, (num_draws, n))
    value, error, freedom = student.of_mean(values)
    sides = MARGIN * rng.choice([-1.0, 1.0], num_draws)
    rows = zip((value - true + sides).tolist(), error.tolist(), freedom.tolist(), strict=True)
    return found(np.array([equivalence_p(*row, MARGIN) for row in rows]))


@functools.cache
def orders(shape: str, n: int, num_draws: int) -> Floats:
    """The bounds of almost stochastic order between equals; both limits are of the same draws."""
    rng = np.random.default_rng(n)
    return pairwise.almost_stochastic_order_rows(*same(shape, n, num_draws, rng), "maximize")


def below_half(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return float((orders(shape, n, num_draws) < 0.5).mean())


def below_fifth(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    return float((orders(shape, n, num_draws) < 0.2).mean())


def seem_apart(shape: str, n: int, num_draws: int, rng: np.random.Generator) -> float:
    a, b = same(shape, n, num_draws, rng)
    differences = a - b
    means = differences.mean(1)
    resamples = list(every_resample([n]) if num_distinct([n]) <= MAX_RESAMPLES else random_resamples([n], 1000, 0))
    counts, weights = np.concatenate([one.counts for one in resamples]), np.array([one.weight for one in resamples])
    drawn = means[:, None] + float(stretch(np.array([n]))[0]) / n * (differences - means[:, None]) @ counts.T
    is_best, is_worst = ((side @ weights) / weights.sum() >= 0.95 for side in (drawn <= 0, drawn >= 0))
    return float(((is_best | is_worst) & (means != 0)).mean())


Cell = Callable[[str, int, int, np.random.Generator], float]
INTERVALS: Final[dict[str, Cell]] = {
    "mean": mean,
    "paired": paired,
    "unpaired": unpaired,
    "unpaired, 1 : 10": unequal,
    "published": published,
    "front apart": front_apart,
    "front tied": front_tied,
    "front of fives": front_of_fives,
    "seeds ~ speakers": functools.partial(grouped, (1.0, 1.0, 1.0)),
    "of speakers": functools.partial(grouped, (1.0, 8.0, 2.0)),
    "of both alone": functools.partial(grouped, (0.0, 0.0, 1.0)),
    "bootstrap": bootstrapped,
}
TESTS: Final[dict[str, Cell]] = {
    "Welch": welch,
    "paired flips": sign_flips,
    "regroupings": regroupings,
    "Holm": family,
    "equivalence": equivalence,
    "ASO < .5": below_half,
    "ASO < .2": below_fifth,
    "seem apart": seem_apart,
}
MOST: Final = {
    "paired flips": tuple(attained_level(0.05, least_paired_p(n)) for n in SEEDS),
    "regroupings": tuple(attained_level(0.05, least_permutation_p(n, n)) for n in SEEDS),
}


def rows(cells: dict[str, Cell], shapes: tuple[str, ...], num_draws: int) -> Iterator[Row]:
    """One for each of `cells` and `shapes`, each cell with its own seed."""
    for (i, (name, cell)), (j, shape) in itertools.product(enumerate(cells.items()), enumerate(shapes)):
        shares = tuple(cell(shape, n, num_draws, np.random.default_rng((i, j, n))) for n in SEEDS)
        yield Row(name, shape, shares, MOST.get(name, ()))


def main() -> None:
    """Prints all rows, and then what does not hold on normal data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000)
    num_draws, started = parser.parse_args().draws, time.perf_counter()
    outside = []
    print(f"{5 * num_draws:,} draws a cell of intervals, {num_draws:,} of tests; percent")
    print(f"{'intervals, 95':<18} {'noise':<12}" + "".join(f"{f'n = {n}':>9}{'':7}" for n in SEEDS))
    for row in rows(INTERVALS, SHAPES, 5 * num_draws):
        print(row.line(), flush=True)
        cells = zip(SEEDS, row.shares, strict=True)
        if row.shape == "normal":
            outside += [f"{row.name} at n = {n}: {share:.2%}" for n, share in cells if not 0.94 <= share <= 0.96]
    print(f"{'tests, 5':<18} {'noise':<12}" + "".join(f"{f'n = {n}':>9}{'':7}" for n in SEEDS))
    for row in rows(TESTS, ("normal", "skewed", "tied"), num_draws):
        print(row.line(), flush=True)
    print("normal data outside 94 to 96 %:", *(outside or ["none"]), sep="\n  ")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
