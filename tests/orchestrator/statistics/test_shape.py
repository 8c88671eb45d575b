"""Skew and ties are found where they are made, and nowhere else."""

import numpy as np
import pytest
from scipy import stats

from orchestrator.statistics.shape import REAL_COVERAGE, SEEDS, may_hide_noise, warnings


def conditions(draw, num=60, n=5):
    """Conditions with means and spreads of their own."""
    rng = np.random.default_rng(0)
    return (draw(rng, (num, n)) * rng.uniform(0.5, 2, (num, 1)) + rng.uniform(0, 9, (num, 1))).tolist()


def kinds(groups):
    return [sentence.partition(":")[0].partition(",")[0] for sentence in warnings(groups)]


@pytest.mark.parametrize("n", [3, 5, 10])
def test_skew_is_named_by_its_size(n):
    assert kinds(conditions(lambda rng, size: rng.standard_normal(size), n=n)) == []
    assert kinds(conditions(lambda rng, size: rng.uniform(size=size), n=n)) == []
    assert kinds(conditions(lambda rng, size: rng.exponential(size=size), 400, n)) == ["the noise is skewed"]
    assert kinds(conditions(lambda rng, size: -rng.exponential(size=size), 400, n)) == ["the noise is skewed"]
    if n > 3:
        assert kinds(conditions(lambda rng, size: rng.lognormal(size=size), 400, n)) == ["the noise is very skewed"]


def test_skew_is_no_matter_of_a_single_condition_or_of_a_slight_one():
    assert kinds([[0.0, 0.1, 0.2, 0.5, 1.0]]) == []
    assert kinds([[0.0, 0.1, 0.2, 0.5, 1.0]] * 9) == ["the noise is very skewed"]
    assert kinds([[1.0, 2.0], *[[0.0, 0.1, 0.2, 0.5, 1.0]] * 9]) == ["the noise is very skewed"]  # two values have none
    assert kinds(conditions(lambda rng, size: rng.gamma(40.0, size=size), 2000)) == []


def test_normal_noise_is_seldom_called_skewed():
    rng = np.random.default_rng(1)
    called = sum(bool(kinds(rng.standard_normal((12, 5)))) for _ in range(400))
    assert stats.binomtest(called, 400, 0.05, alternative="greater").pvalue > 0.001
    assert called > 0


@pytest.mark.parametrize(
    ("step", "expected"), [(0.1, []), (1.0, ["the noise is tied"]), (2.0, ["the noise is very tied"])]
)
@pytest.mark.parametrize("n", [3, 5, 10])
def test_ties_are_named_by_their_size(step, expected, n):
    rng = np.random.default_rng(5)
    values = step * np.round((rng.standard_normal((1000, n)) + rng.uniform(0, step, (1000, 1))) / step)
    assert kinds(values) == expected


def test_ties_by_hand():
    """Of 3 + 3 pairs 1 is equal; constants do not count, as they may have no noise."""
    assert kinds([[1.0, 1.0, 2.0], [1.0, 2.0, 3.0]]) == []
    assert kinds([[1.0, 1.0, 2.0], [1.0, 2.0, 3.0][:2]]) == ["the noise is tied"]
    assert kinds([[1.0, 1.0, 2.0]]) == ["the noise is very tied"]
    assert kinds([[1.0, 1.0, 1.0]] * 9) == []
    assert kinds([[0.3 - 0.1, 0.4 - 0.2, 0.5]]) == ["the noise is very tied"]


def test_constants_may_hide_noise_where_others_have_ties():
    assert may_hide_noise([[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    assert not may_hide_noise([[1.0, 1.5, 2.0], [3.0, 3.0, 3.0]])
    assert not may_hide_noise([[3.0, 3.0, 3.0]])


def test_too_few_values_have_no_shape():
    assert warnings([]) == warnings([[1.0], []]) == warnings([[1.0, 2.0]] * 9) == ()
    assert not may_hide_noise([[1.0], []])


def test_sentences_name_the_real_coverage_at_the_nearest_number_of_seeds():
    (found,) = warnings([[0.0, 0.1, 0.2, 0.3, 0.3001, 5.0]] * 9)
    mean, paired, unpaired, unequal = (round(100 * share) for share in REAL_COVERAGE["very skewed", 5])
    assert f"at 5 seeds, a 95 % interval of a mean covers {mean} %, of a paired difference {paired} %" in found
    assert f"of an unpaired one {unpaired} %, or {unequal} %" in found
    (found,) = warnings([[1.0, 1.0, 2.0], [1.0, 2.0, 2.0]] * 9 + [[1.0, 1.0, 2.0, 2.0, 1.5]] * 2)
    assert "at 3 seeds" in found


def test_there_is_a_number_for_every_shape():
    shapes = {shape for shape, _ in REAL_COVERAGE}
    assert set(REAL_COVERAGE) == {(shape, n) for shape in shapes for n in SEEDS} and len(shapes) == 5
