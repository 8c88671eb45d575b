"""The table of comparisons: differences, tests, effects, and what so many seeds can show."""

import math
from collections.abc import Sequence

from orchestrator.report.answers import Answers
from orchestrator.report.numerals import between, decimals, estimate, fixed, p_value, probability, signed, with_interval
from orchestrator.report.table import INTERVAL, Cell, Column, Table
from orchestrator.report.training_table import marked
from orchestrator.results.comparison import Comparison, is_not_worse
from orchestrator.statistics.summary import Summary

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
    return Table(
        name=f"{answers.question.sweep}.comparisons",
        title=f"{answers.question.sweep}: comparisons{against}",
        columns=_COLUMNS,
        rows=tuple(_row(comparison) for comparison in found),
        printed=_printed(answers, warnings, has_rivals=not against),
        marked=frozenset(i for i, comparison in enumerate(found) if comparison.answer in ("better", "worse")),
        notes=_notes(answers, warnings),
    )


def _row(found: Comparison) -> tuple[Cell, ...]:
    a, b = found.summary_a, found.summary_b
    means = (a.mean, a.std, a.n, b.mean, b.std, b.n)
    tests = (found.welch_p, found.permutation_p, found.least_p, found.p, found.p_holm, found.answer)
    effects = (found.effect, found.epsilon, found.improvement, found.shown, found.seeds_needed, found.can_decide)
    difference = (found.is_paired, found.difference, *found.interval, found.is_certain)
    return (found.a, found.b, found.metric, *means, *difference, *tests, *effects, "; ".join(found.warnings))


def _printed(answers: Answers, warnings: Sequence[str], has_rivals: bool) -> tuple[Column, ...]:
    """The printed columns; `has_rivals` adds that of what is compared with, where it is not the same throughout."""
    found, study = answers.comparisons, answers.study
    groups = {metric: [c for c in found if c.metric == metric] for metric in dict.fromkeys(c.metric for c in found)}
    digits = {metric: decimals(_summaries(group)) for metric, group in groups.items()}
    finer = {metric: difference_decimals(group) for metric, group in groups.items()}
    needed = tuple(
        "" if math.isnan(c.p) else "≥1,000" if c.seeds_needed is None else f"{c.seeds_needed:,}" for c in found
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
    family = f"the {num_tests:,} that say something"
    if answers.num_tests > num_tests:
        family = f"the {answers.num_tests:,} tests of this page"
    test = {"welch": "Welch's t-test", "paired_permutation": "the exact paired permutation test"}
    return (
        f"p: of {test[answers.question.test]}; Holm over {family}. Bold: p (Holm) is at "
        "most 0.05, or the difference is certain.",
        "Smallest shown: the difference that so many seeds show with power 0.8. n needed: seeds that show the "
        "difference seen with power 0.8. Effect g: Hedges' g. ASO ε: almost stochastic order, a bound "
        "near 0 for the better one (with so few seeds a fifth of equal conditions is below 0.5). P(better): that a "
        "replicate beats one of the reference.",
        *(f"Warning {i}: {warning}" for i, warning in enumerate(warnings, 1)),
    )
