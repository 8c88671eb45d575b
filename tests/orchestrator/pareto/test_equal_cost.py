"""A point against the interpolated front of the others at its own cost, by hand and by brute force."""

import math

import numpy as np
import pytest

from orchestrator.pareto.equal_cost import unequal_costs
from orchestrator.pareto.front import front
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, ERROR_COST_LATENCY, every_draw, study_of
from tests.orchestrator.pareto.test_membership import drawn_mean

# error and cost; the front of the controls goes (20, 1), (14, 3), (12, 7), and `bad` is not on it
CONTROLS = {"small": (20.0, 1.0), "random": (14.0, 3.0), "bad": (19.0, 4.0), "big": (12.0, 7.0)}


def constant(**more):
    return study_of({name: dict.fromkeys((1, 2, 3), row) for name, row in (CONTROLS | more).items()})


def held(study, pairs, objectives=ERROR_COST, **options):
    return unequal_costs(pairs, front(study, objectives), objectives, **options)


@pytest.mark.parametrize(
    ("error", "cost", "line", "better"),
    [
        (16.0, 2.0, 17.0, 1.0),  # halfway between small and random
        (13.6, 5.0, 13.0, 0.0),  # halfway between random and big
        (11.0, 9.0, 12.0, 1.0),  # dearer than all: they could do as well for less
        (12.0, 9.0, 12.0, 0.0),  # on the line is not below it
        (30.0, 0.5, math.inf, math.nan),  # cheaper than all
    ],
)
def test_the_front_of_the_others_by_hand(error, cost, line, better):
    (found,) = held(constant(a=(error, cost)), [("a", "random")])
    assert (found.a, found.b, found.error_metric, found.cost_metric) == ("a", "random", "per", "macs")
    assert (found.cost_a, found.cost_b, found.error) == (cost, 3.0, error)
    assert found.line == pytest.approx(line) and found.better == pytest.approx(better, nan_ok=True)


@pytest.mark.parametrize(("cost", "is_told"), [(3.0, False), (3.05, False), (3.07, True), (2.93, True)])
def test_costs_within_2_per_cent_are_equal(cost, is_told):
    assert bool(held(constant(a=(13.0, cost)), [("a", "random")])) is is_told


def test_an_error_that_is_maximized_is_better_above_the_line():
    objectives = (Objective("per", "maximize"), Objective("macs"))
    rows = {"small": (50.0, 1.0), "big": (70.0, 3.0), "a": (65.0, 2.0)}
    study = study_of({name: dict.fromkeys((1, 2), row) for name, row in rows.items()})
    (found,) = held(study, [("a", "big")], objectives)
    assert (found.line, found.better, found.error) == (60.0, 1.0, 65.0)


def test_without_a_cost_nothing_is_held_against_it():
    assert held(constant(a=(13.0, 9.0)), [("a", "random")], ERROR_COST[:1]) == ()
    assert held(constant(a=(13.0, 9.0)), [("a", "random")], (Objective("per"), Objective("macs", "maximize"))) == ()


def test_a_third_objective_makes_no_front():
    rows = {name: (*row, 1.0) for name, row in CONTROLS.items()} | {"bad": (19.0, 4.0, 0.0), "a": (15.0, 5.0, 9.0)}
    study = study_of({name: dict.fromkeys((1, 2), row) for name, row in rows.items()})
    (found,) = held(study, [("a", "random")], ERROR_COST_LATENCY)
    assert found.line == 13.0


def test_the_share_is_that_of_all_resamples_of_all_seeds_together():
    drawn = np.random.default_rng(3)
    conditions = {
        name: {seed: (row[0] + drawn.normal(0, 1), row[1] + drawn.normal(0, 0.1)) for seed in (1, 2, 3)}
        for name, row in (CONTROLS | {"a": (15.0, 2.5)}).items()
    }
    better = 0
    for draw in every_draw((1, 2, 3)):
        rows = {name: drawn_mean(by_seed, draw) for name, by_seed in conditions.items()}
        kept = sorted(row[::-1] for name, row in rows.items() if name != "a")
        kept = [row for i, row in enumerate(kept) if all(row[1] < other[1] for other in kept[:i])]
        costs, errors = zip(*kept, strict=True)
        better += rows["a"][0] < np.interp(rows["a"][1], costs, errors, left=math.inf)
    (found,) = held(study_of(conditions), [("a", "random")])
    assert 0.1 < found.better < 0.9
    assert found.better == pytest.approx(better / 27)
