"""Correlation over seeds between conditions, against NumPy's of each pair."""

import numpy as np
import pytest

from orchestrator.statistics.correlation import over_seeds


def test_it_is_that_of_every_pair_of_conditions_that_vary() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 5))
    found = over_seeds([*rows.tolist(), [1.0] * 5])
    pairs = [np.corrcoef(rows[i], rows[j])[0, 1] for i in range(4) for j in range(i)]
    assert found is not None and found.num_pairs == 6
    assert found[:3] == pytest.approx((np.median(pairs), min(pairs), max(pairs)))


def test_it_is_1_where_seeds_move_all_alike_and_minus_1_where_against_each_other() -> None:
    seeds = [0.1, 0.4, 0.2, 0.3]
    alike = over_seeds([seeds, [x + 1 for x in seeds]])
    against = over_seeds([seeds, [1 - x for x in seeds]])
    assert alike is not None and alike.median == pytest.approx(1)
    assert against is not None and against.median == pytest.approx(-1)


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0, 3.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]])
def test_of_too_few_conditions_or_seeds_nothing_is_said(rows) -> None:
    assert over_seeds(rows) is None
