"""Tables that a note asks for: further metrics, differences within the same replicates, and analyses of replicates."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from orchestrator.pareto.control_line import beside_line
from orchestrator.report.control_line_table import control_line_table
from orchestrator.report.numerals import between, decimals, estimate, fixed, p_value, signed, with_interval
from orchestrator.report.table import INTERVAL, Column, Table
from orchestrator.results.named import points_named
from orchestrator.results.points import points_of
from orchestrator.results.study import Study
from orchestrator.statistics import student
from orchestrator.statistics.intervals import mean_interval, of_estimates
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import summarise
from search_spaces.sweep import Objective
from trainables.errors import InputError

ASKED: Final = re.compile(r"^\{(metrics|differences|line|analysis) (.+)\}$", re.MULTILINE)
"""In a line `{metrics NAME NAME}`, `{differences CONDITION NAME against CONDITION NAME; ...}`, `{analysis FILE}`, or
`{line POINT; POINT against CONTROL; CONTROL}`: points, as `compare` names them, against controls of their cost.
"""


def asked_table(study: Study, objectives: Sequence[Objective], kind: str, asked: str, folder: Path) -> Table:
    """What a line of a note in `folder` asks for, of a study whose objectives begin with an error and a cost.

    Raises:
        InputError: if no complete replicate has one of the metrics.
    """
    if kind == "analysis":
        return analysis_table(folder / asked)
    if kind == "line":
        return line_table(study, objectives, *(names.split("; ") for names in asked.split(" against ")))
    return metric_table(study, asked.split()) if kind == "metrics" else difference_table(study, asked.split("; "))


def line_table(study: Study, objectives: Sequence[Objective], names: Sequence[str], controls: Sequence[str]) -> Table:
    """Points against the line through controls, as `ponderay compare SWEEP --line CONTROL` has it."""
    every = points_of(study, objectives)
    points, beside = (
        [point for one in given for point in points_named(study, every, one)] for given in (names, controls)
    )
    return control_line_table(study.sweep, beside_line(points, beside, objectives), controls, objectives)


def metric_table(study: Study, names: Sequence[str]) -> Table:
    """Mean, standard deviation and 95 % interval of each metric, by condition; empty where a condition has none."""
    found = {name: [_values(study, condition, name) for condition in study.conditions] for name in names}
    for name, conditions in found.items():
        if not any(conditions):
            raise InputError(f"{study.sweep}: no complete replicate has the metric {name!r}.")
    kept = [i for i in range(len(study.conditions)) if any(conditions[i] for conditions in found.values())]
    columns = [Column("condition", tuple(study.conditions[i] for i in kept), "condition", False)]
    for name, conditions in found.items():
        columns += _metric_columns(name, [list(conditions[i].values()) for i in kept])
    counts = tuple(_counts([len(conditions[i]) for conditions in found.values()]) for i in kept)
    return _printed(f"{study.sweep}: {', '.join(names)}", [*columns, Column("n", counts, "n")])


def difference_table(study: Study, pairs: Sequence[str]) -> Table:
    """Differences paired by seed: interval and test of their mean, and the smallest and largest as shares.

    A share is of the size of what is compared with, so that it has the sign of its difference; where one of these is 0
    there is none.
    """
    found = [_difference(study, *pair.split(" against ")) for pair in pairs]
    p_values = holm([float(student.two_sided_p(one.estimate)) for one in found])
    rows = [_difference_row(one, p) for one, p in zip(found, p_values, strict=True)]
    headings = ("what", "against", "difference", INTERVAL, "p (Holm)", "least to most, %", "n")
    columns = [Column(heading, texts, heading, i > 1) for i, (heading, texts) in enumerate(_by_column(headings, rows))]
    num_tests = sum(not math.isnan(p) for p in p_values)
    note = f"p: of Student's t over the differences, paired by seed; Holm over the {num_tests} tests."
    return _printed(f"{study.sweep}: differences, paired by seed", columns, (note,))


def analysis_table(file: Path) -> Table:
    """Mean, standard deviation and 95 % interval over seeds of what `ponderay analyse --each --format csv` wrote.

    The columns before `seed` name a row; those behind it are measures.
    """
    with file.open(encoding="utf-8", newline="") as stream:
        heading, *lines = csv.reader(stream)
    at = heading.index("seed")
    rows: dict[tuple[str, ...], list[list[str]]] = {}
    for line in lines:
        rows.setdefault(tuple(line[:at]), []).append(line)
    columns = [Column(name, tuple(row[i] for row in rows), name, False) for i, name in enumerate(heading[:at])]
    values = [[_finite([one[i] for one in found]) for found in rows.values()] for i in range(at + 1, len(heading))]
    for measure, of_rows in zip(heading[at + 1 :], values, strict=True):
        columns += _metric_columns(measure, of_rows)
    columns.append(Column("n", tuple(_counts([len(one) for one in row]) for row in zip(*values, strict=True)), "n"))
    return _printed(f"{file.stem}: of each replicate, over seeds", columns)


def _finite(cells: Sequence[str]) -> list[float]:
    """The numbers of cells, yes being 1 and no 0; nothing stands for no number."""
    found = [float({"True": "1", "False": "0", "": "nan"}.get(cell, cell)) for cell in cells]
    return [value for value in found if math.isfinite(value)]


def _counts(numbers: Sequence[int]) -> str:
    """How many seeds have the metrics; each number, in order, where they differ."""
    return ", ".join(map(str, numbers if len(set(numbers)) > 1 else numbers[:1]))


def _metric_columns(name: str, conditions: Sequence[Sequence[float]]) -> list[Column]:
    summaries = [summarise(values) if values else None for values in conditions]
    intervals = [mean_interval(values) if values else None for values in conditions]
    digits = decimals([summary for summary in summaries if summary])
    return [
        Column(name, tuple(estimate(summary, digits) for summary in summaries), name),
        Column(INTERVAL, tuple(between(one, digits) if one else "" for one in intervals), name),
    ]


class _Difference(NamedTuple):
    """Of one condition and metric from another; `shares` of the size of the other's are in per cent."""

    what: str
    against: str
    estimate: student.Estimates
    shares: Sequence[float]
    num_seeds: int


def _difference(study: Study, what: str, against: str) -> _Difference:
    a, b = (_values(study, *name.rsplit(" ", 1)) for name in (what, against))
    seeds = sorted(a.keys() & b.keys())
    if not seeds:
        raise InputError(f"{study.sweep}: no seed has both {what!r} and {against!r}.")
    shares = [100 * (a[seed] - b[seed]) / abs(b[seed]) for seed in seeds] if all(b[seed] for seed in seeds) else []
    ours, theirs = (np.array([values[seed] for seed in seeds], np.float64) for values in (a, b))
    return _Difference(what, against, student.of_paired_difference(ours, theirs), shares, len(seeds))


def _difference_row(found: _Difference, p: float) -> tuple[str, ...]:
    mean, interval, shares = float(found.estimate.value), of_estimates(found.estimate, 0.95), found.shares
    digits = decimals([with_interval(mean, interval)])
    ends = f"{fixed(min(shares), 1)} to {fixed(max(shares), 1)}" if shares else ""
    tested = signed(mean, digits), between(interval, digits), p_value(p)
    return found.what, found.against, *tested, ends, str(found.num_seeds)


def _values(study: Study, condition: str, metric: str) -> Mapping[int, float]:
    """The finite ones of complete replicates, by seed; as `Study.values` has them."""
    complete = [one for one in study.replicates if one.condition == condition and one.state == "complete"]
    return {one.seed: one.metrics[metric] for one in complete if math.isfinite(one.metrics.get(metric, math.nan))}


def _by_column(headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    return list(zip(headings, zip(*rows, strict=True), strict=True))


def _printed(title: str, columns: Sequence[Column], notes: tuple[str, ...] = ()) -> Table:
    rows = tuple(zip(*(column.texts for column in columns), strict=True))
    return Table(title, title, tuple(column.heading for column in columns), rows, tuple(columns), notes=notes)
