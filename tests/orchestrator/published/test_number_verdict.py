"""Verdicts on numbers, against closed forms of Student's t with 2 and 4 degrees of freedom."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from orchestrator.published.verdict import Finding, Verdict, number_verdict
from search_spaces.claim import NumberClaim, Place, Published, Setting, Source


def tail(t: float, freedom: int) -> float:
    """P(T > t) by the closed forms of Student's distribution for 2 and 4 degrees of freedom."""
    if freedom == 2:
        return 0.5 - t / (2 * math.sqrt(2 + t * t))
    r = t * t / (1 + t * t / 4)
    return 0.5 - 3 / 8 * t / math.sqrt(1 + t * t / 4) * (1 - r / 12)


def verdict(values: Sequence[float], published: Published, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "id": "x",
        "sweeps": ("asr.demo",),
        "place": Place("a", "per", scale=100),
        "margin": 0.5,
        "margin_reason": "half a point",
        "source": Source("paper", "table"),
        "setting": Setting("on this"),
    }
    return number_verdict(NumberClaim(published=published, **fields | changes), values)


def test_a_published_spread_is_of_the_population() -> None:
    assert Published(20.0, 0.15, 5).sample_std == pytest.approx(0.15 * math.sqrt(5 / 4))
    assert Published(126.6, 4.06, 4).sample_std == pytest.approx(4.6881, abs=1e-4)
    assert Published(20.0).sample_std == Published(20.0, None, 5).sample_std == 0


def test_within_the_margin_is_reproduced() -> None:
    found = verdict([19.8, 20.0, 20.2], Published(20.0))
    assert found.finding is Finding.reproduced
    assert found.p == pytest.approx(tail(0.5 / (0.2 / math.sqrt(3)), 2)) and found.p < 0.05
    assert found.difference == pytest.approx(0) and found.seeds_needed is None
    assert found.reason.endswith(" of 3 seeds against a mean taken as exact.")
    assert found.ours and (found.ours.mean, found.ours.n) == (pytest.approx(20.0), 3)


def test_within_the_margin_is_reproduced_even_where_it_differs() -> None:
    """Five values that lie .2 above with next to no spread."""
    found = verdict([20.19, 20.2, 20.21, 20.2, 20.2], Published(20.0))
    assert found.finding is Finding.reproduced and found.interval.low > 0


@pytest.mark.parametrize(
    ("direction", "mean", "finding"),
    [
        ("minimize", 18.0, Finding.better),
        ("minimize", 22.0, Finding.worse),
        ("maximize", 18.0, Finding.worse),
        ("maximize", 22.0, Finding.better),
        ("none", 18.0, Finding.worse),
        ("none", 22.0, Finding.worse),
    ],
)
def test_away_from_it_is_better_or_worse(direction: str, mean: float, finding: Finding) -> None:
    found = verdict([mean - 0.2, mean, mean + 0.2], Published(20.0), direction=direction)
    assert found.finding is finding
    assert found.difference == pytest.approx(mean - 20)
    assert found.p == pytest.approx(2 * tail(2 / (0.2 / math.sqrt(3)), 2))
    assert ("eviates" in found.reason) == (direction == "none")


def test_a_published_spread_widens_the_interval() -> None:
    """Two groups of 3 with one sample standard deviation .2: Welch has 4 degrees of freedom, t(.975) = 2.7764."""
    found = verdict([17.8, 18.0, 18.2], Published(20.0, 0.2 * math.sqrt(2 / 3), 3))
    error = math.sqrt(2 * 0.2**2 / 3)
    assert found.finding is Finding.better and found.reason.endswith(" of 3 seeds against 3.")
    assert found.p == pytest.approx(2 * tail(2 / error, 4))
    assert found.interval == pytest.approx((-2 - 2.776445 * error, -2 + 2.776445 * error), abs=1e-5)


def test_too_much_spread_is_inconclusive_and_says_how_many_seeds_more() -> None:
    """For a margin of half a standard deviation equivalence needs about (1.645 + 1.282)^2 / .5^2 = 34 seeds."""
    found = verdict([19.0, 20.0, 21.0], Published(20.0))
    assert found.finding is Finding.inconclusive
    assert found.seeds_needed is not None and 34 - 3 <= found.seeds_needed <= 38 - 3
    assert "equivalence" in found.reason and f"{found.seeds_needed} more seeds" in found.reason


def test_beyond_the_margin_it_is_a_difference_that_needs_seeds() -> None:
    """A difference of one standard deviation needs about (1.96 + .84)^2 = 8 seeds, and two more for t."""
    found = verdict([20.0, 21.0, 22.0], Published(20.0))
    assert found.finding is Finding.inconclusive
    assert found.seeds_needed is not None and 9 - 3 <= found.seeds_needed <= 11 - 3
    assert "a difference" in found.reason


def test_no_number_of_our_seeds_helps_against_a_published_spread() -> None:
    found = verdict([19.0, 20.0, 21.0], Published(20.0, 3.0, 4))
    assert found.finding is Finding.inconclusive and found.seeds_needed is None
    assert "no number of seeds" in found.reason


def test_one_replicate_decides_nothing() -> None:
    found = verdict([20.5], Published(20.0))
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, 1) and math.isnan(found.p)
    assert found.difference == 0.5
    none = verdict([], Published(20.0))
    assert (none.finding, none.seeds_needed, none.ours) == (Finding.inconclusive, 2, None)
    planned = verdict([], Published(20.0, 0.15, 5))
    assert planned.seeds_needed is not None and planned.seeds_needed >= 2 and "as the published" in planned.reason


@pytest.mark.parametrize(
    ("value", "direction", "finding"),
    [
        (5_703_448, "none", Finding.reproduced),
        (5_703_449, "none", Finding.worse),
        (5_703_447, "minimize", Finding.better),
    ],
)
def test_exact_counts_are_compared_as_they_are(value: float, direction: str, finding: Finding) -> None:
    found = verdict([value, value], Published(5_703_448), direction=direction)
    assert found.finding is finding and math.isnan(found.p)
    assert "without a spread" in found.reason
