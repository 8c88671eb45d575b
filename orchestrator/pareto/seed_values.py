"""The values behind points as arrays, and seeds drawn again with replacement, in each group of points with the same."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.pareto.attainment import thinned
from orchestrator.pareto.front import is_minimal, places, signs
from orchestrator.results.points import Point, centres, sizes
from orchestrator.statistics import scale
from search_spaces.sweep import Objective


class Resample(NamedTuple):
    """How often each seed was drawn.

    Attributes:
        weight: how many of the ordered resamples it stands for; they are equally likely.
        counts: (groups, seeds of the largest group); a row's sum is the size of its group.
    """

    weight: float
    counts: NDArray[np.intp]


def num_distinct(sizes: Sequence[int]) -> int:
    """How many different resamples groups of these sizes have: C(2n - 1, n) multisets in each."""
    return math.prod(math.comb(2 * int(n) - 1, int(n)) for n in sizes)


def every_resample(sizes: Sequence[int]) -> Iterator[Resample]:
    """Each different resample, weighted by how many orders make it."""
    width = max(sizes)
    multisets: dict[int, list[Resample]] = {n: [] for n in sizes}  # groups of one size share theirs
    for n, resamples in multisets.items():
        for drawn in itertools.combinations_with_replacement(range(n), n):
            counts = np.bincount(drawn, minlength=width)
            orders = math.factorial(n) // math.prod(math.factorial(int(count)) for count in counts)
            resamples.append(Resample(float(orders), counts[None]))
    for chosen in itertools.product(*(multisets[n] for n in sizes)):
        yield Resample(math.prod(one.weight for one in chosen), np.concatenate([one.counts for one in chosen]))


def random_resamples(sizes: Sequence[int], number: int, seed: int) -> Iterator[Resample]:
    """`number` independent resamples; the same for the same `seed`."""
    drawn, of_group = np.random.default_rng(seed), np.asarray(sizes)
    for _ in range(number):
        counts = np.zeros((len(sizes), of_group.max()), np.intp)
        for n in np.unique(of_group):
            rows = np.flatnonzero(of_group == n)
            taken = drawn.integers(n, size=(len(rows), n)) + n * np.arange(len(rows))[:, None]
            counts[rows, :n] = np.bincount(taken.ravel(), minlength=len(rows) * n).reshape(-1, n)
        yield Resample(1.0, counts)


Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_COMPARED: Final = 500


def stretch(n: Indices) -> Floats:
    """How much further from the mean than a plain resample's the drawn mean of n seeds is; 0 for one seed.

    By sqrt(n / (n - 1)), for the variance of a plain resample's mean is (n - 1) / n of that of a mean of n seeds; and
    by the ratio of Student's 95 % quantile with n - 1 degrees of freedom to the normal one, for the spread itself is
    only known from n seeds. So points that are equal seem to be told apart about as often as they should.
    """
    from scipy.special import ndtri, stdtrit  # slow to load: only where it is used, as in statistics

    freedom = np.maximum(n - 1.0, 1.0)
    factors: Floats = np.sqrt(n / freedom) * stdtrit(freedom, 0.95) / ndtri(0.95)
    return np.where(n > 1, factors, 0.0)


@dataclass(frozen=True)
class SeedValues:
    """P points under up to N seeds in d objectives; less is better in each. Points with the same seeds are a group.

    Attributes:
        means: (P, d).
        deviations: (N, P, d) from the means; 0 where nothing varies, and beyond a point's own seeds.
        groups: (P,) which group a point is of.
        sizes: (G,) how many seeds each group has.
        magnitudes: (P, d) largest sizes of the values.
        powers: (d,) of two, by which all these were divided; 0 but for numbers above 1e298 or below 1e-298.
    """

    means: Floats
    deviations: Floats
    groups: Indices
    sizes: Indices
    magnitudes: Floats
    powers: Indices

    @classmethod
    def of(cls, points: Sequence[Point], objectives: Sequence[Objective]) -> "SeedValues":
        """The arrays of at least one point."""
        groups_of = {seeds: number for number, seeds in enumerate(dict.fromkeys(point.seeds for point in points))}
        groups = np.array([groups_of[point.seeds] for point in points], np.intp)
        counts = np.array([len(seeds) for seeds in groups_of], np.intp)
        powers, sign = scale.headroom(sizes(points).T), signs(objectives)
        means, magnitudes = (scale.times(values, -powers) for values in (centres(points), sizes(points)))
        deviations = np.zeros((counts.max(), *means.shape))
        for num_seeds in np.unique(counts):
            chosen = np.flatnonzero(counts[groups] == num_seeds)
            values = scale.divided(np.array([points[int(i)].values for i in chosen]), powers)
            deviations[:num_seeds, chosen] = np.moveaxis(values, 2, 0) - means[chosen]
        stds = np.array([[summary.std for summary in point.summaries] for point in points])
        return cls(means * sign, np.where(stds > 0, deviations, 0.0) * sign, groups, counts, magnitudes, powers)

    def chosen(self, indices: Indices) -> "SeedValues":
        """Some of the points, with the groups that they are of."""
        numbers, groups = np.unique(self.groups[indices], return_inverse=True)
        means, deviations, magnitudes = self.means[indices], self.deviations[:, indices], self.magnitudes[indices]
        return SeedValues(means, deviations, groups, self.sizes[numbers], magnitudes, self.powers)

    def divided(self, powers: Indices) -> "SeedValues":
        """The values divided by further powers of two (d,)."""
        arrays = (self.means, self.deviations, self.magnitudes)
        means, deviations, magnitudes = (scale.times(values, -powers) for values in arrays)
        return SeedValues(means, deviations, self.groups, self.sizes, magnitudes, self.powers + powers)

    def resampled(self, counts: Indices) -> Floats:
        """Means (P, d) of a resample that has seed k of group g `counts[g, k]` times, further from the means.

        Further by `stretch`.
        """
        n = self.sizes[self.groups]
        scales = np.where(n > 1, stretch(n) / n, 0.0)
        total = np.zeros_like(self.means)
        for of_seed, deviations in zip(counts.T, self.deviations, strict=False):
            total += of_seed[self.groups, None] * deviations
        return self.means + scales[:, None] * total

    def without(self, group: int, seed: int) -> Floats:
        """Means (P, d) where `group`, of two or more seeds, lacks its seed number `seed`."""
        is_of_group = (self.groups == group)[:, None]
        return self.means - np.where(is_of_group, self.deviations[seed] / (self.sizes[group] - 1), 0.0)

    def by_seed(self) -> list[Floats]:
        """The values (P, d) under each seed of points that are one group."""
        return [self.means + deviations for deviations in self.deviations]

    def resample_reach(self) -> Floats:
        """How far `resampled` can take a mean at most, (P, d)."""
        reach: Floats = stretch(self.sizes[self.groups])[:, None] * self._largest()
        return reach

    def jackknife_reach(self) -> Floats:
        """How far `without` can take a mean at most, (P, d)."""
        reach: Floats = self._largest() / np.maximum(self.sizes[self.groups][:, None] - 1, 1)
        return reach

    def _largest(self) -> Floats:
        """The deviations' largest sizes, and no less by rounding."""
        largest: Floats = np.abs(self.deviations).max(axis=0) * (1 + 1e-9)
        return largest

    def contenders(self, reach: Floats) -> Indices:
        """Points that may be on the front when every mean moves by up to `reach`; the others cannot be.

        A point is out if another is better at its worst than this one at its best; of these others at most
        `MAX_COMPARED` are looked at.
        """
        ends, magnitudes = ([self.means - reach, self.means + reach], [self.magnitudes] * 2)
        best, worst = np.split(places(np.concatenate(ends), np.concatenate(magnitudes)), 2)
        left = np.arange(len(best))
        for row in thinned(worst[is_minimal(worst)], MAX_COMPARED):
            is_out = (row <= best[left]).all(axis=1) & (row < best[left]).any(axis=1)
            left = left[~is_out]
        return left
