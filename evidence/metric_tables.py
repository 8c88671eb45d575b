"""Tables that a note asks for: further metrics, differences within the same replicates, and analyses of replicates."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from orchestrator.pareto.control_line import BesideLine, beside_line
from orchestrator.report.comparison_table import control_line_table
from orchestrator.report.numerals import between, decimals, estimate, fixed, p_value, signed, with_interval
from orchestrator.report.table import INTERVAL, Column, Table
from orchestrator.results.lookup import find_points
from orchestrator.results.points import points_of
from orchestrator.results.study import Study
from orchestrator.statistics import student
from orchestrator.statistics.pairwise import NAMES, Groups, Test
from orchestrator.statistics.significance import holm
from orchestrator.statistics.summary import mean_interval, of_estimates, summarise
from search_spaces.sweep import Objective
from trainables.errors import InputError

ASKED: Final = re.compile(r"^\{(metrics|differences|line|analysis) (.+)\}$", re.MULTILINE)
"""In a line `{metrics NAME NAME}`, `{differences CONDITION NAME against CONDITION NAME; ...}`, `{analysis FILE}`, or
`{line POINT; POINT against CONTROL; CONTROL}`: points, as `compare` names them, against controls of their cost.
"""


@dataclass(frozen=True)
class Family:
    """How a page's tables of differences are tested.

    Attributes:
        test: of two conditions, as the sweep promises it. None: by Student's t over pairs of a seed, each table with a
            family of its own, as the notes of bundles before format 6 were written.
        beside: p-values of the other tests on the page, which are adjusted together.
    """

    test: Test | None = None
    beside: tuple[float, ...] = ()


def asked_table(
    study: Study, objectives: Sequence[Objective], kind: str, asked: str, folder: Path, family: Family = Family()
) -> Table:
    """What a line of a note in `folder` asks for, of a study whose objectives begin with an error and a cost.

    Raises:
        InputError: if no complete replicate has one of the metrics.
    """
    if kind == "analysis":
        return analysis_table(folder / asked)
    if kind == "line":
        points, controls = (names.split("; ") for names in asked.split(" against "))
        found = _beside(study, objectives, points, controls, family.beside)
        return control_line_table(study.sweep, found, controls, objectives, len(family.beside))
    if kind == "metrics":
        return metric_table(study, asked.split())
    return difference_table(study, asked.split("; "), family)


def p_values(study: Study, objectives: Sequence[Objective], kind: str, asked: str, test: Test) -> list[float]:
    """The p-values, not adjusted, of a table that a line of a note asks for; none of a table without tests."""
    if kind == "differences":
        return [_difference(study, test, *pair.split(" against ")).p for pair in asked.split("; ")]
    if kind == "line":
        points, controls = (names.split("; ") for names in asked.split(" against "))
        return [one.p for one in _beside(study, objectives, points, controls)]
    return []


def _beside(
    study: Study,
    objectives: Sequence[Objective],
    names: Sequence[str],
    controls: Sequence[str],
    others: Sequence[float] = (),
) -> tuple[BesideLine, ...]:
    every = points_of(study, objectives)
    points, beside = (
        [point for one in given for point in find_points(study, every, one)] for given in (names, controls)
    )
    return beside_line([(point, beside) for point in points], objectives, every, (), others, study.items)


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


def difference_table(study: Study, pairs: Sequence[str], family: Family = Family()) -> Table:
    """Differences: interval and test of their mean, and, where they are paired by seed, the least and most as shares.

    A share is of the size of what is compared with, so that it has the sign of its difference; where one of these is 0
    there is none. Two metrics or evaluations of one condition are of the same replicates, and always paired.
    """
    found = [_difference(study, family.test, *pair.split(" against ")) for pair in pairs]
    every = [*(one.p for one in found), *family.beside]
    rows = [_difference_row(one, p) for one, p in zip(found, holm(every)[: len(found)], strict=True)]
    headings = ("what", "against", "difference", INTERVAL, "p (Holm)", "least to most, %", "n")
    columns = [Column(heading, texts, heading, i > 1) for i, (heading, texts) in enumerate(_by_column(headings, rows))]
    num_tests = sum(not math.isnan(p) for p in every)
    by = "p: of Student's t over the differences, paired by seed; Holm over the {} tests."
    if family.test is not None:
        by = f"p: of {NAMES[family.test]}, of the same replicates a paired t-test; Holm over the page's {{}} tests."
    title = "differences" if family.test == "welch" else "differences, paired by seed"
    return _printed(f"{study.sweep}: {title}", columns, (by.format(num_tests),))


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
    """The difference of one condition and metric from another; `shares` of the size of the other's are in per cent."""

    what: str
    against: str
    estimate: student.Estimates
    p: float
    shares: Sequence[float]
    num_seeds: int


def _difference(study: Study, test: Test | None, what: str, against: str) -> _Difference:
    a, b = (_values(study, *name.rsplit(" ", 1)) for name in (what, against))
    seeds, is_one_condition = sorted(a.keys() & b.keys()), what.rsplit(" ", 1)[0] == against.rsplit(" ", 1)[0]
    if test is None or is_one_condition or (test == "paired_permutation" and a.keys() == b.keys()):
        if not seeds:
            raise InputError(f"{study.sweep}: no seed has both {what!r} and {against!r}.")
        shares = [100 * (a[seed] - b[seed]) / abs(b[seed]) for seed in seeds] if all(b[seed] for seed in seeds) else []
        ours, theirs = (np.array([values[seed] for seed in seeds], np.float64) for values in (a, b))
        estimate = student.of_paired_difference(ours, theirs)
        p = float(student.two_sided_p(estimate))
        if test is not None and not is_one_condition:
            p = float(Groups(ours[None], theirs[None], is_paired=True).p(test)[0])
        return _Difference(what, against, estimate, p, shares, len(seeds))
    if not (a and b):
        raise InputError(f"{study.sweep}: no complete replicate has {what if b else against!r}.")
    ours, theirs = (np.array([values[seed] for seed in sorted(values)], np.float64) for values in (a, b))
    estimate = student.of_unpaired_difference(ours, theirs)
    return _Difference(what, against, estimate, float(student.two_sided_p(estimate)), [], min(len(a), len(b)))


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
