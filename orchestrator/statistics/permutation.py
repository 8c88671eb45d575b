"""Exact permutation tests of differences of means, of one comparison or of many rows at once."""

import itertools
import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION, Floats

MOST_FLIPS: Final = 2**20
"""All sign flips of up to 20 pairs are counted, and all regroupings up to this number: 11 against 11, not 12."""

NUM_DRAWS: Final = 999_999
"""Of more regroupings so many are drawn, always the same ones."""

BLOCK: Final = 512
ROWS: Final = 128


def sign_flip_p(differences: Floats, sizes: Floats) -> Floats:
    """Two-sided p-values of paired differences (R, n): the share of sign flips with at least so large a mean.

    Args:
        sizes: (R), the largest numbers that each row's differences are of; what rounding of them does is a tie.
    """
    n = differences.shape[1]
    return _share_as_large(differences, sizes, _all_flips(n) if is_flipped_exactly(n) else _some_flips(n))


def regrouping_p(a: Floats, b: Floats) -> Floats:
    """Two-sided p-values of groups (R, n) and (R, m): the share of regroupings with means at least so far apart."""
    n, m = a.shape[1], b.shape[1]
    values = np.concatenate(scale.normalised(a, b), axis=1)
    sizes = np.abs(values).max(1)
    values = values - values.mean(1, keepdims=True)
    return _share_as_large(values, sizes, _all_groups(n, m) if is_regrouped_exactly(n, m) else _some_groups(n, m))


def is_flipped_exactly(n: int) -> bool:
    """Whether all sign flips of n pairs are counted."""
    return n <= MOST_FLIPS.bit_length() - 1


def is_regrouped_exactly(n: int, m: int) -> bool:
    """Whether all regroupings of n and m values are counted."""
    return math.comb(n + m, n) <= MOST_FLIPS


def _share_as_large(values: Floats, sizes: Floats, blocks: Iterator[Floats]) -> Floats:
    """The share of weights that give at least so large a sum as the first ones, for each row of `values` (R, k).

    The first are those of the data. They count beside drawn ones, which keeps the level (Phipson and Smyth 2010).
    """
    num_large, num_weights = np.zeros(len(values)), 0
    least = np.empty(len(values))
    for block in blocks:
        for start in range(0, len(values), ROWS):
            rows = slice(start, start + ROWS)
            sums = np.abs(values[rows] @ block.T)
            if num_weights == 0:
                least[rows] = sums[:, 0] - RESOLUTION * values.shape[1] * sizes[rows]
            num_large[rows] += (sums >= least[rows, None]).sum(1)
        num_weights += len(block)
    return num_large / num_weights


def _all_flips(n: int) -> Iterator[Floats]:
    """Every sign of n differences, the first one's fixed: the others are mirror images; that of no flip first."""
    for start in range(0, 2 ** (n - 1), BLOCK):
        numbers = np.arange(start, min(start + BLOCK, 2 ** (n - 1)))
        is_flipped = (numbers[:, None] >> np.arange(n - 1, -1, -1)) & 1
        yield np.where(is_flipped, -1.0, 1.0)


def _some_flips(n: int) -> Iterator[Floats]:
    """The signs as they are, then `NUM_DRAWS` draws."""
    rng = np.random.default_rng(0)
    yield np.ones((1, n))
    for start in range(0, NUM_DRAWS, BLOCK):
        yield rng.choice([-1.0, 1.0], (min(BLOCK, NUM_DRAWS - start), n))


def _all_groups(n: int, m: int) -> Iterator[Floats]:
    """Weights of the difference of means for every choice of n of n + m values; the first n come first.

    Of equal groups the first value stays in the first: the others are mirror images.
    """
    is_mirrored = n == m
    rest = range(1, n + m) if is_mirrored else range(n + m)
    chosen = itertools.combinations(rest, n - 1 if is_mirrored else n)
    while block := list(itertools.islice(chosen, BLOCK)):
        weights: Floats = np.full((len(block), n + m), -1 / m)
        np.put_along_axis(weights, np.array(block), 1 / n, axis=1)
        if is_mirrored:
            weights[:, 0] = 1 / n
        yield weights


def _some_groups(n: int, m: int) -> Iterator[Floats]:
    """The groups as they are, then `NUM_DRAWS` draws."""
    rng = np.random.default_rng(0)
    own = np.r_[np.full(n, 1 / n), np.full(m, -1 / m)]
    yield own[None]
    for start in range(0, NUM_DRAWS, BLOCK):
        yield rng.permuted(np.tile(own, (min(BLOCK, NUM_DRAWS - start), 1)), axis=1)
