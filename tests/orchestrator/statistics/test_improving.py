"""Whether a curve still gets better at its end, against lines by hand and noise that is drawn."""

import math

import numpy as np
import pytest

from orchestrator.statistics.improving import ending
from orchestrator.statistics.summary import mean_interval


def line(slope: float, start: float = 1.0, steps: int = 20) -> list[tuple[int, float]]:
    """`start` at step 0, and so much more at each step."""
    return [(step, start + slope * step) for step in range(steps + 1)]


def noisy(seed: int, slope: float, noise: float, steps: int = 40) -> list[tuple[int, float]]:
    draws = np.random.default_rng(seed).normal(0, noise, steps + 1)
    return [(step, value + float(draw)) for (step, value), draw in zip(line(slope, steps=steps), draws, strict=True)]


def test_a_curve_that_still_falls_is_improving_and_goes_on_by_a_tenth_of_its_steps() -> None:
    slopes = (-0.010, -0.012, -0.014)
    found = ending([line(slope) for slope in slopes], "minimize")
    by_hand = [slope * 2 for slope in slopes]  # 20 steps, of which a tenth is 2
    assert (found.standing, found.n) == ("improving", 3)
    assert found.change == pytest.approx(sum(by_hand) / 3)
    assert found.interval == pytest.approx(mean_interval(by_hand))


def test_only_the_end_of_a_curve_counts() -> None:
    """It fell for nine tenths, then it stays, or rises."""
    for after in (0.0, 0.01):
        curves = [[*line(-0.02 - 0.001 * seed, steps=17), *((step, 0.5 + after * step) for step in (18, 19, 20))]
                  for seed in range(3)]  # fmt: skip
        found = ending(curves, "minimize")
        assert (found.standing, found.change) == ("ended", pytest.approx(2 * after))


def test_which_way_is_better_is_the_metrics() -> None:
    rising = [line(slope) for slope in (0.01, 0.011, 0.012)]
    assert ending(rising, "maximize").standing == "improving"
    assert ending(rising, "minimize").standing == "ended"


def test_a_noisy_flat_curve_is_said_to_improve_no_more_often_than_its_level() -> None:
    """The 95 % interval lies below 0 in one of 40; that its mean is below 0, in half, says nothing."""
    trials = [ending([noisy(1000 * trial + seed, 0.0, 0.1) for seed in range(5)], "minimize") for trial in range(400)]
    assert sum(one.standing == "improving" for one in trials) / 400 <= 0.05
    assert 0.4 < sum(one.change < 0 for one in trials) / 400 < 0.6


def test_a_noisy_curve_that_falls_is_seen_through_its_noise() -> None:
    trials = [ending([noisy(1000 * trial + seed, -0.02, 0.01) for seed in range(5)], "minimize") for trial in range(50)]
    assert all(one.standing == "improving" for one in trials)
    assert np.mean([one.change for one in trials]) == pytest.approx(4 * -0.02, abs=0.005)


@pytest.mark.parametrize(
    "curves",
    [
        [line(-0.01)],  # one seed
        [],
        [line(-0.01), [(10, 1.0), (20, 0.5)]],  # too few in the last third of one
        [line(-0.01, steps=11), line(-0.02, steps=11)],  # steps 8 to 11 are four
        [[], []],
    ],
)
def test_of_too_few_validations_or_seeds_nothing_is_known(curves) -> None:
    found = ending(curves, "minimize")
    assert found.standing == "not known" and math.isnan(found.change) and math.isnan(found.interval.low)
    assert ending([line(-0.01, steps=12), line(-0.0101, steps=12)], "minimize").standing == "improving"


def test_each_seed_ends_at_its_own_step() -> None:
    """As with patience: a tenth is of its own training."""
    found = ending([line(-0.01, steps=20), line(-0.01, steps=40)], "minimize")
    assert found.change == pytest.approx((-0.02 - 0.04) / 2)
