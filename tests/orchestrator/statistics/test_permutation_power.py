"""Power of exact tests against simulated ones."""

import math

import numpy as np
import pytest

from orchestrator.statistics import permutation
from orchestrator.statistics.permutation_power import (
    attained_level,
    paired_centre,
    paired_required_sample_size,
    paired_required_sample_size_rows,
)

NUM_DRAWS = 4000


def paired_power(n, effect, level):
    differences = np.random.default_rng(n).normal(effect, 1, (NUM_DRAWS, n))
    return (permutation.sign_flip_p(differences, np.abs(differences).max(1)) <= level * (1 + 1e-9)).mean()


def test_the_level_is_a_whole_number_of_steps():
    assert attained_level(0.05, 1 / 32) == 1 / 32
    assert attained_level(0.05, 1 / 512) == 25 / 512
    assert attained_level(0.05, 1 / 16) == 0.0
    assert attained_level(3 * 0.1, 0.1) == pytest.approx(0.3)


@pytest.mark.parametrize(("n", "level"), [(6, 0.05), (8, 0.01), (9, 0.005)])
def test_where_all_signs_must_agree_the_power_is_exact(n, level):
    effect = paired_centre(n, level) / math.sqrt(n)
    assert paired_power(n, effect, level) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / NUM_DRAWS))


@pytest.mark.parametrize(("n", "level"), [(8, 0.05), (10, 0.05), (12, 0.05), (10, 0.01)])
def test_elsewhere_it_is_near_that_of_a_t_test(n, level):
    assert paired_power(n, paired_centre(n, level) / math.sqrt(n), level) == pytest.approx(0.8, abs=0.06)


def test_no_difference_is_shown_by_too_few():
    assert paired_centre(5, 0.05) == math.inf


def test_needed_pairs_are_the_least_that_show_the_difference():
    effects = [paired_centre(n, 0.05) / math.sqrt(n) for n in range(6, 14)]
    assert effects == sorted(effects, reverse=True)
    for n, effect in zip(range(6, 14), effects, strict=True):
        found = paired_required_sample_size_rows(np.array([effect * 1.0001, effect * 0.9999]), np.ones(2), 0.05)
        assert found.tolist() == [n, n + 1]


def test_needed_pairs_at_the_ends():
    found = paired_required_sample_size_rows(np.array([1e6, 0.0, 0.05, 3.0, 0.0]), np.array([1, 1, 1, 0.0, 0.0]), 0.05)
    assert found[[0, 3]].tolist() == [6, 6] and np.isnan(found[[1, 2, 4]]).all()


def test_needed_pairs_of_one_difference():
    assert paired_required_sample_size(1e6, 1.0, 0.05) == 6 and paired_required_sample_size(0.0, 1.0, 0.05) is None
    assert paired_required_sample_size(1.5, 1.0, 0.05) == 7
