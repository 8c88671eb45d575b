"""Claims about spreads, several things at once, fronts and trends: each with a study in which it holds, one in which it
fails and one that leaves it open."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import levene, page_trend_test, pearsonr, ttest_1samp, ttest_ind

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.tracking import mlflow_reader
from search_spaces.claim import Claim, FrontClaim, JointClaim, Place, Setting, Source, StatementClaim, TrendClaim
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError

COMMON: dict[str, Any] = {
    "id": "x",
    "sweeps": ("mine.sweep",),
    "text": "So it is.",
    "source": Source("paper", "section 1"),
    "setting": Setting("here"),
}
ERROR_A, ERROR_B, ERROR_C = (Place(name, "error") for name in "abc")
COST_A, COST_B, COST_C = (Place(name, "cost") for name in "abc")

CLOSE, WIDE, WIDER = (10.0, 10.1, 9.9, 10.05, 9.95), (10.0, 13.0, 7.0, 11.5, 8.5), (10.0, 10.15, 9.85, 10.1, 9.9)
LESS_SPREAD = StatementClaim(**COMMON, left=ERROR_A, relation="below", right=ERROR_B, of="spread")
AS_GOOD = StatementClaim(**COMMON, left=ERROR_A, relation="same", right=ERROR_B, margin=4.0)
CHEAPER = StatementClaim(**COMMON, left=COST_A, relation="below", right=COST_B)
JOINT = JointClaim(**COMMON, parts=(AS_GOOD, LESS_SPREAD, CHEAPER))
FRONT = FrontClaim(
    **COMMON,
    point=(ERROR_A, COST_A),
    others=((ERROR_B, COST_B), (ERROR_C, COST_C)),
    directions=("minimize", "minimize"),
)
TREND = TrendClaim(**COMMON, places=(ERROR_A, ERROR_B, ERROR_C), relation="rises")


def judged(claim: Claim, store: Store, test: Any = "welch", **columns: Any) -> Verdict:
    """The verdict on a recorded study with these values by seed: `a_error=(..)`."""
    return judged_together((claim,), store, test, **columns)[0]


def judged_together(
    claims: tuple[Claim, ...], store: Store, test: Any = "welch", **columns: Any
) -> tuple[Verdict, ...]:
    """The verdicts on all of them."""
    names = dict.fromkeys(column.partition("_")[0] for column in columns)
    for revision, name in enumerate(names, start=1):
        own = {column.partition("_")[2]: values for column, values in columns.items() if column.startswith(name)}
        runs = [
            replicate(name, seed, metrics={metric: values[seed - 1] for metric, values in own.items()})
            for seed in range(1, 1 + len(next(iter(own.values()))))
        ]
        store.write(runs, revision, start_ms=revision)
    study = mlflow_reader.read_study(store.client, "mine.sweep", store.experiment_id)
    assert study is not None
    question = Question("mine.sweep", "", (), "", test, (1, 2, 3, 4, 5), {n: {} for n in "abc"}, claims=claims)
    return judge(Study(study.sweep, study.replicates), question)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "mlflow.db", "mine.sweep")


@pytest.mark.parametrize(
    ("a", "b", "finding"),
    [
        (CLOSE, WIDE, Finding.reproduced),
        (WIDE, CLOSE, Finding.worse),
        (CLOSE, WIDER, Finding.inconclusive),
    ],
)
def test_a_spread_is_held_against_another(store, a, b, finding):
    found = judged(LESS_SPREAD, store, a_error=a, b_error=b)
    assert found.finding is finding and found.p == pytest.approx(levene(a, b, center="median").pvalue)
    assert found.difference == pytest.approx(np.std(a, ddof=1) - np.std(b, ddof=1))
    assert "Brown and Forsythe's test of two standard deviations over n = 5" in found.reason
    assert (found.seeds_needed is not None) == (finding is Finding.inconclusive)


def test_a_spread_is_compared_seed_by_seed_where_the_sweep_promises_so(store):
    found = judged(LESS_SPREAD, store, "paired_permutation", a_error=CLOSE, b_error=WIDE)
    sums, differences = np.add(CLOSE, WIDE), np.subtract(CLOSE, WIDE)
    assert found.p == pytest.approx(pearsonr(sums, differences).pvalue)
    assert found.finding is Finding.reproduced and "Pitman and Morgan" in found.reason


def test_two_seeds_have_no_spread_to_test(store):
    found = judged(LESS_SPREAD, store, a_error=CLOSE[:2], b_error=WIDE[:2])
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, 1)
    assert found.reason == "n = 2 says nothing of it; at least 1 more seed is needed."


def test_spreads_whose_test_is_undefined_are_not_shown(store):
    """In each group every value is as far from the median as the others: 1 and 2."""
    found = judged(LESS_SPREAD, store, a_error=(1.0, 1.0, 3.0, 3.0), b_error=(1.0, 1.0, 5.0, 5.0))
    assert (found.finding, found.p) == (Finding.inconclusive, 1.0)
    assert found.seeds_needed is not None and "as claimed, but not shown" in found.reason


@pytest.mark.parametrize(
    ("claim", "columns", "reason"),
    [
        (LESS_SPREAD, {"a": (1, 2, 3), "b": (5, 6, 7)}, "Both sides have the same spread"),
        (LESS_SPREAD, {"a": (1, 1, 1), "b": (2, 2, 2)}, "Both sides have the same spread"),
        (TREND, {"a": (1, 2, 3), "b": (1, 2, 3), "c": (1, 2, 3)}, "All places are the same in every replicate"),
        (TREND, {"a": (1, 3), "b": (2, 2), "c": (3, 1)}, "The ranks rise as much as they fall"),
    ],
    ids=["like spreads", "no spread", "like places", "both ways"],
)
def test_a_tie_is_neither_as_claimed_nor_against_it(store, claim, columns, reason):
    found = judged(claim, store, **{f"{name}_error": values for name, values in columns.items()})
    assert (found.finding, found.p, found.seeds_needed) == (Finding.inconclusive, 1.0, None)
    assert found.reason.startswith(f"{reason}, neither as claimed nor against the claim, by ")


@pytest.mark.parametrize("test", ["welch", "paired_permutation"])
def test_equal_values_of_one_side_are_no_certainty(store, test):
    """Three values that met an upper limit: the paired test would be sure of it."""
    found = judged(LESS_SPREAD, store, test, a_error=(1.0, 1.0, 1.0), b_error=(1.0, 1.0, 0.999))
    assert (found.finding, found.p) == (Finding.inconclusive, pytest.approx(levene((1, 1, 1), (1, 1, 0.999)).pvalue))
    assert "Brown and Forsythe" in found.reason


def test_a_side_without_spread_tells_no_number_of_seeds(store):
    found = judged(LESS_SPREAD, store, a_error=(1.0, 1.0, 1.0), b_error=(1.0, 2.0, 3.0))
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, None)
    assert "a side without spread does not tell how many seeds would show it" in found.reason


LOW, HIGH = (3.0, 3.1, 2.9, 3.0, 3.05), (9.0, 9.1, 8.9, 9.0, 9.05)
CHEAP, DEAR = (5.0, 5.1, 4.9, 5.0, 5.05), (7.0, 7.1, 6.9, 7.0, 7.05)


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({}, Finding.reproduced),
        ({"a_cost": DEAR, "b_cost": CHEAP}, Finding.worse),
        ({"a_error": WIDER, "b_error": CLOSE}, Finding.inconclusive),
        ({"b_error": WIDER}, Finding.inconclusive),
    ],
)
def test_a_joint_claim_holds_where_all_its_parts_do(store, changes, finding):
    values = {"a_error": CLOSE, "a_cost": CHEAP, "b_error": WIDE, "b_cost": DEAR} | changes
    found = judged(JOINT, store, **values)
    assert found.finding is finding
    tests = "two one-sided t-tests (Welch's t-test) and Brown and Forsythe's test"
    if not changes:  # the largest of its parts' (Berger 1982)
        assert found.p == pytest.approx(levene(CLOSE, WIDE, center="median").pvalue)
        assert tests in found.reason
    assert (tests in found.reason) is ("against the claim" not in found.reason and finding is not Finding.worse)


def test_a_part_that_is_certain_decides_without_a_test(store):
    """The errors differ by noise, and the costs are constant."""
    claim = JointClaim(**COMMON, parts=(AS_GOOD, CHEAPER))
    found = judged(claim, store, a_error=CLOSE, b_error=CLOSE[::-1], a_cost=(7.0,) * 5, b_cost=(5.0,) * 5)
    assert found.finding is Finding.worse and math.isnan(found.p)
    assert found.reason == "Contradicted in every replicate, without any spread."
    front = replace(FRONT, others=FRONT.others[:1])
    found = judged(front, store, a_error=CLOSE, b_error=CLOSE[::-1], a_cost=(5.0,) * 5, b_cost=(7.0,) * 5)
    assert found.finding is Finding.reproduced and math.isnan(found.p)
    assert found.reason == "So it is in every replicate, without any spread."


def test_a_part_about_every_replicate_says_what_its_values_are(store):
    """It is certain by one replicate, and by values that vary within its margin."""
    costs, within = (5.0, 5.0, 6.0), replace(CHEAPER, relation="same", right=5.0, of="every", margin=1.0)
    both = JointClaim(**COMMON, parts=(within, replace(within, left=COST_B)))
    found = judged(both, store, a_cost=costs, b_cost=(4.5, 5.0, 5.0))
    each = "is 5 within 1 in every replicate (n = 3)"
    assert found.reason == f"So it is: cost of a {each}; cost of b {each}."
    found = judged(replace(both, parts=(within, AS_GOOD)), store, a_cost=costs, a_error=(1.0,) * 3, b_error=(2.0,) * 3)
    assert found.reason == f"So it is: cost of a {each}; all else in every replicate, without any spread."
    found = judged(
        replace(both, parts=(replace(within, margin=0.0), AS_GOOD)),
        store,
        a_cost=costs,
        a_error=CLOSE[:3],
        b_error=CLOSE[:3],
    )
    assert found.finding is Finding.worse
    assert found.reason == "Contradicted: cost of a is not 5 in 1 of 3 replicates, but 6."
    three = replace(both, parts=(replace(within, left=ERROR_A, right=10.0, margin=0.06), CHEAPER, LESS_SPREAD))
    found = judged(three, store, a_error=CLOSE, b_error=WIDE, a_cost=(2.0,) * 5, b_cost=(1.0,) * 5)
    one = "Contradicted: error of a is not 10 within 0.06 in 2 of 5 replicates"
    assert found.reason.startswith(one)
    assert found.reason.endswith("; another part in every replicate, without any spread.")


def test_of_a_joint_claim_only_ratios_of_means_leave_out_what_is_0(store):
    share = Place("a", "error", over=Place("a", "cost"))
    every, mean = replace(CHEAPER, left=share, relation="same", right=1.0, of="every"), replace(CHEAPER, left=share)
    columns = {"a_error": (1.0, 2.0, 3.0), "a_cost": (0.0, 2.0, 3.0), "b_cost": (5.0, 6.0, 7.5)}
    for part, said in ((every, ""), (mean, "Left out: 1 seed whose cost of a is 0.")):
        found = judged(JointClaim(**COMMON, parts=(CHEAPER, part)), store, **columns)
        assert found.reason.partition(". ")[2] == said, found.reason


def test_a_contradicted_part_is_found_among_several(store):
    found = judged(JOINT, store, a_error=CLOSE, a_cost=DEAR, b_error=WIDE, b_cost=CHEAP)
    assert found.p == pytest.approx(3 * ttest_ind(DEAR, CHEAP, equal_var=False).pvalue)


def test_a_joint_claim_waits_for_the_values_of_every_part(store):
    found = judged(JOINT, store, a_error=CLOSE, a_cost=CHEAP, b_error=WIDE)
    assert found.finding is Finding.inconclusive and found.claim is JOINT and math.isnan(found.p)


@pytest.mark.parametrize(
    ("error", "spread_of_b"), [(CLOSE, WIDE), ((10.0,) * 5, (10.0,) * 5)], ids=["one part varies", "nothing varies"]
)
def test_a_part_that_is_a_tie_leaves_a_joint_claim_open(store, error, spread_of_b):
    """Equal costs in every replicate are no cheaper, and nothing says that they are dearer."""
    same = (5.0,) * 5
    claim = JointClaim(**COMMON, parts=(AS_GOOD, CHEAPER))
    found = judged(claim, store, a_error=error, a_cost=same, b_error=spread_of_b, b_cost=same)
    assert (found.finding, found.p, found.seeds_needed) == (Finding.inconclusive, 1.0, None)
    assert found.reason.startswith("In one part both sides are the same in every replicate, neither as claimed nor")


@pytest.mark.parametrize(
    "waiting", [replace(JOINT, parts=(AS_GOOD, replace(CHEAPER, right=COST_C))), FRONT], ids=["joint", "front"]
)
def test_a_claim_that_waits_does_not_take_from_the_others(store, waiting):
    """It is not tested yet, so that the p-values of those that are need no correction for it."""
    columns = {"a_error": CLOSE, "a_cost": CLOSE, "b_error": WIDER, "b_cost": (11.0, 10.5, 9.9, 10.6, 10.4)}
    alone = judged(CHEAPER, store, **columns)
    beside, waits = judged_together((CHEAPER, waiting), store, **columns)
    assert 0.01 < alone.p < 0.2
    assert waits.finding == Finding.inconclusive and "more seed" in waits.reason
    assert (beside.p, beside.reason) == (alone.p, alone.reason)


def test_a_contradicted_part_is_not_hidden_by_a_tie(store):
    claim = JointClaim(
        **COMMON, parts=(CHEAPER, AS_GOOD, StatementClaim(**COMMON, left=ERROR_A, relation="below", right=ERROR_B))
    )
    found = judged(claim, store, a_error=CLOSE, a_cost=DEAR, b_error=CLOSE, b_cost=CHEAP)
    assert found.finding is Finding.worse


def test_a_joint_claim_needs_the_seeds_of_its_most_demanding_part(store):
    """Two seeds compare means; three compare spreads."""
    one = {"a_error": CLOSE[:1], "a_cost": CHEAP[:1], "b_error": WIDE[:1], "b_cost": DEAR[:1]}
    found = judged(JOINT, store, **one)
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, 2) and "2 more seeds" in found.reason


def test_a_front_needs_more_seeds_than_the_comparison_that_decides_it(store):
    """Each objective is tested at half of the level."""
    less = StatementClaim(**COMMON, left=ERROR_A, relation="below", right=ERROR_B)
    front = replace(FRONT, others=FRONT.others[:1])
    columns = {"a_error": WIDE, "a_cost": HIGH, "b_error": [x + 1 for x in WIDE], "b_cost": LOW}
    alone, on = judged_together((less, front), store, **columns)
    assert on.finding is alone.finding is Finding.inconclusive and on.seeds_needed > alone.seeds_needed > 1


def test_a_contradicted_part_is_not_hidden_by_one_with_too_few_seeds(store):
    two = {"a_error": CLOSE[:2], "a_cost": DEAR[:2], "b_error": WIDE[:2], "b_cost": CHEAP[:2]}
    found = judged(JOINT, store, **two)
    assert found.finding is Finding.worse and found.claim is JOINT
    assert found.p == pytest.approx(3 * ttest_ind(DEAR[:2], CHEAP[:2], equal_var=False).pvalue)


NEAR = (4.9, 5.6, 4.4, 5.2, 5.0)


@pytest.mark.parametrize(
    ("b", "finding"),
    [
        ({"b_error": LOW, "b_cost": HIGH}, Finding.reproduced),
        ({"b_error": LOW, "b_cost": LOW}, Finding.worse),
        ({"b_error": NEAR, "b_cost": HIGH}, Finding.reproduced),
        ({"b_error": NEAR, "b_cost": NEAR}, Finding.inconclusive),
        ({"b_error": CHEAP[::-1], "b_cost": CHEAP[::-1]}, Finding.inconclusive),
    ],
)
def test_a_condition_is_on_the_front_or_dominated(store, b, finding):
    found = judged(FRONT, store, a_error=CHEAP, a_cost=CHEAP, **b, c_error=HIGH, c_cost=LOW)
    assert found.finding is finding and "Welch's t-test over n = 5" in found.reason
    if b == {"b_error": LOW, "b_cost": LOW}:  # both objectives, of two others
        assert found.p == pytest.approx(2 * ttest_ind(CHEAP, LOW, equal_var=False).pvalue)


def test_a_condition_can_be_said_to_be_off_the_front(store):
    off = FrontClaim(
        **COMMON,
        point=(ERROR_A, COST_A),
        others=((ERROR_B, COST_B),),
        directions=("minimize", "minimize"),
        is_on=False,
    )
    assert judged(off, store, a_error=CHEAP, a_cost=CHEAP, b_error=LOW, b_cost=LOW).finding is Finding.reproduced


OTHER_THERE = {"a_error": CHEAP, "a_cost": CHEAP, "b_error": LOW, "b_cost": LOW}


@pytest.mark.parametrize(("is_on", "finding"), [(True, Finding.worse), (False, Finding.reproduced)])
def test_a_dominator_that_is_there_decides_without_the_others(store, is_on, finding):
    found = judged(replace(FRONT, is_on=is_on), store, **OTHER_THERE)
    assert found.finding is finding
    assert found.p == pytest.approx(2 * ttest_ind(CHEAP, LOW, equal_var=False).pvalue)


def test_a_front_says_which_condition_it_waits_for(store):
    found = judged(FRONT, store, **{**OTHER_THERE, "b_cost": HIGH})
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, 2) and found.claim is FRONT
    assert found.reason == "No complete replicate has error of c yet; at least 2 more seeds are needed."


def test_an_equal_point_without_spread_does_not_dominate(store):
    same = (5.0,) * 5
    found = judged(FRONT, store, a_error=same, a_cost=same, b_error=same, b_cost=same, c_error=DEAR, c_cost=HIGH)
    of_c = min(ttest_1samp(other, 5.0).pvalue for other in (DEAR, HIGH))  # Welch's, where one side is constant
    assert found.finding is Finding.reproduced and found.p == pytest.approx(2 * of_c)


def test_equal_costs_without_spread_leave_the_error_to_decide(store):
    same = (5.0,) * 5
    found = judged(FRONT, store, a_error=HIGH, a_cost=same, b_error=LOW, b_cost=same, c_error=DEAR, c_cost=HIGH)
    assert found.finding is Finding.worse


@pytest.mark.parametrize(
    ("columns", "finding"),
    [
        ({"a": (1, 2, 3, 1, 2), "b": (2, 3, 4, 2, 3), "c": (3, 4, 5, 3, 5)}, Finding.reproduced),
        ({"a": (3, 4, 5, 3, 5), "b": (2, 3, 4, 2, 3), "c": (1, 2, 3, 1, 2)}, Finding.worse),
        ({"a": (1, 2, 3, 4, 2), "b": (2, 1, 4, 2, 3), "c": (3, 4, 2, 3, 1)}, Finding.inconclusive),
    ],
)
def test_a_trend_is_tested_over_shared_seeds(store, columns, finding):
    found = judged(TREND, store, **{f"{name}_error": values for name, values in columns.items()})
    table = np.array([columns[name] for name in "abc"], dtype=float).T
    sides = [page_trend_test(one, method="exact").pvalue for one in (table, table[:, ::-1])]
    assert found.finding is finding and found.p == pytest.approx(min(1, 2 * min(sides)))
    assert found.difference == pytest.approx(np.mean(columns["c"]) - np.mean(columns["a"]))
    assert "Page's test of 3 places over n = 5" in found.reason


def test_a_trend_needs_seeds_that_all_places_share(store):
    found = judged(TREND, store, a_error=(1.0,), b_error=(2.0, 3.0), c_error=(3.0, 4.0))
    assert (found.finding, found.seeds_needed) == (Finding.inconclusive, 1)


def test_claims_that_say_nothing_are_refused():
    with pytest.raises(InputError, match="A spread must be below or above another place"):
        StatementClaim(**COMMON, left=ERROR_A, relation="below", right=3.0, of="spread")
    with pytest.raises(InputError, match="at least 2 parts, but got 1"):
        JointClaim(**COMMON, parts=(CHEAPER,))
    with pytest.raises(InputError, match="at least 3 places, each once"):
        TrendClaim(**COMMON, places=(ERROR_A, ERROR_B, ERROR_A), relation="rises")
    with pytest.raises(InputError, match="a place for each objective"):
        FrontClaim(**COMMON, point=(ERROR_A,), others=((ERROR_B,),), directions=("minimize", "minimize"))
