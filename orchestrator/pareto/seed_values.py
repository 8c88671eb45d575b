"""The values behind points as arrays, for what draws seeds again or leaves one out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.pareto.attainment import thinned
from orchestrator.pareto.front import is_minimal, signs
from orchestrator.results.points import Point, centres
from search_spaces.sweep import Objective

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_COMPARED: Final = 500


def stretch(n: Indices) -> Floats:
    """How much further from the mean than a plain resample's the drawn mean of n seeds is; 0 for one seed.

    By sqrt(n / (n - 1)), for the variance of a plain resample's mean is (n - 1) / n of that of a mean of n seeds; and
    by the ratio of Student's 95 % quantile with n - 1 degrees of freedom to the normal one, for the spread itself is
    only known from n seeds. So points that are equal seem to be told apart about as often as they should.
    """
    from scipy.special import ndtri, stdtrit

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
    """

    means: Floats
    deviations: Floats
    groups: Indices
    sizes: Indices

    @classmethod
    def of(cls, points: Sequence[Point], objectives: Sequence[Objective]) -> "SeedValues":
        """Those of at least one point."""
        numbers = {seeds: number for number, seeds in enumerate(dict.fromkeys(point.seeds for point in points))}
        groups = np.array([numbers[point.seeds] for point in points], np.intp)
        sizes = np.array([len(seeds) for seeds in numbers], np.intp)
        means, sign = centres(points), signs(objectives)
        deviations = np.zeros((sizes.max(), *means.shape))
        for num_seeds in np.unique(sizes):
            chosen = np.flatnonzero(sizes[groups] == num_seeds)
            values = np.array([points[int(i)].values for i in chosen])
            deviations[:num_seeds, chosen] = np.moveaxis(values, 2, 0) - means[chosen]
        stds = np.array([[summary.std for summary in point.summaries] for point in points])
        return cls(means * sign, np.where(stds > 0, deviations, 0.0) * sign, groups, sizes)

    def chosen(self, indices: Indices) -> "SeedValues":
        """Some of the points, with the groups that they are of."""
        numbers, groups = np.unique(self.groups[indices], return_inverse=True)
        return SeedValues(self.means[indices], self.deviations[:, indices], groups, self.sizes[numbers])

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
        best, worst = self.means - reach, self.means + reach
        left = np.arange(len(best))
        for row in thinned(worst[is_minimal(worst)], MAX_COMPARED):
            is_out = (row <= best[left]).all(axis=1) & (row < best[left]).any(axis=1)
            left = left[~is_out]
        return left
