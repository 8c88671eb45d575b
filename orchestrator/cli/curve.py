"""The command `curve`: any metric against a number that the sweep varies."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import Smoke, SweepName, Values, Where, ask, find_recorded
from orchestrator.cli.paper_options import (
    PAPER_WIDTH,
    Labels,
    Log,
    LogAxes,
    Output,
    OutputFormat,
    PaperFormat,
    Size,
    parse_labels,
    refuse_without_figure,
)
from orchestrator.console.printing import Format, out, print_rows
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
    format: OutputFormat = PaperFormat.table,
    log: Log = LogAxes.none,
    size: Size = PAPER_WIDTH,
    label: Labels = None,
    output: Output = None,
) -> None:
    """Print any metric against a number that the sweep varies over three values or more, and draw it as PNG.

    One line stands for the conditions that differ in this number alone. json and csv have the columns path, metric,
    group, value (null for the reference where it has no such number), mean, std, n, low and high (95 %). With --format
    pdf, svg or png it draws a figure for a paper instead.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.figure.analysis import file_name
    from orchestrator.report.figure.varied import draw, varied_figure

    output = refuse_without_figure(format, log, size, label, output)
    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    study, question = ask(sweep, settings, where, None)
    chosen = _varied(study, question, metric or question.objectives[0].metric, over, sweep.search is not None)
    name_of_metric = f"{sweep.name}.{chosen.metric.replace('@', '_at_')}"
    if format.printed is None:
        from orchestrator.report.figure.paper import paper_curve, save_figure

        own = settings.figures / file_name(name_of_metric, f"over.{chosen.path}.paper")
        file = output or own.with_suffix(f".{format.value}")
        save_figure(paper_curve(chosen, log.value, size, parse_labels(label)), file)
        out.print(f"Figure: {file}", soft_wrap=True, markup=False)
        return
    lines = (*chosen.series, *chosen.references)
    rows = [_row(chosen, line.name, point) for line in lines for point in line.points]
    if format.printed is Format.table:  # six digits, nothing where there is no number, no columns that the title says
        rows = [
            {
                key: f"{cell:.6g}" if isinstance(cell, float) else "" if cell is None else cell
                for key, cell in row.items()
                if key not in ("path", "metric")
            }
            for row in rows
        ]
    print_rows(rows, format.printed, f"{sweep.name}: {chosen.metric} against {chosen.path}", whole=("group",))
    file = settings.figures / file_name(name_of_metric, f"over.{chosen.path}")
    with spinner("Drawing"):
        draw(varied_figure(chosen), sweep.name, file)
    if format.printed is Format.table:
        if pruned := {one.condition for one in study.replicates if one.state == "pruned"}:
            note = f"The search stopped {len(pruned):,} of {len(study.conditions):,} conditions early"
            out.print(f"{note}, which have no value here; the report draws what they ran, by step.")
        out.print(f"Figure: {file}", soft_wrap=True, markup=False)


def _varied(study: "Study", question: "Question", metric: str, over: str | None, is_search: bool) -> "Varied":
    from orchestrator.results.varied import varied, varied_paths

    question = replace(question, configs=question.configs or study.configs)  # a search lists none before it has run
    paths = varied_paths(question)
    if not paths and is_search:
        rule = "is a search that draws several numbers at once, so no condition differs from others in one number alone"
        ways = (
            "`ponderay importance` says which number matters, and `ponderay report` draws its learning curves by step"
        )
        raise InputError(f"{question.sweep} {rule}. {ways}.")
    if not paths:
        rule = "must vary a number over three values or more in listed conditions or evaluations, all else equal"
        raise InputError(f"{question.sweep} {rule}, but does not.")
    path = over or paths[0]
    if path not in paths:
        raise InputError(f"--over must be a number that {question.sweep} varies, but got {path!r}: {', '.join(paths)}.")
    known = dict.fromkeys(part for name in study.metrics() for part in (name, name.partition("@")[0]))
    if metric not in known:
        raise InputError(f"{question.sweep} has no metric {metric!r}; it has {known_names(known, metric)}.")
    result = varied(study, question, metric, path)
    if result is None:
        raise InputError(f"{question.sweep} has no {metric} of three values of {path} yet; run more of it.")
    return result


def _row(chosen: "Varied", group: str, point: "SeriesPoint") -> dict[str, Any]:
    numbers = {"value": point.value} | vars(point.summary) | point.interval._asdict()
    plain = {key: number if math.isfinite(number) else None for key, number in numbers.items()}
    return {"path": chosen.path, "metric": chosen.metric, "group": group} | plain
