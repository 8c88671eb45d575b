"""Points beside the line through controls, as a table and as sentences."""

import math
from collections.abc import Sequence
from typing import Final

from orchestrator.pareto.control_line import BesideLine
from orchestrator.report.numerals import between, decimals, fixed, p_value, signed, with_interval
from orchestrator.report.table import INTERVAL, Column, Table
from orchestrator.statistics.summary import Summary
from search_spaces.sweep import Objective

_COLUMNS: Final = (
    "a", "cost_metric", "cost", "error_metric", "error", "line", "difference", "low", "high", "p", "p_holm", "answer",
    "num_better", "n",
)  # fmt: skip
_NOTE: Final = (
    "Line: what {controls} have at this cost, interpolated within each seed. n: seeds in which the cost lies between "
    "theirs. p: of Student's t over these seeds; Holm over the {number} tests."
)


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
    note = _NOTE.format(controls=", ".join(controls), number=number)
    error, cost = objectives[0].metric, objectives[1].metric
    return Table(
        name=f"{sweep}.control_line",
        title=f"{sweep}: against controls of the same cost",
        columns=_COLUMNS,
        rows=tuple(
            (
                *(one.name, cost, one.cost, error, one.error, one.line, one.difference, *one.interval),
                *(one.p, one.p_holm, one.answer, one.num_better, one.num_seeds),
            )
            for one in found
        ),
        printed=_printed(found, error, cost) if found else (),
        marked=frozenset(i for i, one in enumerate(found) if one.answer != "undecided"),
        notes=(note,),
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
    p = (
        "nothing varies over the seeds, so it is certain"
        if found.is_certain
        else f"p (Holm) {p_value(found.p_holm) or 'none'}"
    )
    return (
        f"{found.name} against the controls at its {cost} of {found.cost:,.6g}: {found.answer}. Its {error} is "
        f"{found.error:.4g} and theirs {found.line:.4g}; difference {signed(found.difference, digits)}{interval}, "
        f"{p}, better in {found.num_better} of {found.num_seeds} seeds."
    )


def _printed(found: Sequence[BesideLine], error: str, cost: str) -> tuple[Column, ...]:
    digits = decimals([with_interval(one.difference, one.interval) for one in found if one.num_seeds > 1])
    of_costs = decimals([Summary(one.cost, math.nan, 1) for one in found])
    return (
        Column("condition", tuple(one.name for one in found), "a", False),
        Column(cost, tuple(fixed(one.cost, of_costs) for one in found), "cost"),
        Column(error, tuple(fixed(one.error, digits) for one in found), "error"),
        Column("line", tuple(fixed(one.line, digits) for one in found), "line"),
        Column("difference", tuple(signed(one.difference, digits) for one in found), "difference"),
        Column(INTERVAL, tuple(between(one.interval, digits) for one in found), "low"),
        Column("p (Holm)", tuple(p_value(one.p_holm) for one in found), "p_holm"),
        Column("answer", tuple(one.answer for one in found), "answer", False),
        Column("better in", tuple(f"{one.num_better} of {one.num_seeds}" for one in found), "num_better"),
    )
