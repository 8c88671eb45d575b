"""Verdicts on comparisons of errors that were kept by test item: do they hold for other items too?"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.over_items import Place as Side
from orchestrator.results.over_items import over_items
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim import Claim, JointClaim, Place, Setting, Source, StatementClaim
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import replicate
from trainables.item_errors import Item

SWEEP = "asr.deterministic_timit"
SOURCE, SETTING = Source("A paper", "Table 1"), Setting("anywhere")
BELOW = StatementClaim("x", (SWEEP,), "a is below b", Place("a", "per"), "below", Place("b", "per"), SOURCE, SETTING)
JOINT = JointClaim(
    "j", (SWEEP,), "a is below b, and not far", (BELOW, replace(BELOW, relation="same", margin=1.0)), SOURCE, SETTING
)
HOLDS, IS_OPEN = "so this holds for other test items too.", "so this is not shown for other test items."
ABOVE = replace(BELOW, relation="above")
LARGE = {side: replace(getattr(BELOW, side), scale=100.0) for side in ("left", "right")}
"""By item `a` errs .02 less than `b`, or 2 on this scale."""


@pytest.mark.parametrize(
    ("between_speakers", "claim", "said"),
    [
        (0.0, BELOW, HOLDS),
        (6.0, BELOW, IS_OPEN),
        (6.0, ABOVE, IS_OPEN),
        (0.0, ABOVE, HOLDS),
        (0.0, replace(ABOVE, margin=0.05), HOLDS),
        (1.0, replace(ABOVE, margin=0.05), IS_OPEN),
        (0.0, replace(BELOW, **LARGE, margin=1.0), HOLDS),
        (6.0, replace(BELOW, **LARGE, margin=1.0), IS_OPEN),
        (0.0, replace(BELOW, relation="same", margin=0.05), HOLDS),
        (6.0, replace(BELOW, relation="same", margin=0.05), IS_OPEN),
        (0.0, replace(BELOW, relation="same", margin=0.01), HOLDS),  # contradicted
        (0.0, JOINT, HOLDS),
        (0.0, replace(JOINT, parts=(BELOW, ABOVE)), ""),
        (0.0, replace(BELOW, left=LARGE["left"]), ""),
        (0.0, replace(BELOW, right=replace(BELOW.right, metric="other")), ""),
    ],
)
def test_a_verdict_says_whether_it_holds_for_other_test_items(between_speakers: float, claim: Claim, said: str) -> None:
    """With speakers who differ in it by 6 errors of 50, three cannot show a difference of one error."""
    found, plain = of_items(between_speakers)
    (verdict,) = of_per([claim], found)
    assert verdict.finding in (Finding.reproduced, Finding.worse)
    assert ("3 groups of test items per of a less per of b is" in verdict.reason) == bool(said)
    assert said in verdict.reason and not (said == HOLDS and IS_OPEN in verdict.reason)
    (without,) = of_per([claim], plain)
    assert without.finding is verdict.finding and "test items" not in without.reason


def test_of_two_errors_that_are_the_same_the_interval_is_that_of_two_one_sided_tests() -> None:
    found, _ = of_items(1.0)
    same = replace(BELOW, relation="same", margin=0.05)
    both = next(over_items(found, Side("a", "a", ""), Side("b", "b", ""), is_paired=False)).both
    (verdict,), (opposite,) = of_per([same], found), of_per([replace(same, margin=0.001)], found)
    assert "{:.4g} to {:.4g} (90 %".format(*both.interval(0.9)) in verdict.reason
    assert "{:.4g} to {:.4g} (95 %".format(*both.interval()) in opposite.reason


def test_items_are_paired_as_the_verdict_is_and_of_other_seeds_nothing_is_said() -> None:
    found, _ = of_items(1.0)
    (verdict,) = of_per([BELOW], found, test="paired_permutation")
    both = next(over_items(found, Side("a", "a", ""), Side("b", "b", ""), is_paired=True)).both
    assert "is {:.4g} to {:.4g} (95 %".format(*both.interval()) in verdict.reason
    for left_out in (1, 2, 3):
        kept = tuple(one for one in found.items.errors if one.condition == "b" or one.seed > left_out)
        (verdict,) = of_per([BELOW], replace(found, items=replace(found.items, errors=kept)))
        assert verdict.finding is Finding.reproduced and "test items" not in verdict.reason


def of_per(claims: Sequence[Claim], found: Study, test: str = "welch") -> tuple[Verdict, ...]:
    plain = Question.of(find_sweep(SWEEP))
    return judge(found, replace(plain, claims=tuple(claims), configs={name: {} for name in "ab"}, test=test))


def of_items(between_speakers: float) -> tuple[Study, Study]:
    """Two conditions with errors by item, of six seeds and three speakers; and the same without the items."""
    noise = np.random.default_rng(0).normal(0, 0.05, (2, 6, 3))
    speakers = between_speakers * np.array([-1.0, 0.0, 1.0])
    wrong = {"a": 20.0 + noise[0], "b": 21.0 + noise[1] + speakers}
    listed = {
        (name, seed, "per"): tuple(Item(f"u{j}", f"speaker {j}", table[seed - 1, j], 50.0) for j in range(3))
        for name, table in wrong.items()
        for seed in range(1, 7)
    }
    runs = [
        replicate(name, seed, metrics={"per": value, "other": value})
        for name, table in wrong.items()
        for seed, value in enumerate((table.sum(1) / 150).tolist(), 1)
    ]
    plain = Study(SWEEP, tuple(runs))
    return replace(plain, items=ItemErrors.of(listed)), plain
