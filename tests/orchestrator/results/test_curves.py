"""Means over replicates by step, against sums done by hand."""

import math

import numpy as np
import pytest

from orchestrator.results.curves import MAX_STEPS, Curve, mean_curves, thinned
from orchestrator.statistics.improving import ending


def reported(values: dict[int, dict[str, float]]) -> dict[str, dict[int, float]]:
    """By one replicate: given the metrics of each step."""
    names = {name for metrics in values.values() for name in metrics}
    return {name: {step: of[name] for step, of in values.items() if name in of} for name in names}


def test_means_and_spread_on_the_steps_that_all_share():
    replicates = [
        reported({1: {"loss": 1.0}, 2: {"loss": 4.0}, 3: {"loss": 9.0}}),
        reported({1: {"loss": 3.0}, 2: {"loss": 4.0}, 4: {"loss": 9.0}}),
        reported({1: {"loss": 5.0}, 2: {"loss": 1.0}, 3: {"loss": 9.0}}),
    ]
    (curve,) = mean_curves("a", replicates)
    assert (curve.condition, curve.metric, curve.n, curve.steps) == ("a", "loss", 3, (1, 2))
    assert curve.means == pytest.approx((3.0, 3.0))
    assert curve.stds == pytest.approx((2.0, math.sqrt(3.0)))


def test_means_and_spread_of_values_whose_squares_and_sums_are_too_large():
    replicates = [reported({1: {"loss": x * 1e155}, 2: {"loss": x * 1e308}, 3: {"loss": x}}) for x in (1.1, 1.2, 1.3)]
    (curve,) = mean_curves("a", replicates)
    assert curve.means == pytest.approx((1.2e155, 1.2e308, 1.2))
    assert curve.stds == pytest.approx((1e154, 1e307, 0.1))


def test_only_what_all_replicates_report_in_training_more_than_once():
    first = reported({1: {"both": 1.0, "first": 1.0, "once": 1.0}, 2: {"both": 1.0, "first": 1.0}})
    second = reported({1: {"both": 1.0, "once": 1.0}, 2: {"both": 1.0}})
    assert [curve.metric for curve in mean_curves("a", [first, second])] == ["both"]


def test_a_step_with_a_value_that_is_not_finite_is_left_out():
    replicates = [
        reported({1: {"x": 1.0}, 2: {"x": math.nan}, 3: {"x": 1.0}}),
        reported({1: {"x": 2.0}, 2: {"x": 1.0}, 3: {"x": 4.0}}),
    ]
    (curve,) = mean_curves("a", replicates)
    assert (curve.steps, curve.means) == ((1, 3), (1.5, 2.5))


def test_one_replicate_has_a_curve_without_spread():
    (curve,) = mean_curves("a", [reported({0: {"x": 1.0}, 5: {"x": 2.0}})])
    assert (curve.n, curve.steps, curve.means) == (1, (0, 5), (1.0, 2.0))
    assert all(math.isnan(std) for std in curve.stds)


@pytest.mark.parametrize("num_steps", [2, MAX_STEPS, MAX_STEPS + 1, 1234, 100_000])
def test_of_many_steps_some_evenly_chosen(num_steps):
    (curve,) = mean_curves("a", [reported({10 * i: {"x": float(i)} for i in range(num_steps)})])
    assert len(curve.steps) == min(num_steps, MAX_STEPS)
    assert (curve.steps[0], curve.steps[-1]) == (0, 10 * (num_steps - 1))
    gaps = {b - a for a, b in zip(curve.steps, curve.steps[1:], strict=False)}
    assert max(gaps) - min(gaps) <= 10 and min(gaps) > 0
    assert curve.means == tuple(step / 10 for step in curve.steps)


def test_without_replicates_there_is_none():
    assert mean_curves("a", []) == ()
    assert isinstance(mean_curves("a", [reported({1: {"x": 1.0}, 2: {"x": 1.0}})])[0], Curve)


@pytest.mark.parametrize("num_steps", [1, 7, MAX_STEPS, MAX_STEPS + 1, 1234])
def test_means_of_what_is_kept_are_those_of_all(num_steps):
    """A step at which a replicate has no number moves none of the others."""
    all_reported = [
        {"x": {3 * i: math.sin(seed + i / 9) for i in range(num_steps)}, "nothing": {1: math.nan, 2: math.inf}}
        for seed in range(3)
    ]
    kept = [thinned(of) for of in all_reported]
    found = mean_curves("a", [one.curves for one in kept])
    if num_steps <= MAX_STEPS:
        assert found == mean_curves("a", all_reported)
    for curve in found:
        assert curve.means == pytest.approx([np.mean([of["x"][step] for of in all_reported]) for step in curve.steps])
        assert len(curve.steps) > MAX_STEPS / 2 or len(curve.steps) == num_steps
    assert max(len(history) for one in kept for history in one.curves.values()) <= MAX_STEPS
    all_reported[0]["x"][3] = math.nan
    broken = mean_curves("a", [thinned(of).curves for of in all_reported])
    assert sum(len(curve.steps) for curve in broken) >= min(num_steps, MAX_STEPS // 2) - 2


@pytest.mark.parametrize("num_steps", [3, 14, MAX_STEPS + 1, 1234])
def test_what_is_kept_ends_as_all_does_whatever_the_distances_of_its_steps(num_steps):
    steps = [round(i**2.5) for i in range(1, num_steps + 1)]
    curves = [{step: 1 / (seed + i) for i, step in enumerate(steps)} for seed in (1, 2, 3)]
    kept = [thinned({"x": history}).of("x") for history in curves]
    assert [list(of) for of in kept] == [sorted(of) for of in kept]
    assert repr(ending([list(of.items()) for of in kept], "minimize")) == repr(
        ending([list(of.items()) for of in curves], "minimize")
    )


@pytest.mark.parametrize("lengths", [(5000, 4321, 4800), (1000, 800, 900), (1001, 1003, 1007), (250, 190, 201)])
def test_seeds_of_different_lengths_have_a_mean_curve_to_the_end_of_the_shortest(lengths):
    kept = [thinned({"x": {step: step / n for step in range(1, n + 1)}}).curves for n in lengths]
    (curve,) = mean_curves("a", kept)
    least = min(lengths)
    assert MAX_STEPS / 4 <= len(curve.steps) <= MAX_STEPS and curve.steps[0] == 1
    assert curve.steps[-1] >= least - 2 * max(lengths) / MAX_STEPS
    assert curve.means == pytest.approx([np.mean([step / n for n in lengths]) for step in curve.steps])
