"""The attainment surface against hand, against the definition, and against moocore's own."""

import moocore
import numpy as np
import pytest

from orchestrator.pareto import attainment
from orchestrator.pareto.attainment import surfaces, thinned

DOWN = np.array([1.0, 1.0])


def test_two_known_fronts_by_hand():
    """One has error 2 from cost 1 and error 1 from cost 3; the other error 1.5 from cost 2."""
    fronts = [np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.5, 2.0]])]
    either, both = surfaces(fronts, [1.0, 1.0], [0.5, 1.0], DOWN)
    assert either.steps == ((2.0, 1.0), (1.5, 2.0), (1.0, 3.0))
    assert both.steps == ((2.0, 2.0), (1.5, 3.0))
    assert (either.level, both.level, both.is_thinned) == (0.5, 1.0, False)


@pytest.mark.parametrize("costs", [(1.0,), (1.0, 1.0)])
def test_weights_are_shares_of_the_draws(costs):
    fronts = [np.array([[error, *costs]]) for error in (1.0, 2.0, 3.0)]
    found = surfaces(fronts, [1.0, 6.0, 3.0], [0.05, 0.1, 0.11, 0.7, 0.71], np.ones(1 + len(costs)))
    assert [surface.steps for surface in found] == [((error, *costs),) for error in (1.0, 1.0, 2.0, 2.0, 3.0)]


def test_a_point_without_noise_is_attained_at_every_level():
    fronts = [np.array([[0.25, 7.0]])] * 3
    assert {s.steps for s in surfaces(fronts, [1.0] * 3, [0.05, 0.5, 0.95], DOWN)} == {((0.25, 7.0),)}


def test_directions_come_back():
    fronts = [np.array([[-0.9, 10.0]]), np.array([[-0.8, 20.0]])]
    either, both = surfaces(fronts, [1.0, 1.0], [0.5, 1.0], np.array([-1.0, 1.0]))
    assert either.steps == ((0.9, 10.0),)
    assert both.steps == ((0.8, 20.0),)


def random_fronts(num_objectives, num_fronts, drawn, is_tied):
    """Each the front of eight points; with ties, of few different values."""
    found = []
    for _ in range(num_fronts):
        rows = drawn.integers(0, 6, (8, num_objectives)) * 1.0 if is_tied else drawn.random((8, num_objectives)) * 6
        found.append(rows[moocore.is_nondominated(rows, keep_weakly=True)])
    return found


def is_attained(outcome, rows):
    return any((row <= outcome).all() for row in rows)


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("num_objectives", [2, 3])
def test_surfaces_part_what_so_many_fronts_attain_from_the_rest(num_objectives, is_tied, monkeypatch):
    monkeypatch.setattr(attainment, "MAX_STEPS", 10_000)
    drawn = np.random.default_rng(3)
    fronts, levels = random_fronts(num_objectives, 20, drawn, is_tied), (0.05, 0.5, 0.75, 0.95)
    found = surfaces(fronts, [1.0] * 20, levels, np.ones(num_objectives))
    corners = [np.array(step) for surface in found for step in surface.steps]
    outcomes = [*corners, *(corner - 1e-9 for corner in corners), *(drawn.random((200, num_objectives)) * 6)]
    for outcome in outcomes:
        share = sum(is_attained(outcome, front) for front in fronts) / 20
        for surface in found:
            assert is_attained(outcome, np.array(surface.steps)) == (share >= surface.level)


def test_two_objectives_agree_with_moocore():
    """Which knows no weights: a front of weight 3 is three fronts."""
    fronts, weights = random_fronts(2, 12, np.random.default_rng(5), is_tied=False), [1, 2, 3] * 4
    repeated = [front for front, weight in zip(fronts, weights, strict=True) for _ in range(weight)]
    sets = np.repeat(np.arange(len(repeated)), [len(front) for front in repeated])
    for surface in surfaces(fronts, weights, (0.25, 0.5, 1.0), DOWN):
        expected = moocore.eaf(np.concatenate(repeated), sets, percentiles=[100 * surface.level])[:, :2]
        assert sorted(surface.steps) == sorted(map(tuple, expected.tolist()))


def test_many_costs_are_thinned_and_what_is_left_is_attained():
    """A cost that all fronts share is never left out; the least steps are not either."""
    drawn = np.random.default_rng(2)
    fronts = [np.concatenate([drawn.random((30, 2)) * [1, 0.5] + [1, 0], [[0.5, 0.7]]]) for _ in range(40)]
    fronts = [rows[moocore.is_nondominated(rows)] for rows in fronts]
    fronts += [np.stack([2 - np.arange(600) / 1000, np.arange(600) / 1000], axis=1)]
    (surface,) = surfaces(fronts, [1.0] * 41, [0.5], DOWN)
    assert surface.is_thinned and 5 < len(surface.steps) <= attainment.MAX_STEPS
    assert (0.5, 0.7) in surface.steps
    for step in surface.steps:
        assert np.mean([is_attained(step, rows) for rows in fronts]) >= 0.5


def test_three_objectives_with_equal_values_take_no_time():
    """Of such fronts moocore's own surface takes minutes."""
    drawn = np.random.default_rng(1)
    shared = drawn.random((60, 3))
    fronts = []
    for _ in range(100):
        rows = np.where(drawn.random((60, 1)) < 0.4, shared, shared + 0.05 * drawn.normal(size=(60, 3)))
        fronts.append(rows[moocore.is_nondominated(rows)])
    found = surfaces(fronts, [1.0, 2.0] * 50, (0.05, 0.95), np.ones(3))
    assert [0 < len(surface.steps) <= attainment.MAX_STEPS for surface in found] == [True, True]
    share = np.mean([[is_attained(np.array(step), rows) for step in found[1].steps] for rows in fronts])
    assert share > 0.85


def test_one_objective_has_no_surface():
    assert surfaces([np.array([[1.0]])], [1.0], [0.5], np.ones(1)) == ()


def test_thinned_keeps_the_ends():
    rows = np.stack([np.arange(101.0)[::-1], np.arange(101.0)], axis=1)
    assert thinned(rows, 5)[:, 1].tolist() == [0, 25, 50, 75, 100]
    assert thinned(rows, 101) is rows
