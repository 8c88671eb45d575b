"""The tables of comparisons: of pairs, and with sentences those at equal cost, beside controls, and over test items."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator.pareto.control_line import BesideLine
from orchestrator.pareto.equal_cost import EqualCost
from orchestrator.report.answers import Answers
from orchestrator.report.numerals import between, decimals, estimate, fixed, p_value, probability, signed, with_interval
from orchestrator.report.table import INTERVAL, Cell, Column, Table
from orchestrator.report.training_table import marked
from orchestrator.results.comparison import Comparison, is_not_worse
from orchestrator.results.lookup import place_of
from orchestrator.results.over_items import OverItems, Place, over_items
from orchestrator.results.study import Study
from orchestrator.statistics.pairwise import NAMES, ONE_CONDITION, UNPAIRED, Test
from orchestrator.statistics.summary import Summary
from search_spaces.sweep import Objective

_COLUMNS = (
    "a", "b", "metric", "a_mean", "a_std", "a_n", "b_mean", "b_std", "b_n", "is_paired", "difference", "low", "high",
    "is_certain", "welch_p", "permutation_p", "least_p", "p", "p_holm", "answer", "effect", "epsilon", "improvement",
    "shown", "seeds_needed", "can_decide", "warnings",
)  # fmt: skip


def comparison_table(answers: Answers) -> Table:
    """Every comparison in its order; those that the promised test decides are marked.

    Raw columns: the fields of `Comparison`, summaries as `_mean`, `_std` and `_n`, the interval as low and high.
    """
    found = answers.comparisons
    warnings = tuple(dict.fromkeys(warning for comparison in found for warning in comparison.warnings))
    against = f" against {found[0].b}" if len({comparison.b for comparison in found}) == 1 else ""
    rows: list[tuple[Cell, ...]] = []
    for c in found:
        a, b = c.summary_a, c.summary_b
        means = (a.mean, a.std, a.n, b.mean, b.std, b.n)
        difference = (c.is_paired, c.difference, *c.interval, c.is_certain)
        tests = (c.welch_p, c.permutation_p, c.least_p, c.p, c.p_holm, c.answer)
        effects = (c.effect, c.epsilon, c.improvement, c.shown, c.seeds_needed, c.can_decide)
        rows.append((c.a, c.b, c.metric, *means, *difference, *tests, *effects, "; ".join(c.warnings)))
    return Table(
        name=f"{answers.question.sweep}.comparisons",
        title=f"{answers.question.sweep}: comparisons{against}",
        columns=_COLUMNS,
        rows=tuple(rows),
        printed=_printed(answers, warnings, has_rivals=not against),
        marked=frozenset(i for i, comparison in enumerate(found) if comparison.answer in ("better", "worse")),
        notes=_notes(answers, warnings),
    )


def _printed(answers: Answers, warnings: Sequence[str], has_rivals: bool) -> tuple[Column, ...]:
    """The printed columns; `has_rivals` adds that of what is compared with, where it is not the same throughout."""
    found, study = answers.comparisons, answers.study
    groups = {metric: [c for c in found if c.metric == metric] for metric in dict.fromkeys(c.metric for c in found)}
    digits = {metric: decimals(_summaries(group)) for metric, group in groups.items()}
    finer = {metric: difference_decimals(group) for metric, group in groups.items()}
    needed = tuple(
        "" if math.isnan(c.p + c.interval.low) else "≥1,000" if c.seeds_needed is None else f"{c.seeds_needed:,}"
        for c in found
    )
    columns = [Column("condition", tuple(marked(study, c.a) for c in found), "a", False)]
    if has_rivals:
        columns.append(Column("against", tuple(marked(study, c.b) for c in found), "b", False))
    columns += [
        Column("metric", tuple(c.metric for c in found), "metric", False),
        Column("mean", tuple(estimate(c.summary_a, digits[c.metric]) for c in found), "a_mean"),
        Column("difference", tuple(signed(c.difference, finer[c.metric]) for c in found), "difference"),
        Column(INTERVAL, tuple(between(c.interval, finer[c.metric]) for c in found), "low"),
        Column("p", tuple(p_value(c.p) for c in found), "p"),
        Column("p (Holm)", tuple(p_value(c.p_holm) for c in found), "p_holm"),
        Column("answer", tuple(_answer(answers, c) for c in found), "answer", False),
        Column("smallest shown", tuple(fixed(c.shown, finer[c.metric]) for c in found), "shown"),
        Column("n needed", needed, "seeds_needed"),
        Column("effect g", tuple(signed(c.effect, 2) for c in found), "effect"),
        Column("ASO ε", tuple(fixed(c.epsilon, 2) for c in found), "epsilon"),
        Column("P(better)", tuple(probability(c.improvement) for c in found), "improvement"),
    ]
    if warnings:
        numbers = (", ".join(str(warnings.index(warning) + 1) for warning in c.warnings) for c in found)
        columns.append(Column("warnings", tuple(numbers), "warnings", False))
    return tuple(columns)


def difference_decimals(found: Sequence[Comparison]) -> int:
    """How many digits after the point differences in one metric have: by their intervals, else as the means."""
    differences = [with_interval(c.difference, c.interval) for c in found]
    if any(difference.std > 0 for difference in differences):
        return decimals(differences)
    return decimals(_summaries(found))


def _summaries(found: Sequence[Comparison]) -> set[Summary]:
    return {summary for comparison in found for summary in (comparison.summary_a, comparison.summary_b)}


def _answer(answers: Answers, found: Comparison) -> str:
    if is_not_worse(found, answers.question):
        return f"not worse by {answers.question.non_inferiority:g}"
    return found.answer if found.can_decide or found.answer != "undecided" else "cannot decide"


def _notes(answers: Answers, warnings: Sequence[str]) -> tuple[str, ...]:
    if not answers.comparisons:
        reference = answers.question.reference
        if not reference:
            return ("The sweep names no reference, so nothing is compared with one.",)
        return (f"Nothing is compared with the reference {reference}: it, or all else, has no complete replicate.",)
    num_tests = sum(not math.isnan(comparison.p) for comparison in answers.comparisons)
    family = "the one that says something" if num_tests == 1 else f"the {num_tests:,} that say something"
    if answers.num_tests > num_tests:
        family = f"the {answers.num_tests:,} tests of this page"
    instead = {UNPAIRED: NAMES["welch"], ONE_CONDITION: "a paired t-test"}
    others = " or ".join(test for warning, test in instead.items() if warning in warnings)
    test = NAMES[answers.question.test] + (f" (of {others} where a warning says so)" if others else "")
    return (
        f"p: of {test}; Holm over {family}. Bold: p (Holm) is at most 0.05, or the difference is certain.",
        "Smallest shown: the difference that so many seeds show with power 0.8. n needed: seeds that show the "
        "difference seen with power 0.8. Effect g: Hedges' g. ASO ε: almost stochastic order, a bound "
        "near 0 for the better one (with so few seeds a fifth of equal conditions is below 0.5). P(better): that a "
        "replicate beats one of the reference.",
        *(f"Warning {i}: {warning}" for i, warning in enumerate(warnings, 1)),
    )


_LINE_COLUMNS: Final = (
    "a", "cost_metric", "cost", "error_metric", "error", "line", "difference", "low", "high", "p", "p_holm", "answer",
    "num_better", "n", "both_low", "both_high", "num_groups",
)  # fmt: skip
_LINE_NOTE: Final = (
    "Line: what {controls} have at this cost, interpolated within each seed. n: seeds in which the cost lies between "
    "theirs. p: of Student's t over these seeds; Holm over the {number} tests."
)
_LINE_ITEM_NOTE: Final = "Over both: 95 % over seeds and groups of test items; p is over seeds alone."


def control_line_table(
    sweep: str,
    found: Sequence[BesideLine],
    controls: Sequence[str],
    objectives: Sequence[Objective],
    num_others: int = 0,
) -> Table:
    """One row for each point. Raw columns: the fields of `BesideLine`, and the metrics.

    Args:
        num_others: tests beside these that p is adjusted for.
    """
    number = num_others + sum(not math.isnan(one.p_holm) for one in found)
    note = _LINE_NOTE.format(controls=", ".join(controls), number=number)
    error, cost = objectives[0].metric, objectives[1].metric
    return Table(
        name=f"{sweep}.control_line",
        title=f"{sweep}: against controls of the same cost",
        columns=_LINE_COLUMNS,
        rows=tuple(
            (
                *(one.name, cost, one.cost, error, one.error, one.line, one.difference, *one.interval),
                *(one.p, one.p_holm, one.answer, one.num_better, one.num_seeds, *one.both, one.num_groups),
            )
            for one in found
        ),
        printed=_printed_line(found, error, cost) if found else (),
        marked=frozenset(i for i, one in enumerate(found) if one.answer != "undecided"),
        notes=(note, _LINE_ITEM_NOTE) if any(one.num_groups for one in found) else (note,),
    )


def control_line_sentence(found: BesideLine, objectives: Sequence[Objective]) -> str:
    """How a point stands beside its controls at its cost."""
    error, cost = objectives[0].metric, objectives[1].metric
    if not found.num_seeds:
        remedy = "name cheaper or more costly ones"
        return f"{found.name}: in no seed does its {cost} lie between those of the controls; {remedy}."
    digits = decimals([with_interval(found.difference, found.interval)])
    said = between(found.interval, digits) if found.num_seeds > 1 else ""
    interval = f", 95 % interval {said}" if said else ""
    both = between(found.both, digits)
    items = f" Over seeds and {found.num_groups:,} groups of test items {both}." if both else ""
    if found.is_certain:
        p = "nothing varies over the seeds, so it is certain"
    elif p_value(found.p_holm):
        p = f"p (Holm) {p_value(found.p_holm)}"
    elif found.num_seeds > 1:
        p = "the differences have no spread, which may be chance"
    else:
        p = "one seed has no spread"
    return (
        f"{found.name} against the controls at its {cost} of {found.cost:,.6g}: {found.answer}. Its {error} is "
        f"{found.error:.4g} and theirs {found.line:.4g}; difference {signed(found.difference, digits)}{interval}, "
        f"{p}, better in {found.num_better} of {found.num_seeds} seeds.{items}"
    )


def _printed_line(found: Sequence[BesideLine], error: str, cost: str) -> tuple[Column, ...]:
    digits = decimals([with_interval(one.difference, one.interval) for one in found if one.num_seeds > 1])
    of_costs = decimals([Summary(one.cost, math.nan, 1) for one in found])
    has_items = any(one.num_groups for one in found)
    return (
        Column("condition", tuple(one.name for one in found), "a", False),
        Column(cost, tuple(fixed(one.cost, of_costs) for one in found), "cost"),
        Column(error, tuple(fixed(one.error, digits) for one in found), "error"),
        Column("line", tuple(fixed(one.line, digits) for one in found), "line"),
        Column("difference", tuple(signed(one.difference, digits) for one in found), "difference"),
        Column(INTERVAL, tuple(between(one.interval, digits) for one in found), "low"),
        Column("p (Holm)", tuple(p_value(one.p_holm) for one in found), "p_holm"),
        *([Column("over both", tuple(between(one.both, digits) for one in found), "both_low")] if has_items else []),
        Column("answer", tuple(one.answer for one in found), "answer", False),
        Column("better in", tuple(f"{one.num_better} of {one.num_seeds}" for one in found), "num_better"),
    )


_COST_COLUMNS = (
    "a", "b", "cost_metric", "a_cost", "b_cost", "share_more", "error_metric", "error", "line", "better", "num_others",
)  # fmt: skip
_COST_NOTE = (
    "Of conditions that do not cost the same the more costly one may have less error because of its cost alone. Front "
    "there: what the interpolated front of the others has at this cost, nothing where none of them costs as little. "
    "P(better): that the condition is better than that front, over seeds; nothing where it costs less than all others "
    "in more than half of the draws. Pairs whose costs differ by over 2 %."
)
_LEFT = "Of the last {} pairs the front was not looked for: there are too many. `ponderay compare SWEEP A B` does it."


def equal_cost_table(answers: Answers) -> Table:
    """Every pair of unequal cost; of none, no rows.

    Raw columns: the fields of `EqualCost`, and share_more, by which a costs more than b. An empty line says that no
    other point costs as little, or without num_others that none was looked for.
    """
    found = answers.unequal_costs
    num_left = sum(math.isnan(one.line) for one in found)
    notes = (_COST_NOTE, *([_LEFT.format(f"{num_left:,}")] if num_left else []))
    return Table(
        name=f"{answers.question.sweep}.equal_cost",
        title=f"{answers.question.sweep}: at equal cost",
        columns=_COST_COLUMNS,
        rows=tuple(
            (
                *(one.a, one.b, one.cost_metric, one.cost_a, one.cost_b, share_more(one), one.error_metric, one.error),
                *(one.line if math.isfinite(one.line) else None, one.better, one.num_others),
            )
            for one in found
        ),
        printed=_printed_costs(found) if found else (),
        notes=notes if found else ("No conditions that are compared differ in cost by over 2 %.",),
    )


def equal_cost_sentence(found: EqualCost) -> str:
    """A sentence: that a pair does not cost the same, and how the first stands at its own cost."""
    share = abs(share_more(found))
    more = f"{'' if math.isinf(share) else f'{100 * share:.1f} % '}{'more' if found.cost_a > found.cost_b else 'less'}"
    costs = f"{found.cost_metric} {found.cost_a:,.6g} against {found.cost_b:,.6g}"
    said = f"Unequal cost: {found.a} costs {more} than {found.b} ({costs})."
    if math.isnan(found.line):
        return f"{said} Compare these two alone for the front at its cost."
    if math.isinf(found.line):
        none = "None of the other points costs as little" if found.num_others else "There is no other point to compare"
        return f"{said} {none}, so there is no front at its cost."
    at = f"the interpolated front of the other points has {found.error_metric} {found.line:.4g}"
    chance = f"P(better than that front) = {probability(found.better)} over seeds"
    if math.isnan(found.better):
        chance = "over seeds it mostly costs less than all of them, so there is no P(better than that front)"
    return f"{said} At its cost {at}, and it has {found.error:.4g}: {chance}."


def share_more(found: EqualCost) -> float:
    """The share of the second one's cost by which the first costs more; infinite where the second costs nothing."""
    return (found.cost_a - found.cost_b) / abs(found.cost_b) if found.cost_b else math.inf


def _printed_costs(found: Sequence[EqualCost]) -> tuple[Column, ...]:
    digits = _digits([value for one in found for value in (one.error, one.line)])
    of_costs = _digits([one.cost_a for one in found])
    lines = (one.line if math.isfinite(one.line) else None for one in found)
    columns = [Column("condition", tuple(one.a for one in found), "a", False)]
    if len({one.b for one in found}) > 1:
        columns.append(Column("against", tuple(one.b for one in found), "b", False))
    return (
        *columns,
        Column(found[0].cost_metric, tuple(fixed(one.cost_a, of_costs) for one in found), "a_cost"),
        Column("more, %", tuple(signed(100 * share_more(one), 1) for one in found), "share_more"),
        Column(found[0].error_metric, tuple(fixed(one.error, digits) for one in found), "error"),
        Column("front there", tuple(fixed(line, digits) for line in lines), "line"),
        Column("P(better)", tuple(probability(one.better) for one in found), "better"),
    )


def _digits(values: Sequence[float]) -> int:
    """Digits after the point of a column of such values."""
    return decimals([Summary(value, math.nan, 1) for value in values if math.isfinite(value)])


_ITEM_COLUMNS = (
    "a", "b", "metric", "n_a", "n_b", "num_groups", "num_items", "difference", "low", "high", "both_low", "both_high",
)  # fmt: skip
NOT_WHOLE: Final = "the items of some seeds were not kept"
_ITEM_NOTE = (
    "Over seeds: another training on the same test items may come out so. Over both: other test items too, of other "
    "groups (speakers, parts of a text); nobody can say less of data that nobody has heard. 95 %."
)


def found_over_items(study: Study, comparisons: Iterable[Comparison], test: Test) -> tuple[OverItems, ...]:
    """What is known by item of each compared pair, once; seeds are paired where the test of the pair is."""
    pairs = {(one.a, one.b): one.is_paired for one in comparisons if study.items.errors}
    places = {name: Place(name, *place_of(study, name)) for pair in pairs for name in pair}
    found: list[OverItems] = []
    for (a, b), has_same_seeds in pairs.items():
        is_paired = has_same_seeds and (test == "paired_permutation" or places[a].condition == places[b].condition)
        found += over_items(study, places[a], places[b], is_paired)
    return tuple(found)


def over_items_table(answers: Answers) -> Table:
    """Every compared pair whose replicates kept errors by test item; of none, no rows.

    Raw columns: a, b, metric, n_a and n_b (seeds), num_groups, num_items, difference (a - b), low and high (95 %, over
    seeds), both_low and both_high (over seeds and groups of test items).
    """
    found = found_over_items(answers.study, answers.comparisons, answers.question.test)
    intervals = [(one.seeds.interval(), one.both.interval()) for one in found]
    return Table(
        name=f"{answers.question.sweep}.over_items",
        title=f"{answers.question.sweep}: over seeds and test items",
        columns=_ITEM_COLUMNS,
        rows=tuple(
            (one.a, one.b, one.metric, one.n_a, one.n_b, one.num_groups, one.num_items, one.both.value, *seeds, *both)
            for one, (seeds, both) in zip(found, intervals, strict=True)
        ),
        printed=_printed_items(found) if found else (),
        notes=(_ITEM_NOTE,) if found else ("No errors by test item were kept.",),
    )


def over_items_sentence(found: OverItems) -> str:
    """The difference with both intervals, where it is of all seeds."""
    if not found.is_whole:
        return f"{found.a} against {found.b}, {found.metric} by test item: {NOT_WHOLE}."
    digits = decimals([with_interval(found.both.value, found.seeds.interval())])
    seeds, both = (between(one.interval(), digits) or "no interval" for one in (found.seeds, found.both))
    return (
        f"{found.a} against {found.b}, {found.metric} by test item: {signed(found.both.value, digits)}; over seeds "
        f"{seeds}, over seeds and {found.num_groups:,} groups of test items {both}."
    )


def _printed_items(found: tuple[OverItems, ...]) -> tuple[Column, ...]:
    digits = [decimals([with_interval(one.both.value, one.seeds.interval())]) for one in found]
    pairs = list(zip(found, digits, strict=True))
    texts = [
        (signed(one.both.value, places), between(one.seeds.interval(), places), between(one.both.interval(), places))
        if one.is_whole
        else ("", NOT_WHOLE, "")
        for one, places in pairs
    ]
    differences, over_seeds, over_both = zip(*texts, strict=True)
    return (
        Column("condition", tuple(one.a for one in found), "a", False),
        Column("against", tuple(one.b for one in found), "b", False),
        Column("metric", tuple(one.metric for one in found), "metric", False),
        Column("difference", differences, "difference"),
        Column("over seeds", over_seeds, "low"),
        Column("over both", over_both, "both_low"),
        Column("groups", tuple(f"{one.num_groups:,}" for one in found), "num_groups"),
    )
