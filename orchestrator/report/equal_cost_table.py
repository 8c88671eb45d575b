"""Compared conditions that do not cost the same, as a table and as sentences: each beside the front at its own cost."""

import math
from collections.abc import Sequence

from orchestrator.pareto.equal_cost import EqualCost
from orchestrator.report.answers import Answers
from orchestrator.report.numerals import decimals, fixed, probability, signed
from orchestrator.report.table import Column, Table
from orchestrator.statistics.summary import Summary

_COLUMNS = (
    "a", "b", "cost_metric", "a_cost", "b_cost", "share_more", "error_metric", "error", "line", "better", "num_others",
)  # fmt: skip
_NOTE = (
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
    notes = (_NOTE, *([_LEFT.format(f"{num_left:,}")] if num_left else []))
    return Table(
        name=f"{answers.question.sweep}.equal_cost",
        title=f"{answers.question.sweep}: at equal cost",
        columns=_COLUMNS,
        rows=tuple(
            (
                *(one.a, one.b, one.cost_metric, one.cost_a, one.cost_b, share_more(one), one.error_metric, one.error),
                *(one.line if math.isfinite(one.line) else None, one.better, one.num_others),
            )
            for one in found
        ),
        printed=_printed(found) if found else (),
        notes=notes if found else ("No conditions that are compared differ in cost by over 2 %.",),
    )


def equal_cost_sentence(found: EqualCost) -> str:
    """That a pair does not cost the same, and how the first stands at its own cost."""
    share = abs(share_more(found))
    more = f"{'' if math.isinf(share) else f'{share:.1%} '}{'more' if found.cost_a > found.cost_b else 'less'}"
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


def _printed(found: Sequence[EqualCost]) -> tuple[Column, ...]:
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
