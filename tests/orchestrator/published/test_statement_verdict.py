"""Verdicts on statements, against closed forms of Student's t and counted sign flips."""

import math
from typing import Any

import pytest

from orchestrator.published.statement_verdict import StatementTest, every_test, statement_test
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.statistics.significance import holm
from search_spaces.claim import Place, Setting, Source, StatementClaim
from tests.orchestrator.published.test_number_verdict import tail
from trainables.errors import InputError

A, B = Place("a", "per"), Place("b", "per")


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values, start=1))


def claim(**changes: Any) -> StatementClaim:
    fields: dict[str, Any] = {
        "id": "x",
        "sweeps": ("asr.demo",),
        "text": "a is below b",
        "left": A,
        "relation": "below",
        "right": B,
        "source": Source("paper", "table"),
        "setting": Setting("on this"),
    }
    return StatementClaim(**fields | changes)


def judged(statement: StatementClaim, left: Any, right: Any, test: Any = "welch", num_tests: int = 1) -> Verdict:
    if statement.of == "every":
        found = every_test(statement, left, right)
    else:
        found = statement_test(statement, left, right, test)
    if not isinstance(found, StatementTest):
        return found
    return found.verdict(holm([found.p] * num_tests)[0], num_tests)


def test_two_conditions_are_two_groups() -> None:
    """Two groups of 3 with standard deviation 1, 3 apart: t = 3 / sqrt(2 / 3) with 4 degrees of freedom."""
    low, high = by_seed(1, 2, 3), by_seed(4, 5, 6)
    found = judged(claim(), low, high)
    assert found.finding is Finding.reproduced and found.difference == pytest.approx(-3)
    assert found.p == pytest.approx(2 * tail(3 / math.sqrt(2 / 3), 4)) and "Welch" in found.reason
    contradicted = judged(claim(relation="above"), low, high)
    assert contradicted.finding is Finding.worse and "Contradicted" in contradicted.reason


def test_the_family_can_take_it_back() -> None:
    found = judged(claim(), by_seed(1, 2, 3), by_seed(4, 5, 6), num_tests=3)
    assert found.finding is Finding.inconclusive and found.seeds_needed is not None and found.seeds_needed >= 1
    assert "adjusted for 3 tests" in found.reason


def test_what_is_not_shown_says_in_which_direction_it_was_seen() -> None:
    """A tenth of a standard deviation takes about 2 (1.96 + .84)^2 / .1^2 = 1,570 seeds in each group."""
    found = judged(claim(), by_seed(1, 2, 3), by_seed(1.1, 2.1, 3.1))
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, None) and "as claimed" in found.reason
    half = judged(claim(), by_seed(2, 3, 4), by_seed(1.5, 2.5, 3.5))
    assert half.seeds_needed is not None and 63 - 3 <= half.seeds_needed <= 66 - 3
    assert "against the claim" in half.reason


@pytest.mark.parametrize(
    ("margin", "right", "reason"),
    [
        (0.0, by_seed(3, 2, 1), "Both sides have the same mean"),
        (1.0, by_seed(0, 1, 2), "Both sides are just the margin apart"),
    ],
)
def test_a_tie_is_neither_as_claimed_nor_against_it(margin: float, right: dict[int, float], reason: str) -> None:
    found = judged(claim(margin=margin), by_seed(1, 2, 3), right)
    assert (found.finding, found.p, found.seeds_needed) == (Finding.inconclusive, 1.0, None)
    assert found.reason == f"{reason}, neither as claimed nor against the claim."


def test_two_evaluations_of_one_condition_are_compared_by_replicate() -> None:
    """Differences -1, -2 and -3: t = -2 / (1 / sqrt(3)) with 2 degrees of freedom; as groups nothing would show."""
    left, right = by_seed(9, 48, 87), by_seed(10, 50, 90)
    same = claim(right=Place("a", "per", "other"))
    found = judged(same, left, right)
    assert found.p == pytest.approx(2 * tail(2 * math.sqrt(3), 2))
    assert found.difference == pytest.approx(-2) and "paired t-test" in found.reason
    groups = judged(claim(), left, right)
    assert groups.p > 0.5
    fewer = judged(same, left, {1: 10, 2: 50, 7: 90})
    assert fewer.difference == pytest.approx(-1.5)


def test_a_sweep_can_promise_the_permutation_test() -> None:
    """Six differences of one sign: 2 of 64 sign flips are as large."""
    left, right = by_seed(1, 2, 3, 4, 5, 6), by_seed(2, 4, 4, 6, 6, 9)
    found = judged(claim(), left, right, "paired_permutation")
    assert found.p == pytest.approx(2 / 64) and found.finding is Finding.reproduced
    other_seeds = {seed + 1: value for seed, value in right.items()}
    assert "Welch" in judged(claim(), left, other_seeds, "paired_permutation").reason
    few = judged(claim(), by_seed(1, 2, 3), by_seed(2, 4, 4), "paired_permutation")
    assert few.p == pytest.approx(2 / 8) and few.seeds_needed == 6 - 3


def test_no_worse_allows_for_the_margin() -> None:
    """Two groups of 3, .3 apart on the wrong side, standard deviation .02: shown within .5, not within .3."""
    left, right = by_seed(20.28, 20.3, 20.32), by_seed(19.98, 20.0, 20.02)
    found = judged(claim(margin=0.5), left, right)
    assert found.finding is Finding.reproduced
    assert found.p == pytest.approx(2 * tail(0.2 / (0.02 * math.sqrt(2 / 3)), 4))
    assert judged(claim(margin=0.3), left, right).finding is Finding.inconclusive
    assert judged(claim(margin=0.1), left, right).finding is Finding.worse
    assert judged(claim(relation="above", margin=0.5), right, left).finding is Finding.reproduced


def test_the_same_is_shown_by_equivalence() -> None:
    left, right = by_seed(20.28, 20.3, 20.32), by_seed(19.98, 20.0, 20.02)
    found = judged(claim(relation="same", margin=0.5), left, right)
    assert found.finding is Finding.reproduced
    assert found.p == pytest.approx(tail(0.2 / (0.02 * math.sqrt(2 / 3)), 4)) and "one-sided" in found.reason
    assert judged(claim(relation="same", margin=0.1), left, right).finding is Finding.worse
    wide = judged(claim(relation="same", margin=0.5), by_seed(19, 20, 21), by_seed(19, 20, 21.3))
    assert wide.finding is Finding.inconclusive and wide.seeds_needed is not None


def test_a_number_is_taken_as_exact() -> None:
    """4, 4.2 and 4.4 against 5: t = .8 / (.2 / sqrt(3)) with 2 degrees of freedom."""
    found = judged(claim(right=5.0), by_seed(4.0, 4.2, 4.4), 5.0)
    assert found.p == pytest.approx(2 * tail(0.8 / (0.2 / math.sqrt(3)), 2)) and found.finding is Finding.reproduced


@pytest.mark.parametrize(
    ("relation", "left", "right", "finding"),
    [
        ("below", 1.0, 2.0, Finding.reproduced),
        ("above", 1.0, 2.0, Finding.worse),
        ("below", 2.0, 2.0, Finding.inconclusive),
        ("same", 2.0, 2.0, Finding.reproduced),
    ],
)
def test_without_spread_it_is_as_seen(relation: str, left: float, right: float, finding: Finding) -> None:
    found = judged(claim(relation=relation), by_seed(left, left), by_seed(right, right))
    assert found.finding is finding and math.isnan(found.p)


@pytest.mark.parametrize(
    ("relation", "left", "right", "finding"),
    [
        ("same", 0.4, 0.3, Finding.reproduced),  # .4 - .3 is .10000000000000003
        ("below", 0.4, 0.3, Finding.inconclusive),
        ("below", 0.3, 0.2, Finding.inconclusive),  # .09999999999999998
        ("above", 0.3, 0.4, Finding.inconclusive),
        ("below", 0.4, 0.3 - 1e-8, Finding.worse),
    ],
)
def test_just_the_margin_apart_is_no_matter_of_rounding(
    relation: str, left: float, right: float, finding: Finding
) -> None:
    found = judged(claim(relation=relation, margin=0.1), by_seed(left, left), by_seed(right, right))
    assert found.finding is finding


def test_one_replicate_shows_nothing() -> None:
    one = judged(claim(), by_seed(1.0), by_seed(1, 2, 3))
    assert (one.finding, one.seeds_needed) == (Finding.inconclusive, 1) and one.ours
    none = judged(claim(), {}, by_seed(1, 2, 3))
    assert (none.finding, none.seeds_needed, none.ours) == (Finding.inconclusive, 2, None)
    assert judged(claim(right=5.0), by_seed(1.0), 5.0).finding is Finding.inconclusive


def test_two_ratios_that_share_a_condition_are_compared_seed_by_seed() -> None:
    """b / c against a / b: what b has high in a seed lowers one and raises the other, so they are no two groups."""
    statement = claim(left=Place("b", "per", over=Place("c", "per")), right=Place("a", "per", over=B))
    found = judged(statement, by_seed(1, 2, 3), by_seed(1.9, 3, 4.1))
    assert found.difference == pytest.approx(-1) and "a paired t-test" in found.reason
    assert found.p == pytest.approx(2 * tail(1 / (0.1 / math.sqrt(3)), 2))


def test_one_replicate_contradicts_what_is_said_of_every_one() -> None:
    """Values decide, whatever their spread: a t-test of a mean share can neither show nor refute a "never"."""
    never = claim(relation="same", right=0.0, of="every")
    held = judged(never, by_seed(0.0, 0.0, 0.0), 0.0, num_tests=3)
    assert held.finding is Finding.reproduced and held.reason == "per of a is 0 in every replicate (n = 3)."
    once = judged(never, by_seed(0, 0, 0, 0, 0.02), 0.0, num_tests=3)
    assert once.finding is Finding.worse and math.isnan(once.p)
    assert once.reason == "Contradicted: per of a is not 0 in 1 of 5 replicates, but 0.02."
    assert judged(never, by_seed(0.3, 0.01, 0, 0.02, 0.5), 0.0).finding is Finding.worse
    assert judged(never, by_seed(0.001), 0.0).finding is Finding.worse
    assert judged(never, by_seed(0.0), 0.0).finding is Finding.inconclusive
    assert judged(never, {}, 0.0).finding is Finding.inconclusive
    near = claim(relation="same", right=0.0, of="every", margin=0.02)
    assert judged(near, by_seed(-0.02, 0.01), 0.0).finding is Finding.reproduced
    assert judged(near, by_seed(-0.03, 0.01), 0.0).finding is Finding.worse
    about_one = claim(relation="same", right=1.0, of="every", margin=0.05)
    held = judged(about_one, by_seed(1.05, 0.95), 1.0)
    assert held.reason == "per of a is 1 within 0.05 in every replicate (n = 2)."
    once = judged(about_one, by_seed(1.0, 1.01, 1.2), 1.0)
    assert once.reason == "Contradicted: per of a is not 1 within 0.05 in 1 of 3 replicates, but 1.2."


def test_what_is_said_of_every_replicate_is_the_same_as_a_number() -> None:
    for changes in ({"relation": "below", "right": 0.0}, {"relation": "same", "right": B}):
        with pytest.raises(InputError, match="What holds in every replicate must be the same as a number, but got"):
            claim(of="every", **changes)
