"""The command `curve`: any metric against a number that the sweep varies."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import Smoke, SweepName, Values, Where, ask, find_recorded
from orchestrator.console.printing import Format, OutputFormat, out, print_rows
from orchestrator.console.spinner import spinner
from search_spaces.known_names import known_names
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.results.question import Question
    from orchestrator.results.study import Study
    from orchestrator.results.varied import SeriesPoint, Varied


def curve(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    where: Where = None,
    metric: Annotated[
        str | None, typer.Option(help="A metric, or METRIC@EVALUATION; default: the sweep's first objective.")
    ] = None,
    over: Annotated[
        str | None, typer.Option(metavar="PATH", help="The config path of the number; default: the first that varies.")
    ] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Print any metric against a number that the sweep varies over three values or more, and draw it as PNG.

    One line stands for the conditions that differ in this number alone. json and csv have the columns path, metric,
    group, value (null for the reference where it has no such number), mean, std, n, low and high (95 %).
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.figure.analysis import file_name
    from orchestrator.report.figure.varied import draw, varied_figure

    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    study, question = ask(sweep, settings, where, None)
    found = _found(study, question, metric or question.objectives[0].metric, over)
    rows = _rows(found) if format is not Format.table else [_short(row) for row in _rows(found)]
    print_rows(rows, format, f"{sweep.name}: {found.metric} against {found.path}", whole=("group",))
    file = settings.figures / file_name(f"{sweep.name}.{found.metric.replace('@', '_at_')}", f"over.{found.path}")
    with spinner("Drawing"):
        draw(varied_figure(found), sweep.name, file)
    if format is Format.table:
        out.print(f"Figure: {file}", soft_wrap=True, markup=False)


def _found(study: "Study", question: "Question", metric: str, over: str | None) -> "Varied":
    from orchestrator.results.varied import varied, varied_paths

    paths = varied_paths(question)
    if not paths:
        rule = "must vary a number over three values or more in listed conditions or evaluations, all else equal"
        raise InputError(f"{question.sweep} {rule}, but does not.")
    path = over or paths[0]
    if path not in paths:
        raise InputError(f"--over must be a number that {question.sweep} varies, but got {path!r}: {', '.join(paths)}.")
    known = dict.fromkeys(part for name in study.metrics() for part in (name, name.partition("@")[0]))
    if metric not in known:
        raise InputError(f"{question.sweep} has no metric {metric!r}; it has {known_names(known, metric)}.")
    found = varied(study, question, metric, path)
    if found is None:
        raise InputError(f"{question.sweep} has no {metric} of three values of {path} yet; run more of it.")
    return found


def _rows(found: "Varied") -> list[dict[str, Any]]:
    return [_row(found, series.name, point) for series in (*found.series, *found.references) for point in series.points]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """For people: six digits, nothing where there is no number, and no columns that the title says."""
    texts = {
        key: f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell for key, cell in row.items()
    }
    return {key: text for key, text in texts.items() if key not in ("path", "metric")}


def _row(found: "Varied", group: str, point: "SeriesPoint") -> dict[str, Any]:
    mean, std, n = point.summary.mean, point.summary.std, point.summary.n
    numbers = {
        "value": point.value,
        "mean": mean,
        "std": std,
        "n": n,
        "low": point.interval.low,
        "high": point.interval.high,
    }
    plain = {key: number if math.isfinite(number) else None for key, number in numbers.items()}
    return {"path": found.path, "metric": found.metric, "group": group} | plain
