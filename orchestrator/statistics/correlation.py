"""How far conditions go up and down together over the seeds that they share."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from orchestrator.statistics import scale
from orchestrator.statistics.student import is_constant

LEAST_SEEDS: Final = 3
MOST_CONDITIONS: Final = 200


class Correlations(NamedTuple):
    """Pearson's correlations of pairs of conditions over their seeds: median, lowest, highest, and number of pairs."""

    median: float
    low: float
    high: float
    num_pairs: int


def over_seeds(conditions: Sequence[Sequence[float]]) -> Correlations | None:
    """The correlations of every two of the first 200 conditions that vary; None of fewer than three seeds.

    Args:
        conditions: values of the same seeds in order.
    """
    arrays = [np.asarray(values, np.float64) for values in conditions]
    varied = [values for values in arrays if not is_constant(values)]
    if len(varied) < 2 or len(varied[0]) < LEAST_SEEDS:
        return None
    (rows,) = scale.normalised(np.stack(varied[:MOST_CONDITIONS]))
    pairs = np.asarray(np.corrcoef(rows))[np.triu_indices(len(rows), 1)]
    return Correlations(float(np.median(pairs)), float(pairs.min()), float(pairs.max()), len(pairs))
