"""Points held against each other: every field by its own function or by hand, families, and what is warned of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from orchestrator.results.comparison import compare, compare_with_reference, reference_points
from orchestrator.results.points import Point
from orchestrator.statistics import power
from orchestrator.statistics.pairwise import Groups
from orchestrator.statistics.significance import holm, paired_permutation_p, welch_p
from orchestrator.statistics.summary import summarise
from search_spaces.sweep import Objective
from tests.orchestrator.statistics.scalar_forms import (
    almost_stochastic_order,
    hedges_g,
    improvement_probability,
    minimum_detectable_difference,
    paired_difference_interval,
    permutation_p,
    welch_interval,
)

PER, ACCURACY = Objective("per"), Objective("accuracy", "maximize")
REFERENCE = [0.20, 0.21, 0.19, 0.22, 0.20, 0.205]


def point(name, *values, seeds=None, evaluation=""):
    """A point with a row of values for each objective."""
    rows = tuple(tuple(float(x) for x in row) for row in values)
    full = f"{name}@{evaluation}" if evaluation else name
    seeds = tuple(seeds or range(1, len(rows[0]) + 1))
    return Point(full, name, evaluation, tuple(map(summarise, rows)), seeds=seeds, values=rows)


def noisy(name, mean, n=6, seed=0, std=0.01, **options):
    return point(name, np.random.default_rng(seed).normal(mean, std, n), **options)


def test_paired_points_field_by_field():
    a, b = [0.17, 0.19, 0.175, 0.18, 0.16, 0.20], REFERENCE
    (found,) = compare(point("a", a), point("b", b), [PER], "paired_permutation")
    assert (found.a, found.b, found.metric, found.is_paired) == ("a", "b", "per", True)
    assert (found.summary_a, found.summary_b) == (summarise(a), summarise(b))
    assert found.difference == pytest.approx(sum(a) / 6 - sum(b) / 6)
    assert found.interval == pytest.approx(paired_difference_interval(a, b))
    assert found.welch_p == pytest.approx(welch_p(a, b))
    assert found.p == found.p_holm == found.permutation_p == paired_permutation_p(a, b) == found.least_p == 1 / 32
    assert found.effect == pytest.approx(hedges_g(a, b))
    assert found.epsilon == almost_stochastic_order(a, b, "minimize")
    assert found.improvement == improvement_probability(a, b, "minimize")
    assert found.is_better and found.can_decide and found.answer == "better" and not found.is_certain


def test_unpaired_points_field_by_field():
    """Another seed in b, and one less."""
    a, b = [0.25, 0.24, 0.26, 0.27], [0.20, 0.21, 0.19]
    (found,) = compare(point("a", a), point("b", b, seeds=(1, 2, 9)), [PER], "welch")
    assert not found.is_paired and not found.is_better
    assert found.interval == pytest.approx(welch_interval(a, b))
    assert found.p == found.welch_p == pytest.approx(welch_p(a, b))
    assert found.permutation_p == pytest.approx(permutation_p(a, b)) and found.least_p == 1 / 35
    assert found.answer == "worse"


def test_where_more_is_better():
    a, b = noisy("a", 0.9), noisy("b", 0.8, seed=1)
    (found,) = compare(a, b, [ACCURACY], "welch")
    assert found.is_better and found.answer == "better" and found.improvement == 1.0 and found.epsilon == 0.0
    (found,) = compare(b, a, [ACCURACY], "welch")
    assert not found.is_better and found.answer == "worse" and found.improvement == 0.0 and found.epsilon == 1.0


def test_seeds_pair_only_where_they_are_the_same():
    a, b = noisy("a", 0.2), noisy("b", 0.2, seed=1, seeds=range(2, 8))
    (found,) = compare(a, b, [PER], "paired_permutation")
    assert not found.is_paired and found.p == found.welch_p == pytest.approx(welch_p(a.values[0], b.values[0]))
    assert found.permutation_p == pytest.approx(permutation_p(a.values[0], b.values[0]))
    assert any("replaced by Welch's" in warning for warning in found.warnings)
    (found,) = compare(a, b, [PER], "welch")
    assert found.warnings == ()


def test_two_evaluations_of_one_condition_are_compared_replicate_by_replicate():
    """As in claims and notes, whatever the sweep says of two conditions; scipy's paired t-test is the judge."""
    ours, shifts = np.array([0.2, 1.3, 2.1, 0.9, 1.6]), np.array([0.1, 0.11, 0.09, 0.1, 0.12])
    a, b = point("c", ours, evaluation="x"), point("c", ours + shifts, evaluation="y")
    (found,) = compare(a, b, [PER], "welch")
    judge = stats.ttest_rel(ours, ours + shifts)
    low, high = judge.confidence_interval(0.95)
    assert (found.p, *found.interval) == pytest.approx((judge.pvalue, low, high))
    assert found.answer == "better" and "a paired t-test takes the place of Welch's" in found.warnings[0]
    needed = power.required_sample_size(found.difference, power.Design((float(shifts.std(ddof=1)),)), 0.05)
    assert found.seeds_needed == needed
    (exact,) = compare(a, b, [PER], "paired_permutation")
    assert (exact.p, exact.answer) == (0.0625, "undecided") and exact.interval == found.interval
    (same,) = compare(a, point("c", ours + 0.5, evaluation="y"), [PER], "welch")
    assert (same.p, same.can_decide) == (0.0625, False)  # where differences have no spread there is no t
    (equal,) = compare(a, point("c", ours, evaluation="y"), [PER], "welch")
    assert (equal.p, equal.answer) == (1.0, "undecided")
    (fewer,) = compare(a, point("c", ours[:4], evaluation="y"), [PER], "welch")
    assert fewer.p == fewer.welch_p and "one of the evaluations lacks seeds" in " ".join(fewer.warnings)
    (other,) = compare(a, point("d", ours + shifts, evaluation="y"), [PER], "welch")
    assert other.answer == "undecided" and other.p == other.welch_p


def test_the_power_of_welch_is_at_the_first_step_of_the_family():
    points = [noisy("r", 0.2), noisy("a", 0.215, seed=1), noisy("b", 0.2, seed=2, n=4)]
    first, second = compare_with_reference(points, "r", [PER], "welch")
    a, r = points[1].values[0], points[0].values[0]
    design = power.Design((summarise(a).std, summarise(r).std))
    assert first.seeds_needed == power.required_sample_size(first.difference, design, 0.025)
    error, freedom = (float(x) for x in design.at(6))
    assert first.shown == pytest.approx(minimum_detectable_difference(error, freedom, 0.025))
    assert second.shown > first.shown > 0


def test_what_is_shown_is_found_with_that_power():
    """Six paired differences, all of one sign with probability 0.8 at the smallest difference shown."""
    a, b = np.array([0.17, 0.19, 0.175, 0.18, 0.16, 0.20]), np.array(REFERENCE)
    (found,) = compare(point("a", a), point("b", b), [PER], "paired_permutation")
    std = (a - b).std(ddof=1)
    draws = np.random.default_rng(0).normal(found.shown, std, (20000, 6))
    assert ((draws > 0).all(1)).mean() == pytest.approx(0.8, abs=0.012)
    seen = np.random.default_rng(1).normal(abs(found.difference), std, (20000, 6))
    assert (seen > 0).all(1).mean() < 0.8 and found.seeds_needed == 7


def test_holm_is_over_all_points_and_objectives_and_counts_no_test_that_says_nothing():
    rng = np.random.default_rng(3)
    points = [
        point(name, rng.normal(0.2 + 0.01 * i, 0.01, 6), rng.normal(0.8, 0.01, 6)) for i, name in enumerate("rab")
    ]
    points.append(point("c", [0.5], [0.8]))
    found = compare_with_reference(points, "r", [PER, ACCURACY], "welch")
    assert [(c.a, c.metric) for c in found] == [(name, metric) for name in "abc" for metric in ("per", "accuracy")]
    assert [c.p_holm for c in found[:4]] == pytest.approx(holm([c.p for c in found[:4]]))
    assert all(math.isnan(c.p) and math.isnan(c.p_holm) and c.answer == "undecided" for c in found[4:])


def test_evaluations_are_compared_with_the_reference_under_the_same_one():
    points = [
        noisy("a", 0.2, evaluation="greedy"),
        noisy("r", 0.21, evaluation="stochastic"),
        noisy("a", 0.22, evaluation="stochastic"),
        noisy("r", 0.23, evaluation="greedy"),
        noisy("a", 0.24, evaluation="other"),
    ]
    rivals = {name: rival.name for name, rival in reference_points(points, "r").items()}
    assert rivals == {"a@greedy": "r@greedy", "a@stochastic": "r@stochastic", "a@other": "r@greedy"}
    found = compare_with_reference(points, "r", [PER], "welch")
    assert [(c.a, c.b) for c in found] == list(rivals.items())
    assert reference_points(points, "none") == {} and compare_with_reference(points, "none", [PER], "welch") == ()


def test_five_pairs_can_decide_nothing_and_it_says_so():
    a, b = noisy("a", 0.1, n=5), noisy("b", 0.9, n=5, seed=1)
    (found,) = compare(a, b, [PER], "paired_permutation")
    assert not found.can_decide and found.answer == "undecided" and found.p == 0.0625
    assert math.isnan(found.shown) and found.seeds_needed == 6
    assert found.warnings == (
        "5 seeds: an exact paired permutation test cannot give p below 0.0625, so it can decide nothing at 0.05; "
        "from 6 seeds on it can",
    )
    (found,) = compare(a, b, [PER], "welch")
    assert found.can_decide and found.answer == "better" and found.warnings == ()


def test_a_family_takes_more_seeds_than_one_comparison():
    points = [noisy("r", 0.2), *(noisy(name, 0.1, seed=i) for i, name in enumerate("abc", 1))]
    for found in compare_with_reference(points, "r", [PER], "paired_permutation"):
        assert found.p == 1 / 32 and not found.can_decide and found.seeds_needed == 7
        (warning,) = found.warnings
        assert "among 3 comparisons (Holm) it can decide nothing at 0.05; from 7 seeds on it can" in warning


def test_a_comparison_may_be_decided_after_others_with_more_seeds():
    """Holm multiplies the least p of the ten-seed pair by 2, and that of the six-seed pair by 1."""
    ten = [noisy("r", 0.2, n=10, evaluation="x"), noisy("a", 0.1, n=10, seed=1, evaluation="x")]
    six = [noisy("r", 0.2, n=6, evaluation="y"), noisy("a", 0.1, n=6, seed=2, evaluation="y")]
    found = compare_with_reference([*ten, *six], "r", [PER], "paired_permutation")
    assert [c.can_decide for c in found] == [True, True] and [c.answer for c in found] == ["better", "better"]
    assert [c.p_holm for c in found] == [2 * 2.0**-9, 1 / 32]


def test_unpaired_seeds_have_their_own_least_p():
    (found,) = compare(noisy("a", 0.1, n=3), noisy("b", 0.9, n=3, seeds=(7, 8, 9)), [PER], "paired_permutation")
    assert found.least_p == pytest.approx(0.1) and found.can_decide and found.answer == "better"
    assert not any("cannot" in warning for warning in found.warnings)


def test_what_is_compared_does_not_hang_on_the_results():
    """A point under an evaluation that the reference lacks is held against one that is chosen by name."""
    points = [point(f"r@{e}", [x, x + 0.1]) for e, x in (("y", 0.1), ("x", 0.5))]
    points = [replace(p, condition="r", evaluation=e) for p, e in zip(points, "yx", strict=True)]
    rival = replace(point("a@z", [0.3, 0.4]), condition="a", evaluation="z")
    assert reference_points([*points, rival], "r")["a@z"].evaluation == "x"
    assert reference_points([rival, *reversed(points)], "r")["a@z"].evaluation == "x"


def test_seeds_too_few_for_a_test_are_no_part_of_the_family():
    points = [noisy("r", 0.5, n=5), noisy("a", 0.9, n=5, seed=1), *(point(f"s{i}", [0.1]) for i in range(8))]
    found = compare_with_reference(points, "r", [PER], "paired_permutation")
    assert not any("comparisons (Holm)" in warning for warning in found[0].warnings)


def test_one_seed_is_said_and_compares_nothing():
    (found,) = compare(point("a", [0.1]), point("b", [0.2]), [PER], "welch")
    assert found.difference == pytest.approx(-0.1) and found.is_better and found.answer == "undecided"
    assert all(
        math.isnan(x) for x in (*found.interval, found.p, found.welch_p, found.effect, found.epsilon, found.shown)
    )
    assert not found.can_decide and found.seeds_needed is None and found.least_p == 1.0
    assert found.warnings == ("1 seed: one seed has no spread, so there is neither interval nor test",)
    (found,) = compare(point("a", [0.1, 0.2]), point("b", [0.2]), [PER], "welch")
    assert found.warnings[0].startswith("2 and 1 seeds")


def test_seeds_that_may_have_been_given_by_need_are_said():
    unequal = compare(point("a", [0.1, 0.2, 0.4]), point("b", [0.2, 0.5]), [PER], "welch")
    equal = compare(point("a", [0.1, 0.2, 0.4]), point("b", [0.2, 0.5, 0.3]), [PER], "welch")
    assert "ponderay.decision" in unequal[0].warnings[0] and not equal[0].warnings


def test_a_metric_without_noise_is_certain_and_leaves_the_family():
    rng = np.random.default_rng(4)
    points = [point(name, rng.normal(0.2, 0.01, 5), [macs] * 5) for name, macs in (("r", 2e6), ("a", 1e6), ("b", 2e6))]
    found = compare_with_reference(points, "r", [PER, Objective("macs")], "welch")
    costs = [c for c in found if c.metric == "macs"]
    assert [c.answer for c in costs] == ["better", "equal"] and all(c.is_certain and c.can_decide for c in costs)
    assert all(math.isnan(c.p) and math.isnan(c.p_holm) and math.isnan(c.shown) for c in costs)
    assert costs[0].interval == (-1e6, -1e6) and "without a test" in costs[0].warnings[0]
    errors = [c for c in found if c.metric == "per"]
    assert [c.p_holm for c in errors] == pytest.approx(holm([c.p for c in errors]))


def test_a_constant_is_not_certain_where_others_have_ties():
    points = [point("r", [1.0] * 5), point("a", [0.9] * 5), point("b", [1.0, 1.0, 0.9, 0.9, 0.9])]
    first, second = compare_with_reference(points, "r", [PER], "welch")
    assert not first.is_certain and first.answer == "undecided" and math.isnan(first.p)
    assert "chance" in first.warnings[0] and any("tied" in warning for warning in second.warnings)
    first, _ = compare_with_reference(points, "r", [PER], "paired_permutation")
    assert first.p == 0.0625


def test_one_difference_under_every_seed_is_not_trusted():
    (found,) = compare(point("a", [0.3, 0.4, 0.7]), point("b", [0.1, 0.2, 0.5]), [PER], "paired_permutation")
    assert found.interval[0] == found.interval[1] == pytest.approx(0.2) and not found.is_certain
    assert "no width" in found.warnings[0]


def test_the_interval_goes_with_the_promised_test():
    """Pairs that differ alike under every seed: a paired interval without 0 beside a p of two groups would mislead."""
    a, b = [0.30, 0.41, 0.69], [0.1, 0.2, 0.5]
    (welch,) = compare(point("a", a), point("b", b), [PER], "welch")
    (paired,) = compare(point("a", a), point("b", b), [PER], "paired_permutation")
    assert tuple(welch.interval) == pytest.approx(tuple(welch_interval(a, b)))
    assert tuple(paired.interval) == pytest.approx(tuple(paired_difference_interval(a, b)))
    assert welch.interval.low < 0 < paired.interval.low and welch.p > 0.05


def test_skew_is_judged_over_the_study_and_said_of_its_metric():
    rng = np.random.default_rng(5)
    points = [point(f"c{i}", 0.2 + 0.01 * rng.lognormal(size=5), rng.normal(size=5)) for i in range(60)]
    found = compare_with_reference(points, "c0", [PER, ACCURACY], "welch")
    assert all(len(c.warnings) == (c.metric == "per") for c in found)
    assert found[0].warnings[0].startswith("per: the noise is very skewed")
    assert compare(points[0], points[1], [PER, ACCURACY], "welch", points)[0].warnings == found[0].warnings


@pytest.mark.parametrize("test", ["welch", "paired_permutation"])
def test_many_points_are_compared_at_once_in_each_objective(test, monkeypatch):
    """Two objectives, five seeds; without almost stochastic order, which is said."""
    values = np.random.default_rng(6).normal(size=(2_501, 2, 5))
    points = [point(f"c{i}", *rows) for i, rows in enumerate(values)]
    batches: list[int] = []
    batch = lambda a, *others: batches.append(len(a)) or Groups(a, *others)  # noqa: E731
    monkeypatch.setattr("orchestrator.results.comparison.Groups", batch)
    found = compare_with_reference(points, "c0", [PER, ACCURACY], test)
    assert batches == [2_500, 2_500]
    assert len(found) == 5_000 and all(math.isnan(c.epsilon) for c in found[:9])
    assert any("2,000" in warning for warning in found[0].warnings)
    a, b = points[7].values[0], points[0].values[0]
    assert found[12].a == "c7" and found[12].welch_p == pytest.approx(welch_p(a, b), rel=1e-9)
    interval = welch_interval(a, b) if test == "welch" else paired_difference_interval(a, b)
    assert tuple(found[12].interval) == pytest.approx(tuple(interval), rel=1e-9)
