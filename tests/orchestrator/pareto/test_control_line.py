"""Points against the line through controls of their cost, by hand and by scipy's t-test."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from orchestrator.pareto.control_line import beside_line
from orchestrator.pareto.front import front
from orchestrator.report.comparison_table import control_line_sentence, control_line_table
from orchestrator.results.item_errors import ItemErrors
from orchestrator.statistics import over_groups
from orchestrator.statistics.equivalence import Difference
from tests.orchestrator.pareto.made_up import ERROR_COST, study_of
from trainables.errors import InputError
from trainables.item_errors import Item


def beside(rows, names, controls, objectives=ERROR_COST):
    points = {point.name: point for point in front(study_of(rows), objectives)}
    beside_them = [points[name] for name in controls]
    return beside_line([(points[name], beside_them) for name in names], objectives, [*points.values()])


RANDOM = {
    "low": {1: (20.0, 1.0), 2: (30.0, 1.0), 3: (25.0, 1.0)},
    "middle": {1: (14.0, 3.0), 2: (24.0, 5.0), 3: (19.0, 3.0)},
    "high": {1: (12.0, 7.0), 2: (22.0, 7.0), 3: (17.0, 7.0)},
}


def test_the_line_is_laid_within_each_seed_by_hand():
    """Seed 1: halfway of 20 and 14 at cost 2; seed 2: a quarter of the way from 30 to 24; seed 3: 19 less 1/4 of 2."""
    ours = {1: (16.0, 2.0), 2: (28.0, 2.0), 3: (20.0, 4.0)}
    (found,) = beside(RANDOM | {"a": ours}, ["a"], ["high", "low", "middle"])
    assert (found.name, found.num_seeds, found.num_better) == ("a", 3, 2)
    assert found.line == pytest.approx((17.0 + 28.5 + 18.5) / 3) and found.error == pytest.approx(64 / 3)
    assert found.difference == pytest.approx((-1.0 - 0.5 + 1.5) / 3, abs=1e-12)
    assert found.answer == "undecided"


def test_noise_that_a_seed_gives_to_all_does_not_count():
    """One below the line in every seed, though seeds are ten apart; the p is that of scipy's paired test."""
    ours = {seed: (error - 1.0 - 0.01 * seed, 1.0) for seed, error in ((1, 20.0), (2, 30.0), (3, 25.0))}
    (found,) = beside(RANDOM | {"a": ours}, ["a"], ["low", "high"])
    expected = stats.ttest_1samp([-1.01, -1.02, -1.03], 0)
    assert found.p == pytest.approx(expected.pvalue) and found.p_holm == found.p
    assert (found.interval.low, found.interval.high) == pytest.approx(expected.confidence_interval(0.95))
    assert (found.answer, found.num_better) == ("better", 3)


def test_p_is_adjusted_for_all_points_and_a_maximized_error_turns():
    numbers = random.Random(0)
    rows = {name: {seed: (-error, cost) for seed, (error, cost) in of.items()} for name, of in RANDOM.items()}
    for name, shift in (("far", 3.0), ("near", 0.1)):
        rows[name] = {seed: (-shift - of[0] + numbers.gauss(0, 0.1), 1.0) for seed, of in RANDOM["low"].items()}
    objectives = (replace(ERROR_COST[0], direction="maximize"), ERROR_COST[1])
    far, near = beside(rows, ["far", "near"], ["low", "high"], objectives)
    assert far.p_holm == pytest.approx(2 * far.p) and near.p_holm == near.p
    assert (far.answer, far.num_better) == ("worse", 0)


@pytest.mark.parametrize(("cost", "number"), [(1.0, 3), (7.0, 3), (7.1, 0), (0.9, 0)])
def test_beyond_the_cheapest_and_the_dearest_control_nothing_is_said(cost, number):
    (found,) = beside(RANDOM | {"a": dict.fromkeys((1, 2, 3), (10.0, cost))}, ["a"], ["low", "high"])
    assert found.num_seeds == number
    assert math.isnan(found.difference) == (number == 0) and (number or found.answer == "undecided")


def test_controls_of_equal_cost_count_as_one_with_the_mean_of_their_errors():
    rows = RANDOM | {"twin": {seed: (error + 4.0, cost) for seed, (error, cost) in RANDOM["low"].items()}}
    rows["a"] = {seed: (error + 1.0, cost) for seed, (error, cost) in RANDOM["low"].items()}
    (found,) = beside(rows, ["a"], ["low", "twin", "high"])
    assert found.line == pytest.approx(27.0) and found.difference == pytest.approx(-1.0)


def test_what_can_make_no_line_is_refused():
    twin = RANDOM | {"twin": RANDOM["low"]}
    with pytest.raises(InputError, match="two controls of different cost, but low, twin cost the same under seed 1"):
        beside(twin, ["high"], ["low", "twin"])
    with pytest.raises(InputError, match="needs two controls of different cost at least, but got 1"):
        beside(RANDOM, ["high"], ["low"])
    with pytest.raises(InputError, match="the same seeds, but a has 1, 2 and low 1, 2, 3"):
        beside(RANDOM | {"a": {1: (1.0, 2.0), 2: (1.0, 2.0)}}, ["a"], ["low", "high"])


def test_where_nothing_varies_the_answer_is_certain():
    rows = {
        name: dict.fromkeys((1, 2, 3), value)
        for name, value in {"a": (0.2, 2.0), "x": (0.4, 1.0), "y": (0.3, 3.0)}.items()
    }
    (found,) = beside(rows, ["a"], ["x", "y"])
    assert found.is_certain and found.answer == "better" and found.difference == pytest.approx(-0.15)
    (on_it,) = beside(rows | {"a": dict.fromkeys((1, 2, 3), (0.35, 2.0))}, ["a"], ["x", "y"])
    assert (on_it.answer, on_it.num_better) == ("undecided", 0)


def test_where_only_the_difference_does_not_vary_there_is_no_interval():
    rows = {
        "a": {1: (0.2, 2.0), 2: (0.3, 2.0)},
        "x": {1: (0.4, 1.0), 2: (0.5, 1.0)},
        "y": {1: (0.3, 3.0), 2: (0.4, 3.0)},
    }
    (found,) = beside(rows, ["a"], ["x", "y"])
    assert not found.is_certain and found.answer == "undecided" and math.isnan(found.interval.low)


def test_costs_and_errors_that_differ_by_rounding_are_equal():
    third = 0.1 + 0.2  # more than .3 by rounding
    rows = {
        "a": {1: (0.20, third), 2: (0.25, third), 3: (0.40, third)},
        "x": {1: (0.40, 0.1), 2: (0.50, 0.1), 3: (0.60, 0.1)},
        "y": {1: (0.35, 0.3), 2: (0.30, 0.3), 3: (0.42, 0.3)},
        "z": {1: (0.45, third), 2: (0.40, third), 3: (0.52, third)},
    }
    (found,) = beside(rows, ["a"], ["x", "y"])
    assert found.num_seeds == 3 and found.line == pytest.approx((0.35 + 0.30 + 0.42) / 3)
    (both,) = beside(rows, ["a"], ["x", "y", "z"])  # y and z cost the same
    assert both.line == pytest.approx((0.40 + 0.35 + 0.47) / 3)
    with pytest.raises(InputError, match="cost the same under seed 1"):
        beside(rows, ["a"], ["y", "z"])


def test_over_test_items_the_line_is_laid_within_each_group_and_adds_up_to_that_of_the_seed():
    """By hand: two controls of equal cost count as one; of the last seed, which costs more than all, nothing counts."""
    draws, seeds, groups = np.random.default_rng(3), (1, 2, 3, 4, 5), ("ann", "bea", "cai")
    lengths = np.array([10.0, 30.0, 20.0])
    wrong = {name: draws.integers(1, 9, (5, 3)).astype(float) for name in ("low", "twin", "high", "a")}
    costs = {"low": (1, 1, 0, 2, 1), "twin": (1, 1, 0, 2, 1), "high": (3, 5, 4, 3, 2), "a": (2, 2, 3, 2.5, 9)}
    rows = {
        name: {seed: (table[i].sum() / 60, costs[name][i]) for i, seed in enumerate(seeds)}
        for name, table in wrong.items()
    }
    listed = {
        (name, seed, "per@e"): tuple(Item(f"u{j}", group, table[i, j], lengths[j]) for j, group in enumerate(groups))
        for name, table in wrong.items()
        for i, seed in enumerate(seeds)
    }
    points = {point.name: point for point in front(study_of(rows), ERROR_COST)}
    beside_it = [(points["a"], [points[name] for name in ("low", "twin", "high")])]
    asked = beside_it, ERROR_COST, [*points.values()], (), ()
    (found,) = beside_line(*asked, ItemErrors.of(listed))
    to_high = np.array([[1 / 2], [1 / 4], [3 / 4], [1 / 2]])
    line = (1 - to_high) * (wrong["low"] + wrong["twin"])[:4] / 2 + to_high * wrong["high"][:4]
    gaps = wrong["a"][:4] - line
    expected = Difference(*map(float, over_groups.of_mean(gaps, lengths))).interval()
    assert (found.num_seeds, found.num_groups) == (4, 3) and tuple(found.both) == pytest.approx(tuple(expected))
    assert found.difference == pytest.approx(gaps.sum(1).mean() / 60)
    assert (found.both.low + found.both.high) / 2 == pytest.approx(found.difference)
    assert "Over seeds and 3 groups of test items" in control_line_sentence(found, ERROR_COST)
    told = control_line_table("s", [found], ["low", "high"], ERROR_COST)
    assert dict(zip(told.columns, told.rows[0], strict=True))["both_low"] == found.both.low
    assert "over both" in [column.heading for column in told.as_printed()]
    del listed["low", 4, "per@e"]  # of three seeds it would be another difference
    (found,) = beside_line(*asked, ItemErrors.of(listed))
    assert found.num_groups == 0 and math.isnan(found.both.low) and math.isfinite(found.interval.low)
    assert "test items" not in control_line_sentence(found, ERROR_COST)


def test_what_does_not_vary_is_uncertain_where_values_repeat_in_what_does():
    """Of an error that is rounded to halves, equal values under all seeds may be chance; by --where it is known too."""
    rows = {
        name: dict.fromkeys((1, 2, 3), (error, cost))
        for name, error, cost in (("low", 1.0, 10.0), ("high", 0.5, 20.0), ("a", 0.5, 15.0))
    }
    (found,) = beside(rows, ["a"], ["low", "high"])
    assert found.is_certain and found.answer == "better"
    repeats = {
        "d": {1: (0.5, 12.0), 2: (0.5, 12.0), 3: (1.0, 12.0)},
        "e": {1: (0.5, 13.0), 2: (1.0, 13.0), 3: (1.0, 13.0)},
    }
    (found,) = beside(rows | repeats, ["a"], ["low", "high"])
    assert not found.is_certain and found.answer == "undecided"
    points = {point.name: point for point in front(study_of(rows), ERROR_COST)}
    pairs = [(points["a"], [points["low"], points["high"]])]
    (hidden,) = beside_line(pairs, ERROR_COST, [*points.values()], tied=("per",))
    assert str(hidden) == str(found)
    assert "the differences have no spread, which may be chance, better in 3 of 3 seeds" in control_line_sentence(
        found, ERROR_COST
    )


def test_where_no_spread_over_seeds_is_seen_there_is_no_interval_over_items_either():
    rows = {"low": (0.2, 1.0), "high": (0.1, 3.0), "a": (0.05, 2.0)}
    by_seed = {name: dict.fromkeys((1, 2), values) for name, values in rows.items()}
    by_seed["low"][2] = (0.3, 1.0)
    by_seed["high"][2] = (0.0, 3.0)
    listed = {
        (name, seed, "per@e"): tuple(Item(f"u{j}", f"g{j}", values[0] * 10 + (j - 0.5), 10.0) for j in (0, 1))
        for name, of in by_seed.items()
        for seed, values in of.items()
    }
    points = {point.name: point for point in front(study_of(by_seed), ERROR_COST)}
    beside_it = [(points["a"], [points["low"], points["high"]])]
    (found,) = beside_line(beside_it, ERROR_COST, [*points.values()], items=ItemErrors.of(listed))
    assert math.isnan(found.interval.low) and found.num_groups == 0
