"""A point against the interpolated front of the others at its own cost, by hand and by brute force."""

import math

import numpy as np
import pytest

from orchestrator.pareto import equal_cost
from orchestrator.pareto.equal_cost import unequal_costs
from orchestrator.pareto.front import front
from orchestrator.results.points import Point
from orchestrator.statistics.summary import summarise
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


def test_of_too_many_pairs_the_last_say_their_costs_alone(monkeypatch):
    monkeypatch.setattr(equal_cost, "LEAST", 2)
    monkeypatch.setattr(equal_cost, "WORK", 20_000)  # each pair has 10 draws of 3 seeds, and 6 points: 10,060
    study = constant(a=(16.0, 2.0), b=(13.6, 5.0))
    first, second, third = held(study, [("a", "random"), ("b", "random"), ("big", "random")])
    assert (first.line, second.line) == (pytest.approx(17.0), pytest.approx(13.0))
    assert (third.a, third.cost_a, third.cost_b, third.error) == ("big", 7.0, 3.0, 12.0)
    assert math.isnan(third.line) and math.isnan(third.better) and third.num_others is None
    monkeypatch.setattr(equal_cost, "WORK", 31_000)
    assert not any(math.isnan(one.line) for one in held(study, [(name, "random") for name in ("a", "b", "big")]))


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


def drawn_means(by_seed, draws):
    """`drawn_mean` of all draws: it goes on from the mean of the seeds in proportion."""
    seeds = list(by_seed)
    values = np.array([by_seed[seed] for seed in seeds])
    mean, again = values.mean(0), values[[[seeds.index(seed) for seed in draw] for draw in draws]].mean(1)
    one = max(range(len(draws)), key=lambda i: abs(again[i, 1] - mean[1]))
    spread = again[one, 1] - mean[1]
    stretch = (drawn_mean(by_seed, draws[one])[1] - mean[1]) / spread if spread else 1.0
    return mean + stretch * (again - mean)


def brute_force(conditions):
    """Of all draws in which somebody costs no more than `a` the share in which its error is below their line.

    And the share of these draws among all.
    """
    better = num_lines = num_draws = 0
    draws = every_draw(tuple(conditions["a"]))
    means = {name: drawn_means(by_seed, draws) for name, by_seed in conditions.items()}
    for i in range(len(draws)):
        rows = {name: tuple(drawn[i]) for name, drawn in means.items()}
        kept = sorted(row[::-1] for name, row in rows.items() if name != "a")
        kept = [row for j, row in enumerate(kept) if all(row[1] < other[1] for other in kept[:j])]
        costs, errors = zip(*kept, strict=True)
        error, cost = rows["a"]
        num_draws += 1
        num_lines += cost >= costs[0]
        better += cost >= costs[0] and error < np.interp(cost, costs, errors)
    return better / num_lines, num_lines / num_draws


def noisy(rows, noise, seeds):
    drawn = np.random.default_rng(3)
    return {
        name: {seed: tuple(x + drawn.normal(0, one) for x, one in zip(row, noise, strict=True)) for seed in seeds}
        for name, row in rows.items()
    }


def test_the_share_is_that_of_all_resamples_of_all_seeds_together():
    conditions = noisy(CONTROLS | {"a": (15.0, 2.5)}, (1, 0.1), (1, 2, 3))
    (found,) = held(study_of(conditions), [("a", "random")])
    better, with_line = brute_force(conditions)
    assert 0.1 < found.better < 0.9 and with_line == 1.0
    assert found.better == pytest.approx(better)


@pytest.mark.parametrize(("error", "share"), [(30.0, 0.0), (3.0, 1.0)])
def test_draws_in_which_nobody_costs_as_little_do_not_count(error, share):
    """Three times as bad as `small` at about its cost, or as good: in some draws it is the cheapest."""
    conditions = noisy({"small": (10.0, 1.0), "big": (5.0, 7.0), "a": (error, 1.005)}, (0, 0.01), (1, 2, 3, 4, 5))
    (found,) = held(study_of(conditions), [("a", "big")])
    better, with_line = brute_force(conditions)
    assert 0.5 <= with_line < 1.0 and math.isfinite(found.line)
    assert found.better == pytest.approx(share) and better == share


def test_with_a_line_in_less_than_half_of_the_draws_there_is_no_share():
    """The mean cost is just above `small`'s, but most draws cost less: one seed of five is by far the dearest."""
    costs = {"small": (1.0,) * 5, "a": (0.9890, 0.9891, 0.9893, 0.9946, 1.03801), "big": (7.0,) * 5}
    errors = {"small": 10.0, "a": 30.0, "big": 5.0}
    conditions = {
        name: {seed: (errors[name], cost) for seed, cost in enumerate(row, start=1)} for name, row in costs.items()
    }
    (found,) = held(study_of(conditions), [("a", "big")])
    assert brute_force(conditions)[1] < 0.5 and found.line == pytest.approx(10.0, abs=0.01)
    assert math.isnan(found.better)


def under(condition, evaluation, error, cost):
    return Point(
        f"{condition}@{evaluation}", condition, evaluation, (summarise([error] * 2), summarise([cost] * 2)),
        seeds=(1, 2), values=((error, error), (cost, cost)),
    )  # fmt: skip


BESIDE = [
    under("act", "test", 10.0, 4.0),
    under("plain", "test", 20.0, 1.0),
    under("act", "harder", 1.0, 1.0),
    under("exit", "test", 12.0, 6.0),
    under("exit", "test_sure", 12.0, 2.0),
]


@pytest.mark.parametrize(
    ("a", "b", "line", "num_others"),
    [
        ("exit@test_sure", "act@test", 20 - 10 / 3, 3),  # between plain and act; none but it has test_sure
        ("exit@test_sure", "exit@test", 20 - 10 / 3, 3),
        ("exit@test", "act@test", 10.0, 2),
        ("act@harder", "act@test", math.inf, 0),
    ],
)
def test_an_evaluation_that_one_condition_alone_has_is_held_against_what_it_is_compared_with(a, b, line, num_others):
    points = BESIDE if a != "act@harder" else [one for one in BESIDE if one.condition == "act"]
    (found,) = unequal_costs([(a, b)], points, ERROR_COST)
    assert found.line == pytest.approx(line) and found.num_others == num_others
