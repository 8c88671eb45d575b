"""Means over replicates by step, against sums done by hand."""

import math

import pytest

from orchestrator.results.curves import MAX_STEPS, Curve, mean_curves


def journal(values: dict[int, dict[str, float]]) -> list[dict]:
    """Of one replicate: metrics by step."""
    return [{"kind": "metrics", "step": step, "time_ms": 1, "metrics": metrics} for step, metrics in values.items()]


def test_means_and_spread_on_the_steps_that_all_share():
    journals = [
        journal({1: {"loss": 1.0}, 2: {"loss": 4.0}, 3: {"loss": 9.0}}),
        journal({1: {"loss": 3.0}, 2: {"loss": 4.0}, 4: {"loss": 9.0}}),
        journal({1: {"loss": 5.0}, 2: {"loss": 1.0}, 3: {"loss": 9.0}}),
    ]
    (curve,) = mean_curves("a", journals)
    assert (curve.condition, curve.metric, curve.n, curve.steps) == ("a", "loss", 3, (1, 2))
    assert curve.means == pytest.approx((3.0, 3.0))
    assert curve.stds == pytest.approx((2.0, math.sqrt(3.0)))


def test_means_and_spread_of_values_whose_squares_and_sums_are_too_large():
    journals = [journal({1: {"loss": x * 1e155}, 2: {"loss": x * 1e308}, 3: {"loss": x}}) for x in (1.1, 1.2, 1.3)]
    (curve,) = mean_curves("a", journals)
    assert curve.means == pytest.approx((1.2e155, 1.2e308, 1.2))
    assert curve.stds == pytest.approx((1e154, 1e307, 0.1))


def test_only_what_all_replicates_report_in_training_more_than_once():
    first = journal({1: {"both": 1.0, "first": 1.0, "once": 1.0}, 2: {"both": 1.0, "first": 1.0}})
    second = journal({1: {"both": 1.0, "once": 1.0}, 2: {"both": 1.0}})
    others = [
        {"kind": "system", "step": 1, "time_ms": 1, "values": {"cpu": 1.0}},
        {"kind": "evaluation", "step": 2, "time_ms": 1, "metrics": {"error@e": 1.0}},
        {"kind": "evaluation", "step": 3, "time_ms": 1, "metrics": {"error@e": 1.0}},
    ]
    assert [curve.metric for curve in mean_curves("a", [first + others, second + others])] == ["both"]


def test_a_step_with_a_value_that_is_not_finite_is_left_out():
    journals = [
        journal({1: {"x": 1.0}, 2: {"x": math.nan}, 3: {"x": 1.0}}),
        journal({1: {"x": 2.0}, 2: {"x": 1.0}, 3: {"x": 4.0}}),
    ]
    (curve,) = mean_curves("a", journals)
    assert (curve.steps, curve.means) == ((1, 3), (1.5, 2.5))


def test_one_replicate_has_a_curve_without_spread():
    (curve,) = mean_curves("a", [journal({0: {"x": 1.0}, 5: {"x": 2.0}})])
    assert (curve.n, curve.steps, curve.means) == (1, (0, 5), (1.0, 2.0))
    assert all(math.isnan(std) for std in curve.stds)


@pytest.mark.parametrize("num_steps", [2, MAX_STEPS, MAX_STEPS + 1, 1234, 100_000])
def test_of_many_steps_some_evenly_chosen(num_steps):
    (curve,) = mean_curves("a", [journal({10 * i: {"x": float(i)} for i in range(num_steps)})])
    assert len(curve.steps) == min(num_steps, MAX_STEPS)
    assert (curve.steps[0], curve.steps[-1]) == (0, 10 * (num_steps - 1))
    gaps = {b - a for a, b in zip(curve.steps, curve.steps[1:], strict=False)}
    assert max(gaps) - min(gaps) <= 10 and min(gaps) > 0
    assert curve.means == tuple(step / 10 for step in curve.steps)


def test_without_replicates_there_is_none():
    assert mean_curves("a", []) == ()
    assert isinstance(mean_curves("a", [journal({1: {"x": 1.0}, 2: {"x": 1.0}})])[0], Curve)
