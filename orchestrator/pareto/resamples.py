"""Seeds drawn again with replacement, in each group of points with the same seeds."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    multisets = {n: _multisets(n, max(sizes)) for n in set(sizes)}  # groups of one size share theirs
    for chosen in itertools.product(*(multisets[n] for n in sizes)):
        yield Resample(math.prod(one.weight for one in chosen), np.concatenate([one.counts for one in chosen]))


def _multisets(n: int, width: int) -> list[Resample]:
    """The resamples of one group of n seeds, with counts of `width` columns."""
    found = []
    for drawn in itertools.combinations_with_replacement(range(n), n):
        counts = np.bincount(drawn, minlength=width)
        orders = math.factorial(n) // math.prod(math.factorial(int(count)) for count in counts)
        found.append(Resample(float(orders), counts[None]))
    return found


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
