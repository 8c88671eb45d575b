"""Shares of the draws against brute force over all n^n resamples."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from orchestrator.pareto import membership
from orchestrator.pareto.membership import uncertain_front
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import mean_interval
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, ERROR_COST_LATENCY, every_draw, is_dominated, study_of


def drawn_mean(by_seed, draw):
    """The mean of a resample, further from the mean by sqrt(n / (n - 1)) and Student's spread; for each objective."""
    n = len(by_seed)
    values = [list(column) for column in zip(*by_seed.values(), strict=True)]
    again = [list(column) for column in zip(*(by_seed[seed] for seed in draw), strict=True)]
    stretch = math.sqrt(n / (n - 1)) * stats.t.ppf(0.95, n - 1) / stats.norm.ppf(0.95) if n > 1 else 1.0
    means = [sum(column) / n for column in values]
    return [m + stretch * (sum(a) / n - m) for m, a in zip(means, again, strict=True)]


def brute_force(conditions, reference=None, directions=None):
    """{condition: (share on the front, share dominating the reference)} over every combination of resamples."""
    groups = list(dict.fromkeys(tuple(by_seed) for by_seed in conditions.values()))
    on_front, dominating, num_draws = dict.fromkeys(conditions, 0), dict.fromkeys(conditions, 0), 0
    signs = [-1 if direction == "maximize" else 1 for direction in directions or []]
    for chosen in product(*(every_draw(seeds) for seeds in groups)):
        draws, num_draws = dict(zip(groups, chosen, strict=True)), num_draws + 1
        rows = {name: drawn_mean(by_seed, draws[tuple(by_seed)]) for name, by_seed in conditions.items()}
        if signs:
            rows = {name: [s * x for s, x in zip(signs, row, strict=True)] for name, row in rows.items()}
        for name, row in rows.items():
            on_front[name] += not is_dominated(row, list(rows.values()))
            dominating[name] += reference is not None and is_dominated(rows[reference], [row])
    return {name: (on_front[name] / num_draws, dominating[name] / num_draws) for name in conditions}


def random_conditions(num_conditions, seeds_of, num_objectives, drawn):
    """Values near enough to each other that every standing occurs."""
    return {
        f"c{i}": {
            seed: tuple(0.4 * i * (-1) ** j + drawn.normal() for j in range(num_objectives)) for seed in seeds_of(i)
        }
        for i in range(num_conditions)
    }


@pytest.mark.parametrize(
    ("seeds_of", "objectives", "is_paired"),
    [
        (lambda i: (1, 2, 3), ERROR_COST, True),
        (lambda i: (1, 2, 3, 4), ERROR_COST_LATENCY, True),
        (lambda i: (1, 2, 3), (Objective("per", "maximize"), Objective("macs")), True),
        (lambda i: (1, 2, 3) if i % 2 else (4, 5), ERROR_COST, False),
        (lambda i: ((1,), (1, 2, 3), (2, 3))[i % 3], ERROR_COST, False),
    ],
)
def test_shares_are_those_of_all_resamples(seeds_of, objectives, is_paired):
    conditions = random_conditions(6, seeds_of, len(objectives), np.random.default_rng(4))
    found = uncertain_front(study_of(conditions), objectives, "c2")
    expected = brute_force(conditions, "c2", [objective.direction for objective in objectives])
    assert (found.is_exact, found.is_paired, found.reference) == (True, is_paired, "c2")
    for point, one in zip(found.points, found.memberships, strict=True):
        on_front, dominating = expected[point.name]
        assert one.on_front == pytest.approx(on_front, abs=1e-12)
        if point.name == "c2":
            assert math.isnan(one.dominates_reference)
        else:
            assert one.dominates_reference == pytest.approx(dominating, abs=1e-12)
    assert any(0 < one.on_front < 1 for one in found.memberships)


def test_points_far_behind_are_left_out_of_the_draws_and_nothing_changes():
    conditions = random_conditions(4, lambda i: (1, 2, 3), 2, np.random.default_rng(0))
    far = {f"far{i}": {seed: (50.0 + i + seed, 60.0) for seed in (1, 2, 3)} for i in range(3)}
    found = uncertain_front(study_of(conditions | far), ERROR_COST, None)
    expected = brute_force(conditions | far)
    for point, one in zip(found.points, found.memberships, strict=True):
        assert one.on_front == pytest.approx(expected[point.name][0], abs=1e-12)
        assert math.isnan(one.dominates_reference)


def test_what_a_seed_does_to_all_alike_moves_nothing_where_seeds_are_paired():
    """b errs 0.1 more under each seed; its cost is a's. Drawn apart, the seeds' own effect hides that."""
    effect = {1: 0.0, 2: 1.0, 3: 2.0}
    a = {seed: (x, 1.0) for seed, x in effect.items()}
    b = {seed: (x + 0.1, 1.0) for seed, x in effect.items()}
    paired = uncertain_front(study_of({"a": a, "b": b}), ERROR_COST, None)
    assert [(p.name, m.on_front) for p, m in zip(paired.points, paired.memberships, strict=True)] == [
        ("a", 1.0),
        ("b", 0.0),
    ]
    apart = uncertain_front(study_of({"a": a, "b": {seed + 3: values for seed, values in b.items()}}), ERROR_COST, None)
    assert 0.4 < apart.memberships[0].on_front < 0.8 and 0.2 < apart.memberships[1].on_front < 0.6
    assert (paired.is_paired, apart.is_paired) == (True, False)
    assert any("2 sets of seeds" in note for note in apart.notes) and not any("sets" in n for n in paired.notes)


def test_more_resamples_than_draws_are_drawn_at_random_and_repeat():
    conditions = random_conditions(5, lambda i: tuple(range(7)), 2, np.random.default_rng(2))
    study = study_of(conditions)
    exact = uncertain_front(study, ERROR_COST, "c0", num_draws=1716)
    found = uncertain_front(study, ERROR_COST, "c0")
    assert (exact.is_exact, exact.num_draws, found.is_exact, found.num_draws) == (True, 1716, False, 1000)
    for one, other in zip(found.memberships, exact.memberships, strict=True):
        assert one.on_front == pytest.approx(other.on_front, abs=4 * math.sqrt(0.25 / 1000))
    assert found == replace(uncertain_front(study, ERROR_COST, "c0"), memberships=found.memberships)
    shares = [[m.on_front for m in uncertain_front(study, ERROR_COST, "c0", seed=s).memberships] for s in (0, 0, 1)]
    assert shares[0] == shares[1] != shares[2]


def test_a_drawn_mean_varies_as_the_mean_of_n_seeds_does():
    """Two conditions of equal cost: a's share is that of draws in which its stretched mean is below b's."""
    values = {1: 0.0, 2: 0.3, 3: 0.9}
    stretched = [drawn_mean({seed: (x,) for seed, x in values.items()}, draw)[0] for draw in every_draw((1, 2, 3))]
    wider = stats.t.ppf(0.95, 2) / stats.norm.ppf(0.95)
    assert np.var(stretched) == pytest.approx(wider**2 * np.var(list(values.values()), ddof=1) / 3)
    for threshold in (-0.5, -0.1, 0.1, 0.25, 0.55, 0.8, 1.2):
        study = study_of({"a": {s: (x, 1.0) for s, x in values.items()}, "b": dict.fromkeys(values, (threshold, 1.0))})
        found = uncertain_front(study, ERROR_COST, None)
        (share,) = [m.on_front for p, m in zip(found.points, found.memberships, strict=True) if p.name == "a"]
        assert share == pytest.approx(np.mean([x <= threshold for x in stretched]))


def test_one_seed_and_constants_have_no_noise_and_that_is_said():
    study = study_of({"a": {1: (0.1, 5.0)}, "b": {1: (0.2, 4.0)}, "c": {1: (0.3, 4.0)}})
    found = uncertain_front(study, ERROR_COST, "b")
    assert [(m.on_front, m.standing) for m in found.memberships] == [(1, "front"), (1, "front"), (0, "dominated")]
    assert (found.num_draws, found.is_exact) == (1, True)
    assert found.notes == ("One seed with values only: all points. Their noise is not known, and counts as none.",)
    assert math.isnan(found.memberships[0].intervals[0].low) and math.isnan(found.volume.interval.low)
    constant = study_of({name: dict.fromkeys((1, 2, 3, 4), (0.1, 5.0)) for name in "ab"})
    found = uncertain_front(constant, ERROR_COST, None)
    assert [m.on_front for m in found.memberships] == [1, 1]
    assert found.memberships[0].intervals == ((0.1, 0.1), (5.0, 5.0))
    assert found.notes == tuple(
        f"{n} does not vary over seeds: all points. It counts as exact." for n in ("per", "macs")
    )


def test_equal_points_stay_together_in_every_draw():
    """The same values under the same seeds; and a cost that is the same constant over three and over five seeds."""
    noisy = {1: (0.13, 0.1), 2: (0.17, 0.1), 3: (0.31, 0.1)}
    found = uncertain_front(study_of({"a": noisy, "b": noisy, "c": noisy}), ERROR_COST, "a")
    assert [m.on_front for m in found.memberships] == [1, 1, 1]
    assert [m.dominates_reference for m in found.memberships[1:]] == [0, 0]
    more = dict.fromkeys(range(5), (0.5, 0.1))
    found = uncertain_front(study_of({"a": dict.fromkeys((1, 2, 3), (0.5, 0.1)), "b": more}), ERROR_COST, None)
    assert [m.on_front for m in found.memberships] == [1, 1]


def test_few_seeds_and_names_are_noted():
    conditions = {f"c{i}": {1: (i, 1.0), 2: (i + 0.5, 2.0)} for i in range(5)} | {"d": {1: (0.0, 0.0)}}
    found = uncertain_front(study_of(conditions), ERROR_COST, "gone")
    assert [note for note in found.notes if "hypervolume" not in note] == [
        "One seed with values only: d. Their noise is not known, and counts as none.",
        "Two or three seeds: c0, c1, c2 and 2 more. They can be drawn in 3 or 10 ways, so shares are coarse.",
        "Seeds differ: 2 sets of seeds, each drawn on its own; only within one are points paired.",
        "The reference gone is not shown: none of its replicates has these metrics, or --where hides it.",
    ]
    assert found.reference == "" and all(math.isnan(m.dominates_reference) for m in found.memberships)


def test_standings_part_where_they_say():
    assert [membership._standing(True, share) for share in (1.0, 0.95, 0.94, 0.0)] == [
        "front",
        "front",
        "front within noise",
        "front within noise",
    ]
    assert [membership._standing(False, share) for share in (0.06, 0.05, 0.0)] == [
        "near within noise",
        "dominated",
        "dominated",
    ]


def test_intervals_are_those_of_the_means():
    conditions = random_conditions(4, lambda i: tuple(range(2 + i)), 2, np.random.default_rng(6))
    found = uncertain_front(study_of(conditions), ERROR_COST, None)
    for point, one in zip(found.points, found.memberships, strict=True):
        for values, interval in zip(point.values, one.intervals, strict=True):
            assert interval == pytest.approx(mean_interval(values))


def test_each_evaluation_is_held_against_the_reference_under_it():
    """Under y the reference is worse than under x; z is an evaluation that the reference does not have."""

    def replicates(condition, errors):
        metrics = {f"per@{evaluation}": error for evaluation, error in errors.items()} | {"macs": 1.0}
        return [Replicate(f"{condition}/{seed}", condition, seed, "complete", metrics) for seed in (1, 2)]

    study = Study("s", (*replicates("ref", {"x": 0.5, "y": 0.9}), *replicates("a", {"x": 0.7, "y": 0.7, "z": 0.4})))
    found = uncertain_front(study, ERROR_COST, "ref")
    shares = {p.name: m.dominates_reference for p, m in zip(found.points, found.memberships, strict=True)}
    assert (shares["a@x"], shares["a@y"], shares["a@z"]) == (0.0, 1.0, 1.0)
    assert math.isnan(shares["ref@x"]) and math.isnan(shares["ref@y"])
    assert found.reference == "ref@x"


def test_the_surfaces_are_those_of_the_draws_and_of_the_seeds():
    """One condition of two seeds: draws are 1 -+ .5 * sqrt(2) * 3.84, a quarter each, and the mean, a half."""
    far = 0.5 * math.sqrt(2) * stats.t.ppf(0.95, 1) / stats.norm.ppf(0.95)
    found = uncertain_front(study_of({"a": {1: (0.5, 3.0), 2: (1.5, 3.0)}}), ERROR_COST, None)
    low, middle, high = (surface.steps for surface in found.attainment)
    assert low[0] == pytest.approx((1 - far, 3.0))
    assert middle == ((1.0, 3.0),)
    assert high[0] == pytest.approx((1 + far, 3.0))
    assert [(s.level, s.steps) for s in found.seed_attainment] == [(0.5, ((0.5, 3.0),)), (1.0, ((1.5, 3.0),))]
    apart = uncertain_front(study_of({"a": {1: (0.5, 3.0)}, "b": {2: (0.4, 4.0)}}), ERROR_COST, None)
    assert apart.seed_attainment == () and len(apart.attainment) == 3


@pytest.mark.parametrize("num_seeds", [3, 4])
def test_equal_conditions_seem_told_apart_about_as_often_as_they_should(num_seeds):
    """One surely on the front and the other surely off it, of two with one mean: nominally in 10 % of the studies."""
    rng, num_apart = np.random.default_rng(num_seeds), 0
    for _ in range(150):
        values = {name: {seed: (float(rng.normal()), 1.0) for seed in range(num_seeds)} for name in "ab"}
        found = uncertain_front(study_of(values), ERROR_COST, None, num_draws=130)
        num_apart += {m.standing for m in found.memberships} == {"front", "dominated"}
    assert num_apart / 150 < 0.1 + 4 * math.sqrt(0.1 * 0.9 / 150)


def test_a_study_without_points_has_an_empty_front():
    found = uncertain_front(Study("s", ()), ERROR_COST, None)
    assert (found.points, found.memberships, found.volume, found.num_draws) == ((), (), None, 0)


def test_points_too_close_to_call_are_said_beside_the_hypervolume():
    good = {1: (0.20, 1.0), 2: (0.30, 1.0), 3: (0.10, 1.0)}
    far = study_of({"good": good, "bad": {1: (0.9, 2.0), 2: (0.91, 2.0), 3: (0.89, 2.0)}})
    close = study_of({"good": good, "other": {1: (0.21, 1.0), 2: (0.12, 1.0), 3: (0.31, 1.0)}})
    assert any("89 to 92 %" in note for note in uncertain_front(close, ERROR_COST, None).notes)
    assert not any("89 to 92 %" in note for note in uncertain_front(far, ERROR_COST, None).notes)


def test_complete_replicates_without_a_finite_value_are_said():
    study = study_of(
        {"a": {1: (0.2, 1.0), 2: (math.nan, 1.0), 3: (math.inf, 1.0)}, "b": {1: (0.3, 1.0), 2: (0.4, 1.0)}}
    )
    found = uncertain_front(study, ERROR_COST, None)
    assert "Complete replicates without a finite value of every objective are left out: a (2 of 3)." in found.notes


@pytest.mark.parametrize(
    "errors",
    [
        {"cheap": (".01", ".02", ".03"), "dear": (".03", ".01", ".02")},
        {"cheap": (".1", ".2", ".3"), "dear": (".2", ".2", ".2")},
        {"cheap": (".2", ".2", ".2"), "dear": (".1", ".2", ".3")},
        {"cheap": (".3", ".1", ".2", ".2", ".2"), "dear": (".2", ".2", ".2", ".2", ".2")},
    ],
)
def test_means_that_differ_by_rounding_alone_are_equal(errors):
    """Against fractions: the drawn mean's distance from the mean may be any multiple, so ties are those without it."""
    exact = {name: [Fraction(value) for value in column] for name, column in errors.items()}
    num_seeds, factor = len(exact["cheap"]), Fraction(1_000_003, 700_001)
    draws = list(product(range(num_seeds), repeat=num_seeds))

    def drawn(name, draw):
        mean = sum(exact[name]) / num_seeds
        return mean + factor * (sum(exact[name][k] for k in draw) / num_seeds - mean)

    on_front = sum(drawn("dear", draw) < drawn("cheap", draw) for draw in draws) / len(draws)
    conditions = {
        name: {seed: (float(value), cost) for seed, value in enumerate(column, 1)}
        for (name, column), cost in zip(errors.items(), (100.0, 120.0), strict=True)
    }
    found = uncertain_front(study_of(conditions, ERROR_COST), ERROR_COST, "cheap")
    shares = {point.name: one for point, one in zip(found.points, found.memberships, strict=True)}
    assert shares["cheap"].on_front == pytest.approx(1) and shares["dear"].on_front == pytest.approx(on_front)
    assert [point.name for point in found.points if point.is_front] == ["cheap"]
    assert shares["dear"].dominates_reference == 0
