"""Fronts, comparisons and lines of numbers at the edges of float64: as of ordinary ones, times a power of two."""

import json
import math
from dataclasses import replace

import pytest

from orchestrator.pareto.control_line import beside_line
from orchestrator.pareto.equal_cost import unequal_costs
from orchestrator.pareto.front import front, nearest
from orchestrator.pareto.membership import uncertain_front
from orchestrator.report.front_table import front_json
from orchestrator.results.comparison import compare, compare_with_reference
from orchestrator.results.points import points_of
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.pairwise import BEYOND
from search_spaces.sweep import Objective

pytestmark = pytest.mark.filterwarnings("error")
OBJECTIVES = (Objective("loss"), Objective("macs"))
LARGEST = 1.7976931348623157e308
LOSSES = {"a": (4.0, 4.25, 4.5), "b": (3.0, 3.5, 3.25), "c": (2.0, 2.5, 2.125), "d": (3.75, 3.875, 4.0)}
MACS = {"a": (1.0, 1.0, 1.0), "b": (2.0, 2.0, 2.0), "c": (3.0, 3.5, 3.25), "d": (2.5, 2.5, 2.5)}


def study(losses, macs=MACS):
    return Study(
        "edges",
        tuple(
            Replicate("", name, seed, "complete", {"loss": loss, "macs": cost})
            for name in losses
            for seed, (loss, cost) in enumerate(zip(losses[name], macs[name], strict=True), 1)
        ),
    )


def times(values, power):
    return {name: tuple(math.ldexp(value, power) for value in row) for name, row in values.items()}


def points_at(power):
    return front(study(times(LOSSES, power), times(MACS, power)), OBJECTIVES)


@pytest.mark.parametrize("power", [-1000, -520, 505, 520, 1000, 1019])
def test_a_front_is_the_same_at_every_size(power):
    usual, found = (uncertain_front(study(times(LOSSES, p), times(MACS, p)), OBJECTIVES, "a") for p in (0, power))
    shares = [[(one.on_front, one.dominates_reference, one.standing) for one in f.memberships] for f in (usual, found)]
    assert repr(shares[0]) == repr(shares[1])
    for before, after in zip(usual.memberships, found.memberships, strict=True):
        assert [[math.ldexp(end, power) for end in one] for one in before.intervals] == list(map(list, after.intervals))
    for before, after in zip(usual.attainment, found.attainment, strict=True):
        assert [[math.ldexp(x, power) for x in step] for step in before.steps] == list(map(list, after.steps))
    assert found.volume.reference == tuple(math.ldexp(x, power) for x in usual.volume.reference)
    assert found.volume.value == (math.ldexp(usual.volume.value, 2 * power) if 2 * power < 1020 else math.inf)
    assert [one.name for one in nearest(found.points, 1)] == [one.name for one in nearest(usual.points, 1)]
    json.loads(front_json("edges", found, OBJECTIVES, {}), parse_constant=pytest.fail)


@pytest.mark.parametrize("test", ["welch", "paired_permutation"])
@pytest.mark.parametrize("power", [-1000, -520, 520, 1000, 1019])
def test_comparisons_are_the_same_at_every_size(power, test):
    usual, found = (compare_with_reference(points_at(p), "a", OBJECTIVES, test) for p in (0, power))
    for before, after in zip(usual, found, strict=True):
        same = replace(
            after,
            summary_a=before.summary_a,
            summary_b=before.summary_b,
            difference=math.ldexp(after.difference, -power),
            interval=tuple(math.ldexp(end, -power) for end in after.interval),
            shown=math.ldexp(after.shown, -power),
        )
        assert repr(replace(before, interval=tuple(before.interval))) == repr(same)


def test_a_difference_that_is_no_number_still_has_its_test_and_a_sentence():
    losses = {"a": (1.7e308, 1.6e308, 1.65e308), "b": (-1.7e308, -1.6e308, -1.65e308)}
    (found, _) = compare(*points_of(study(losses), OBJECTIVES), OBJECTIVES, "welch")
    (usual, _) = compare(*points_of(study(times(losses, -1000)), OBJECTIVES), OBJECTIVES, "welch")
    assert found.difference == math.inf and found.answer == "worse"
    assert (found.p, found.effect) == (usual.p, usual.effect)
    assert BEYOND in found.warnings and BEYOND not in usual.warnings


def test_a_condition_of_ordinary_size_keeps_every_digit_beside_one_of_1e308():
    """Perplexities of 1e308 have a finite mean; the interval of two of them ends beyond the largest number."""
    alone = uncertain_front(study({"b": LOSSES["b"], "c": LOSSES["c"]}), OBJECTIVES, None)
    beside = uncertain_front(
        study({"b": LOSSES["b"], "c": LOSSES["c"], "d": (1.1e308, 1.3e308, LARGEST)}), OBJECTIVES, None
    )
    kept = {
        point.name: (point.summaries, own.intervals)
        for point, own in zip(beside.points, beside.memberships, strict=True)
    }
    assert [one.is_front for one in beside.points if one.name != "d"] == [True, True]
    for point, own in zip(alone.points, alone.memberships, strict=True):
        assert kept[point.name] == (point.summaries, own.intervals)
    assert kept["d"][0][0].mean == pytest.approx(1.1e308 / 3 + 1.3e308 / 3 + LARGEST / 3)
    assert any("Beyond 1.8e308" in note and "d" in note for note in beside.notes)
    assert not any("Beyond" in note for note in alone.notes)


@pytest.mark.parametrize("power", [-1000, 520, 1019])
def test_lines_between_controls_are_the_same_at_every_size(power):
    def seen(p):
        points = {one.name: one for one in points_at(p)}
        (beside,) = beside_line([(points["d"], [points[name] for name in "abc"])], OBJECTIVES, [])
        costs = unequal_costs([("d", "b")], [*points.values()], OBJECTIVES)
        numbers = [beside.cost, beside.error, beside.line, beside.difference, *beside.interval, costs[0].line]
        return [math.ldexp(x, -p) for x in numbers], (beside.p, beside.num_better, costs[0].better)

    assert seen(power) == seen(0)


def test_what_differs_by_rounding_only_is_neither_better_nor_off_the_front():
    """.1 * 3 is more than .3 by 6e-17."""
    losses = {"a": (0.1 * 3,) * 3, "b": (0.3,) * 3}
    found = uncertain_front(study(losses, {"a": (1.0,) * 3, "b": (1.0,) * 3}), OBJECTIVES, None)
    assert [(one.on_front, one.standing) for one in found.memberships] == [(1.0, "front")] * 2
    points = points_of(study({"a": (0.3,) * 3, "b": (0.1 * 3,) * 3}, {"a": (2.0,) * 3, "b": (1.0,) * 3}), OBJECTIVES)
    (costs,) = unequal_costs([("a", "b")], points, OBJECTIVES)
    assert costs.better == 0.0


def test_numbers_apart_by_more_than_the_largest_have_an_answer():
    """Their mean is 0, their spread and what a resample may reach are infinite."""
    losses = {"a": (LARGEST, -LARGEST, 0.0), "b": LOSSES["b"]}
    found = uncertain_front(study(losses), OBJECTIVES, "b")
    assert {point.name: point.summaries[0].mean for point in found.points} == {"a": 0.0, "b": 3.25}
    assert any("Beyond 1.8e308" in note for note in found.notes)
    json.loads(front_json("edges", found, OBJECTIVES, {}), parse_constant=pytest.fail)
