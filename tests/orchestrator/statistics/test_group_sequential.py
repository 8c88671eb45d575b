"""Seeds by need: levels, single decisions, the front by its definition, replay, and the rate of error by simulation."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from orchestrator.statistics.group_sequential import Progress, levels, looks, wanted
from search_spaces.sweep import Objective, Sequential

ERROR = Objective("error")
COST = Objective("cost")
SCORE = Objective("score", "maximize")
Values = dict[tuple[str, int], tuple[float, ...] | None]


def by_key(table: dict[str, Sequence[object]]) -> Values:
    """Values of seeds 1, 2, ... from one row (or number, or None) for each seed of each condition."""
    return {
        (name, seed): row if row is None or isinstance(row, tuple) else (row,)
        for name, rows in table.items()
        for seed, row in enumerate(rows, 1)
    }


def ask(
    values: Values,
    names: Sequence[str],
    *,
    objectives: Sequence[Objective] = (ERROR,),
    maximum: int,
    minimum: int = 3,
    rate: float = 0.05,
    reference: str | None = None,
) -> Progress:
    question = "reference" if reference else "front"
    rule = Sequential(minimum, question, rate)
    return wanted(rule, names, reference, objectives, range(1, maximum + 1), values)


def test_looks_by_hand():
    assert looks(3, 20) == (3, 5, 8, 12, 18, 20)
    assert looks(3, 5) == (3, 5)
    assert looks(4, 4) == (4,)


@pytest.mark.parametrize("rule", [(3, 20), (3, 5), (5, 5), (7, 100)])
def test_levels_spend_the_error_rate_and_no_more(rule):
    found, rule_looks = levels(looks(*rule), 0.05), looks(*rule)
    assert len(found) == len(rule_looks) and min(found) > 0
    assert sum(found) == pytest.approx(0.05, rel=1e-14)
    assert found[0] == pytest.approx(0.05 * (rule_looks[0] / rule_looks[-1]) ** 1.5)


def test_one_comparison_is_the_paired_test_over_the_seeds_that_both_completed():
    a = [1.0, 1.2, 0.9, None, 1.1, 1.05]
    b = [1.5, 1.6, 1.45, 1.0, None, 1.52]
    common = [k for k in range(6) if a[k] is not None and b[k] is not None]
    p = stats.ttest_rel([a[k] for k in common], [b[k] for k in common]).pvalue
    found = ask(by_key({"a": a, "b": b}), ["a", "b"], maximum=6, minimum=6, reference="b")
    assert found.decisions == {"a": f"lower than b (p = {p:.2g} at 4 seeds)", "b": "reference"}
    above, below = (
        ask(by_key({"a": a, "b": b}), ["a", "b"], maximum=6, minimum=6, reference="b", rate=p * x)
        for x in (1.001, 0.999)
    )
    assert above.decisions == found.decisions and below.decisions["a"] == "undecided"


def test_the_level_is_shared_by_all_comparisons_with_the_reference():
    rows = {"a": [0.0, 0.1, 0.3, 0.2], "b": [1.0, 1.5, 1.0, 1.4], "c": [0.0, 0.5, 0.2, 0.1], "d": [0.1, 0.0, 0.1, 0.6]}
    p = stats.ttest_rel(rows["a"], rows["b"]).pvalue
    found = [
        ask(by_key(rows), list(rows), maximum=4, minimum=4, reference="b", rate=3 * p * x).decisions["a"]
        for x in (1.001, 0.999)
    ]
    assert found[0].startswith("lower than b") and found[1] == "undecided"


def test_only_the_first_objective_is_compared_with_the_reference():
    rows = by_key({"a": [1.0, 1.2, 0.9, 1.1], "r": [1.5, 1.6, 1.45, 1.7]})
    both = {key: (*row, float("nan") if key[1] == 2 else 7.0) for key, row in rows.items() if row}
    found = ask(both, ["a", "r"], objectives=(ERROR, COST), maximum=4, minimum=4, reference="r")
    assert found == ask(rows, ["a", "r"], maximum=4, minimum=4, reference="r")
    assert found.decisions["a"].startswith("lower than r")


def test_what_is_decided_stays_so_against_later_seeds():
    """The error has b above a at 3 seeds, and would have it below at 18; the cost decides nothing."""
    error = [1.0, 1.001, 0.999, *(-100.0 - k % 3 for k in range(17))]
    values = by_key({"a": [(0.0, 0.0)] * 20, "b": list(zip(error, [0.1, -0.1] * 10, strict=True))})
    assert stats.ttest_1samp(error, 0).pvalue < 1e-6
    found = ask(values, ["a", "b"], objectives=(ERROR, COST), maximum=20)
    assert found.decisions == {"a": "on the front", "b": "undecided"}


def test_one_that_was_found_better_is_not_found_dominated():
    """At 3 seeds c is below j, too weakly to show j dominated; later j is below c, and k, which held c up."""
    c, noise = [0.0] * 20, [3.0, -3.0] * 10
    j = [1.0, 1.06, 0.94, *(-100.0 - k % 3 for k in range(17))]
    spent = levels(looks(3, 20), 0.05)
    assert spent[0] / 3 / 2 < stats.ttest_1samp(j[:3], 0).pvalue / 2 < spent[0] / 3
    assert stats.ttest_1samp(j, 0).pvalue / 2 < spent[-1] / 3 / 2
    found = ask(by_key({"c": c, "j": j, "k": noise}), ["c", "j", "k"], maximum=20)
    assert found.decisions == {"c": "on the front", "j": "undecided", "k": "dominated by j"}


def test_one_that_is_on_the_front_goes_on_while_another_has_not_got_past_it():
    rows = {"j": [(0.0, 0.0), (0.1, 1.0), (0.0, 0.0)], "c": [(9.0, 1.0), (9.0, 0.0), (9.0, 0.5)]}
    found = ask(by_key(rows), ["j", "c"], objectives=(ERROR, COST), maximum=5)
    assert found == Progress({"j": 5, "c": 5}, {"j": "on the front", "c": "undecided"}, False)


def test_a_counted_cost_is_certain_and_may_be_equal():
    values = by_key({"a": [7.0] * 3, "b": [7.0] * 3, "c": [0.3 / 3 * 90] * 3, "d": [9.0] * 3, "r": [9.0] * 3})
    found = ask(values, list("abcdr"), maximum=10, reference="r")
    assert found.decisions == {
        "a": "lower than r (no spread at 3 seeds)",
        "b": "lower than r (no spread at 3 seeds)",
        "c": "equal to r (no spread at 3 seeds)",
        "d": "equal to r (no spread at 3 seeds)",
        "r": "reference",
    }
    assert found.is_final and set(found.num_seeds.values()) == {3}


def test_ties_of_a_score_that_saturates_are_not_certain():
    """`c` shows that the score ties by chance, so three times 1 in `a` and `b` prove nothing."""
    values = by_key({"a": [1.0] * 3, "b": [1.0] * 3, "c": [1.0, 0.9, 1.0]})
    found = ask(values, list("abc"), maximum=10, reference="a")
    assert found.decisions == {"a": "reference", "b": "undecided", "c": "undecided"}
    assert set(found.num_seeds.values()) == {5}


def test_differences_of_one_value_count_as_their_signs():
    """Both conditions move: 3 seeds of one sign are not enough, 2^(1 - 8) is (look 3 of 3, 5, 8, 10)."""
    shared = np.random.default_rng(1).standard_normal(10).tolist()
    values = by_key({"a": shared, "b": [x + 0.1 for x in shared], "same": shared})
    found = ask(values, ["a", "b"], maximum=10, reference="b")
    assert found.decisions["a"] == "lower than b (p = 0.0078 at 8 seeds)"
    assert found.num_seeds == {"a": 8, "b": 8}
    found = ask(values, ["a", "same"], maximum=10, reference="a")
    assert found.decisions["same"] == "undecided" and found.is_final and found.num_seeds["same"] == 10


def test_failed_conditions_hold_nothing_up():
    clear = by_key({"a": [1.0, 1.1, 1.2], "r": [9.0, 9.1, 9.3]})
    failed = by_key({"dead": [None] * 3, "nan": [(float("nan"),)] * 3})
    names = ["a", "r", "dead", "nan"]
    found = ask(clear | failed, names, maximum=6, rate=0.5, reference="r")
    assert found.is_final and found.num_seeds == dict.fromkeys(names, 3)
    assert found.decisions["dead"] == found.decisions["nan"] == "undecided"
    assert found.decisions["a"].startswith("lower than r")
    found = ask(clear | failed, names, maximum=6, rate=0.5)
    assert found.is_final and found.num_seeds == dict.fromkeys(names, 3)
    assert found.decisions == {"a": "on the front", "r": "dominated by a", "dead": "undecided", "nan": "undecided"}


def test_without_a_reference_that_completes_nothing_more_is_asked():
    found = ask(by_key({"a": [1.0, 1.1, 1.2], "r": [None] * 3}), ["a", "r"], maximum=9, reference="r")
    assert found == Progress({"a": 3, "r": 3}, {"a": "undecided", "r": "reference"}, True)


def test_one_common_seed_decides_nothing():
    values = by_key({"a": [1.0, None, 1.0], "r": [None, 5.0, 5.0]})
    found = ask(values, ["a", "r"], maximum=4, reference="r")
    assert not found.is_final and found.decisions["a"] == "undecided" and found.num_seeds == {"a": 4, "r": 4}


def test_a_look_waits_for_every_condition_that_it_needs():
    rows = {"clear": [1.0, 1.01, 1.02], "close": [5.0, 5.3, 4.9], "r": [5.1, 5.1, 5.2]}
    values = by_key(rows)
    before = ask({k: v for k, v in values.items() if k != ("r", 3)}, list(rows), maximum=5, rate=0.2, reference="r")
    assert before == Progress(dict.fromkeys(rows, 3), dict.fromkeys(rows, "undecided"), False)
    after = ask(values, list(rows), maximum=5, rate=0.2, reference="r")
    assert after.num_seeds == {"clear": 3, "close": 5, "r": 5} and not after.is_final
    assert after.decisions["clear"].startswith("lower") and after.decisions["close"] == "undecided"
    ended = values | by_key({"close": [*rows["close"], 5.0, 5.2], "r": [*rows["r"], None, 5.1]})
    assert ask(ended, list(rows), maximum=5, rate=0.2, reference="r").is_final


def test_what_is_dominated_is_not_tested_again_on_old_seeds():
    """p of j against c at 3 seeds is above the level of look 1, and below that of look 5, where j has no new seeds.

    Of three conditions, each of 3 x 2 one-sided tests for domination has a sixth of the level.
    """
    steps, noise = np.array([1.0, 1.1, 0.9]), np.array([(-1.0) ** k for k in range(17)])
    c = np.concatenate([np.zeros(3), noise])
    j = np.concatenate([-steps, np.zeros(17)])
    k = j - 0.001 * np.concatenate([[1.0, 1.01, 0.99], np.zeros(17)])
    values = by_key({"k": k.tolist(), "j": j.tolist(), "c": c.tolist()})
    spent = levels(looks(3, 20), 0.05)
    assert spent[0] / 3 < stats.ttest_rel(j[:3], c[:3]).pvalue < spent[4] / 3
    found = ask(values, ["k", "j", "c"], maximum=20)
    assert found.num_seeds == {"k": 20, "j": 3, "c": 20}
    assert found.decisions == {"k": "undecided", "j": "dominated by k", "c": "undecided"}


def front_by_definition(values: Values, names: Sequence[str], signs: Sequence[int], num_seeds: int) -> dict[str, str]:
    """Each verdict at a single look: one-sided tests one by one, and the front by its definition.

    Of each condition's .05 / C, the tests that show it dominated get 1 / (C - 1) each, those that show it better than
    another in one of O objectives 1 / O each. A dominated condition is no rival: it need not be got past.
    """
    num_others, num_objectives = len(names) - 1, len(signs)

    def is_lower(a: str, b: str, k: int, num_tests: int) -> bool:
        rows = [(values[a, s], values[b, s]) for s in range(1, num_seeds + 1)]
        common = [(signs[k] * x[k], signs[k] * y[k]) for x, y in rows if x and y]
        if len(common) < 2:
            return False
        test = stats.ttest_rel(*zip(*common, strict=True))
        return bool(test.statistic < 0 and test.pvalue / 2 <= 0.05 / len(names) / num_tests)

    alive = [a for a in names if any(values[a, s] for s in range(1, num_seeds + 1))]
    num = range(len(signs))
    pairs = list(itertools.permutations(alive, 2))
    dominated = {b for a, b in pairs if all(is_lower(a, b, k, num_others) for k in num)}
    past = {(a, b) for a, b in pairs if any(is_lower(a, b, k, num_objectives) for k in num)}
    verdicts = dict.fromkeys(names, "undecided")
    for a in alive:
        if a in dominated:
            verdicts[a] = "dominated"
        elif all((a, b) in past for b in alive if b not in dominated and b != a):
            verdicts[a] = "on the front"
    return verdicts


def test_the_front_is_that_of_its_definition():
    rng, counts = np.random.default_rng(3), {"undecided": 0, "dominated": 0, "on the front": 0}
    for _ in range(60):
        names, signs, num_seeds = list("abcdefg")[: rng.integers(2, 8)], (1, -1), int(rng.integers(4, 8))
        means = rng.integers(0, 4, (len(names), 2)) * 3.0
        values: Values = {}
        for i, name in enumerate(names):
            for s in range(1, num_seeds + 1):
                row = means[i] + rng.standard_normal(2) * rng.choice([0.01, 0.1, 1.0])
                values[name, s] = None if rng.random() < 0.1 else tuple(row)
        found = ask(values, names, objectives=(ERROR, SCORE), maximum=num_seeds, minimum=num_seeds).decisions
        expected = front_by_definition(values, names, signs, num_seeds)
        assert {name: verdict.split(" by ")[0] for name, verdict in found.items()} == expected
        for verdict in expected.values():
            counts[verdict] += 1
    assert min(counts.values()) > 20


def test_exact_points_have_their_front_at_once():
    """Equal points are on the front together; the score is maximised."""
    points = {"a": (1.0, 1.0), "b": (2.0, 5.0), "twin": (2.0, 5.0), "bad": (3.0, 5.0), "worse": (4.0, 0.0)}
    values = by_key({name: [row] * 3 for name, row in points.items()})
    found = ask(values, list(points), objectives=(ERROR, SCORE), maximum=9)
    assert found.is_final and set(found.num_seeds.values()) == {3}
    assert [found.decisions[name] for name in ("a", "b", "twin")] == ["on the front"] * 3
    assert found.decisions["bad"] == "dominated by b"
    assert found.decisions["worse"] in ("dominated by a", "dominated by b", "dominated by twin")


@pytest.mark.parametrize("reference", ["c0", None])
def test_a_driver_that_starts_again_gets_the_same_answer(reference):
    """Results come one by one in any order; nothing decided is taken back, nothing asked for less."""
    rng = np.random.default_rng(5)
    names, total = [f"c{i}" for i in range(6)], 12
    means = np.array([[0, 0], [0.2, 0.2], [4, 0], [0, 4], [5, 5], [-1, 9]])
    truth = sweep(rng, means, total, rng.standard_normal) | {("c4", 1): None, ("c2", 2): None}
    seen: Values = {}
    before = None
    while True:
        found = ask(seen, names, objectives=(ERROR, COST), maximum=total, reference=reference)
        if before:
            assert all(found.num_seeds[name] >= before.num_seeds[name] for name in names)
            assert all(v in ("undecided", found.decisions[name]) for name, v in before.decisions.items())
        if found.is_final:
            break
        due = [(name, s) for name in names for s in range(1, found.num_seeds[name] + 1) if (name, s) not in seen]
        assert due
        key = due[rng.integers(len(due))]
        seen[key], before = truth[key], found
    assert len(seen) == sum(found.num_seeds.values()) < len(truth)
    assert found == ask(truth, names, objectives=(ERROR, COST), maximum=total, reference=reference)


def sweep(rng, means, num_seeds: int, draw) -> Values:
    """Normal or other noise, and an effect of each seed that all conditions share; conditions c0, c1, ..."""
    means = np.asarray(means, dtype=float)
    shared = 2 * rng.standard_normal((1, num_seeds, means.shape[1]))
    table = means[:, None] + shared + draw((len(means), num_seeds, means.shape[1]))
    return {(f"c{i}", s + 1): tuple(table[i, s]) for i in range(len(means)) for s in range(num_seeds)}


def is_wrong(found: Progress, means: np.ndarray, reference: str | None) -> bool:
    """Whether any verdict is false; lower is better."""
    for i, name in enumerate(found.decisions):
        verdict = found.decisions[name].split(" (")[0]
        if reference and verdict in ("lower than c0", "higher than c0", "equal to c0"):
            truth = {-1: "lower", 0: "equal", 1: "higher"}[int(np.sign(means[i][0] - means[0][0]))]
            if not verdict.startswith(truth):
                return True
        above = [j for j in range(len(means)) if all(means[j] <= means[i]) and any(means[j] < means[i])]
        if (verdict == "on the front" and above) or (verdict.startswith("dominated by") and not above):
            return True
    return False


@pytest.mark.parametrize(
    ("reference", "means"),
    [
        ("c0", np.zeros((5, 1))),
        ("c0", np.array([[0.0], [0.0], [0.5], [2.0], [-4.0]])),
        (None, np.zeros((3, 1))),
        (None, np.array([[0, 50], [0.01, 50.01], [50, 0], [50.01, 0.01]])),
        (None, np.array([[0.0, 3.0], [0.0, 3.0], [3.0, 0.0], [3.2, 0.1], [9.0, 9.0]])),
    ],
)
def test_any_wrong_verdict_in_a_sweep_is_rarer_than_the_error_rate(reference, means):
    """An error rate of .2 so that a lost correction, for looks or for comparisons, shows in a thousand sweeps.

    The count may pass .2 of them by chance alone once in a thousand tries.
    """
    rng, num_sweeps, rate = np.random.default_rng(7), 1000, 0.2
    names, num_wrong, num_seeds = [f"c{i}" for i in range(len(means))], 0, 0
    for _ in range(num_sweeps):
        values = sweep(rng, means, 8, rng.standard_normal)
        found = ask(
            values, names, objectives=[ERROR, COST][: means.shape[1]], maximum=8, rate=rate, reference=reference
        )
        num_wrong += is_wrong(found, means, reference)
        num_seeds += sum(found.num_seeds.values())
    assert num_wrong <= stats.binom.ppf(0.999, num_sweeps, rate)
    assert num_seeds < 8 * len(means) * num_sweeps


def test_clear_cases_take_few_seeds():
    rng = np.random.default_rng(11)
    names, means = [f"c{i}" for i in range(5)], np.array([[0, 40.0], [40, 0], [60, 60], [80, 80], [20, 20]])
    for reference in ("c0", None):
        values = sweep(rng, means, 20, rng.standard_normal)
        found = ask(values, names, objectives=(ERROR, COST), maximum=20, reference=reference)
        assert found.is_final and "undecided" not in found.decisions.values()
        assert sum(found.num_seeds.values()) <= 0.5 * 5 * 20
