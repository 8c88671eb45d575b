"""Rates over seeds and groups of test items, against jackknives, sums by hand and simulation."""

import numpy as np
import pytest

from orchestrator.statistics import over_groups, student

RNG = np.random.default_rng(3)
LENGTHS = RNG.integers(20, 60, size=6).astype(float)


def table(num_seeds: int = 4, num_groups: int = 6) -> np.ndarray:
    return RNG.integers(0, 20, size=(num_seeds, num_groups)).astype(float)


def assert_equal(found: student.Estimates, expected: student.Estimates) -> None:
    assert [float(part) for part in found] == pytest.approx([float(part) for part in expected], rel=1e-9)


def jackknife_variance(statistic, values: np.ndarray, axis: int) -> float:
    """Of a mean, by leaving out one index of `axis` after the other (Tukey 1958)."""
    n = values.shape[axis]
    without = np.array([statistic(np.delete(values, i, axis)) for i in range(n)])
    return (n - 1) / n * float(np.square(without - without.mean()).sum())


def test_the_variance_is_that_of_both_jackknives_less_what_both_count():
    errors, lengths = table(), np.full(6, 30.0)

    def rate(part):
        return part.sum() / (part.shape[0] * part.shape[1] * 30.0)

    of_seeds, of_groups = (jackknife_variance(rate, errors, axis) for axis in (0, 1))
    cells = errors / 30.0
    residuals = cells - cells.mean(0) - cells.mean(1, keepdims=True) + cells.mean()
    of_cells = np.square(residuals).sum() / (3 * 5) / (4 * 6)
    found = over_groups.of_mean(errors, lengths)
    assert found.value == pytest.approx(rate(errors), rel=1e-12)
    expected = max(of_seeds + of_groups - of_cells, of_seeds, of_groups)
    assert found.standard_error**2 == pytest.approx(expected, rel=1e-12)
    assert found.freedom == pytest.approx(expected**2 / (of_seeds**2 / 3 + of_groups**2 / 5), rel=1e-12)


def test_where_groups_err_alike_the_interval_is_that_of_seeds_alone():
    rates = np.array([0.1, 0.2, 0.4])
    found = over_groups.of_mean(rates[:, None] * LENGTHS, LENGTHS)
    assert_equal(found, student.of_mean(rates))
    other = np.array([0.3, 0.2])
    found = over_groups.of_difference(rates[:, None] * LENGTHS, other[:, None] * LENGTHS, LENGTHS, is_paired=False)
    assert_equal(found, student.of_unpaired_difference(rates, other))


def test_where_seeds_are_alike_the_interval_is_that_of_groups_alone():
    errors = np.repeat(table(1), 3, axis=0)
    found = over_groups.of_mean(errors, np.full(6, 30.0))
    assert_equal(found, student.of_mean(errors[0] / 30.0))


def test_pairs_are_the_table_of_differences_and_conditions_may_be_exchanged():
    a, b = table(), table()
    paired = over_groups.of_difference(a, b, LENGTHS, is_paired=True)
    assert paired == over_groups.of_mean(a - b, LENGTHS)
    for is_paired in (True, False):
        there, back = (over_groups.of_difference(*two, LENGTHS, is_paired) for two in ((a, b), (b, a)))
        assert (there.value, there.standard_error) == pytest.approx((-back.value, back.standard_error))


def test_one_seed_or_one_group_says_nothing_of_the_noise():
    for errors, lengths in ((table(1), LENGTHS), (table(4, 1), np.array([30.0]))):
        found = over_groups.of_mean(errors, lengths)
        assert np.isfinite(found.value) and np.isnan(found.freedom)


def test_what_never_varies_is_certain():
    found = over_groups.of_mean(np.full((3, 6), 2.0), np.full(6, 30.0))
    assert (found.standard_error, found.freedom) == (0.0, 2 + 5)


@pytest.mark.parametrize("spreads", [(1.0, 4.0, 4.0), (1.0, 1.0, 1.0), (0.0, 4.0, 4.0)])
def test_intervals_hold_the_true_rate_about_as_often_as_they_say(spreads):
    rows, columns, cells = spreads
    shape, rng = (4000, 5, 20), np.random.default_rng(1)
    lengths = rng.gamma(20, size=20)
    noise = rows * rng.standard_normal((4000, 5, 1)) + columns * rng.standard_normal((4000, 1, 20))
    errors = (noise + cells * rng.standard_normal(shape)) * lengths
    found = over_groups.of_mean(errors, lengths)
    share = (np.abs(found.value) <= student.half_width(found, 0.95)).mean()
    assert 0.93 <= share <= 0.97
