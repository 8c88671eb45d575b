"""A metric against a number that a sweep varies: one series for each group of conditions that differ in it alone."""

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.results.points import columns_of
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.statistics.summary import Interval, Summary, mean_interval, summarise

LEAST: Final = 3
"""Values that make a series."""

EVALUATIONS: Final = "evaluations"


@dataclass(frozen=True)
class SeriesPoint:
    """A metric over the seeds of one condition under one evaluation; the interval of its mean is Student's, 95 %."""

    value: float
    summary: Summary
    interval: Interval


@dataclass(frozen=True)
class Series:
    """Points that differ in the varied number alone, by it."""

    name: str
    points: tuple[SeriesPoint, ...]


@dataclass(frozen=True)
class Varied:
    """A metric against a varied number.

    Attributes:
        path: of the config; `evaluations.NAME` where evaluations differ in it.
        references: the reference condition where it has no such number, with NaN for it, under each evaluation drawn.
    """

    path: str
    metric: str
    series: tuple[Series, ...]
    references: tuple[Series, ...] = ()


@dataclass(frozen=True)
class _Point:
    condition: str
    evaluation: str
    settings: Mapping[str, str]


def varied_paths(question: Question) -> tuple[str, ...]:
    """Config paths with three different numbers or more in conditions or evaluations that differ in nothing else."""
    points = list(_points(question.configs))
    paths = dict.fromkeys(path for point in points for path in point.settings)
    return tuple(path for path in paths if _groups(points, path))


def varied(study: Study, question: Question, metric: str, path: str) -> Varied | None:
    """The metric against the number at `path`; None where nothing is there to be drawn.

    Args:
        metric: a name, which is taken as fronts and comparisons take an objective's (`points.columns_of`), or
            `NAME@EVALUATION`.
    """
    evaluation = metric.partition("@")[2]
    if evaluation:
        columns = {evaluation: metric}
    else:
        columns = {name: column for name, (column,) in columns_of([metric], study.metrics()).items()}
    points = [one for one in _points(question.configs, columns) if _values(study, one, columns)]
    series = []
    for group in _groups(points, path):
        found = [_series_point(study, point, columns, float(point.settings[path])) for point in group]
        series.append(Series(_name(group, points, path), tuple(sorted(found, key=lambda one: one.value))))
    if not series:
        return None
    # The reference, in each evaluation in which it and a drawn point are tested.
    lines = [point for point in points if point.condition == question.reference and path not in _numbers(point)]
    if path.startswith(f"{EVALUATIONS}."):
        lines = lines[:1]  # the series go through evaluations
    references = tuple(
        Series(_name([point], points, path), (_series_point(study, point, columns, math.nan),)) for point in lines
    )
    return Varied(path, metric, tuple(series), references)


def of_objectives(study: Study, question: Question) -> tuple[Varied, ...]:
    """Each objective against each number that the sweep varies."""
    asked = ((objective.metric, path) for path in varied_paths(question) for objective in question.objectives)
    found = (varied(study, question, metric, path) for metric, path in asked)
    return tuple(one for one in found if one)


def _points(configs: Mapping[str, Mapping[str, str]], evaluations: Collection[str] | None = None) -> Iterator[_Point]:
    """Every condition under each of `evaluations`, by default without one and under those that its config lists.

    What a config says of an evaluation are settings of the point; of one that it does not list, as the `test` of a
    trainable without a list, it says nothing.
    """
    for condition, config in configs.items():
        own = {path: text for path, text in config.items() if path != EVALUATIONS}
        listed = _evaluations(config.get(EVALUATIONS, ""))
        for name in ("", *listed) if evaluations is None else evaluations:
            yield _Point(condition, name, own | listed.get(name, {}))


def _evaluations(text: str) -> dict[str, dict[str, str]]:
    """The fields of each evaluation by its name, from a config's text; what names evaluations is left out."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return {}
    calls = tree.elts if isinstance(tree, ast.Tuple) else []
    fields = [dict(_fields(call, "")) for call in calls if isinstance(call, ast.Call)]
    named = {one["name"]: one for one in fields if "name" in one}
    names = {*named, "None"}
    kept = {key for one in fields for key in one if key != "name" and any(_says(other, key, names) for other in fields)}
    return {name: {f"{EVALUATIONS}.{key}": one[key] for key in one if key in kept} for name, one in named.items()}


def _says(evaluation: Mapping[str, str], key: str, names: Collection[str]) -> bool:
    """Whether a field says something itself, and does not name another evaluation, or none."""
    value = evaluation.get(key, "None")
    return value not in names or value == evaluation.get("name")


def _fields(call: ast.Call, prefix: str) -> Iterator[tuple[str, str]]:
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Call):
            yield from _fields(keyword.value, f"{prefix}{keyword.arg}.")
        elif keyword.arg:
            text = ast.unparse(keyword.value)
            yield f"{prefix}{keyword.arg}", text[1:-1] if text[:1] in "'\"" else text


def _groups(points: Sequence[_Point], path: str) -> list[list[_Point]]:
    """Points that differ in a number at `path` alone, where there are three numbers or more."""
    found: dict[tuple[Any, ...], list[_Point]] = {}
    for point in points:
        if path in _numbers(point):
            others = tuple(sorted((key, text) for key, text in point.settings.items() if key != path))
            is_of_evaluation = path.startswith(f"{EVALUATIONS}.")
            key = (point.condition, others) if is_of_evaluation else (point.evaluation, others)
            found.setdefault(key, []).append(point)
    return [group for group in found.values() if len({float(point.settings[path]) for point in group}) >= LEAST]


def _numbers(point: _Point) -> set[str]:
    return {path for path, text in point.settings.items() if _is_number(text)}


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _values(study: Study, point: _Point, columns: Mapping[str, str]) -> tuple[float, ...]:
    column = columns[point.evaluation]
    recorded = study.of(point.condition) if point.condition in study.conditions else ()
    found = (one.metrics.get(column, math.nan) for one in recorded if one.state == "complete")
    return tuple(value for value in found if math.isfinite(value))


def _series_point(study: Study, point: _Point, columns: Mapping[str, str], value: float) -> SeriesPoint:
    values = _values(study, point, columns)
    return SeriesPoint(value, summarise(values), mean_interval(values))


def _name(group: Sequence[_Point], points: Sequence[_Point], path: str) -> str:
    """What the conditions of a group have in common in their names, and their evaluation where there are several."""
    parts = group[0].condition.split(",")
    common = [part for part in parts if all(part in point.condition.split(",") for point in group)]
    evaluations = {point.evaluation for point in group}
    if len(evaluations) == 1 and len({point.evaluation for point in points}) > 1:
        common += [f"@{name}" for name in evaluations if name]
    return ",".join(common).replace(",@", "@") or path
