from collections import Counter
from itertools import product

import numpy as np
import pytest

from orchestrator.pareto.seed_values import every_resample, num_distinct, random_resamples
from tests.orchestrator.pareto.made_up import every_draw


def test_five_seeds_have_126_resamples():
    assert [num_distinct([n]) for n in (1, 2, 3, 4, 5, 6)] == [1, 3, 10, 35, 126, 462]
    assert num_distinct([3, 2, 1]) == 30


@pytest.mark.parametrize("sizes", [[1], [3], [4], [2, 3], [1, 2, 2]])
def test_every_resample_has_the_weight_of_its_orders(sizes):
    def counted(draw, size):
        return tuple(draw.count(seed) for seed in range(size)) + (0,) * (max(sizes) - size)

    orders = product(*(every_draw(range(size)) for size in sizes))
    expected = Counter(tuple(counted(d, n) for d, n in zip(draw, sizes, strict=True)) for draw in orders)
    found = {tuple(map(tuple, one.counts.tolist())): one.weight for one in every_resample(sizes)}
    assert found == expected
    assert len(found) == num_distinct(sizes)


def test_random_resamples_draw_each_group_on_its_own_and_repeat():
    sizes = [3, 5, 3]
    found = np.array([one.counts for one in random_resamples(sizes, 4000, seed=1)])
    assert found.shape == (4000, 3, 5)
    assert (found.sum(axis=2) == sizes).all() and (found[:, [0, 2], 3:] == 0).all()
    first, third = found[:, 0, 0], found[:, 2, 0]
    assert np.mean(first) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 3 / 4000))
    assert abs(np.corrcoef(first, third)[0, 1]) < 4 / np.sqrt(4000)
    again = np.array([one.counts for one in random_resamples(sizes, 4000, seed=1)])
    other = np.array([one.counts for one in random_resamples(sizes, 4000, seed=2)])
    assert (again == found).all() and (other != found).any()
