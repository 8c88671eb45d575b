"""The command `pareto`: the front of error against cost, and how sure it is."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.cli.options import ReferenceName, Smoke, SweepName, Values, Where, ask, find_recorded, storing
from orchestrator.cli.paper_options import (
    PAPER_WIDTH,
    Labels,
    Log,
    LogAxes,
    Only,
    Output,
    OutputFormat,
    PaperFormat,
    Size,
    parse_labels,
    refuse_without_figure,
)
from orchestrator.console.printing import Format, out, path_from_here, say
from orchestrator.console.spinner import spinner
from search_spaces.known_names import known_names
from search_spaces.names import path_part
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.pareto.membership import UncertainFront
    from orchestrator.report.answers import Answers
    from orchestrator.results.study import Study
    from search_spaces.sweep import Objective, Sweep

MAX_FRONT_ROWS: Final = 200
MAX_ROWS: Final = 60
NUM_OTHER_ROWS: Final = 20


def pareto(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    where: Where = None,
    reference: ReferenceName = None,
    x: Annotated[str | None, typer.Option(help="Cost metric; default: the sweep's second objective.")] = None,
    y: Annotated[str | None, typer.Option(help="Error metric; default: the sweep's first objective.")] = None,
    z: Annotated[str | None, typer.Option(help="A third metric; default: the sweep's third objective, if any.")] = None,
    format: OutputFormat = PaperFormat.table,
    log: Log = LogAxes.none,
    size: Size = PAPER_WIDTH,
    label: Labels = None,
    only: Only = None,
    output: Output = None,
) -> None:
    """Print the front of error against cost and how sure it is, draw it as HTML and PNG, and store both in MLflow.

    With --format pdf, svg or png it draws a figure for a paper instead, with text that stays text.

    All that is recorded under the sweep's name is shown, whatever was `--set`, unless `--where` says less. P(front) is
    the share of resamples of the seeds in which a condition is on the front. With --x or --y and no --z the
    front is of two objectives. Figures of the same points are drawn and stored once.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.answers import Answers, front_of
    from orchestrator.report.sentences import confirmation_sentences
    from orchestrator.results.lookup import no_points

    output = refuse_without_figure(format, log, size, label, output, only)
    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    objectives = _objectives(sweep, x, y, z, settings)
    study, question = ask(sweep, settings, where, reference)
    question = replace(question, objectives=objectives)
    front = front_of(study, question)
    if not front.points:
        raise no_points(study, objectives)
    answers = Answers(question, study, front, (), ())
    if format.printed is None:
        from orchestrator.report.figure.paper import paper_front, save_figure

        figure = paper_front(answers, log.value, size, parse_labels(label), only or ())
        file = output or settings.figures / f"{path_part(sweep.name)}.front.paper.{format.value}"
        save_figure(figure, file)
        say(f"Figure: {path_from_here(file)}")
        return
    if format is PaperFormat.table:
        say(*confirmation_sentences(question, front.points))
    _print_front(study, front, objectives, format.printed)
    _keep_figures(answers, settings, format.printed)


def _print_front(study: "Study", front: "UncertainFront", objectives: "Sequence[Objective]", format: Format) -> None:
    from orchestrator.console.printing import to_csv
    from orchestrator.report import front_table
    from orchestrator.report.selection import selected_points
    from orchestrator.report.sentences import of_replicates

    if format is Format.json:
        print(front_table.front_json(study.sweep, front, objectives, study.configs))
    elif format is Format.csv:
        print(to_csv(front_table.front_rows(front, objectives, study.configs)), end="")
    else:
        rows = selected_points(front, MAX_ROWS, MAX_FRONT_ROWS, NUM_OTHER_ROWS, num_others=0)
        out.print(front_table.front_table(study.sweep, front, objectives, rows, out.width))
        if len(rows) < len(front.points):
            num_front, num_printed = sum(p.is_front for p in front.points), sum(front.points[i].is_front for i in rows)
            part = "all" if num_printed == num_front else f"{num_printed:,} of {num_front:,} points"
            say(
                f"Shown: {part} of the front, and of {len(front.points) - num_front:,} other points "
                f"{len(rows) - num_printed}, the likeliest to be on it, then the nearest to it; --format csv lists all."
            )
        say(*front_table.front_sentences(front, objectives), *of_replicates(study, objectives))


def _keep_figures(answers: "Answers", settings: "Settings", format: Format) -> None:
    """Draws and stores what is not drawn and stored yet; the printed answer does not wait for the store."""
    from orchestrator.report import front_files
    from orchestrator.report.published_marks import published_marks

    files = front_files.FrontFiles.of(answers.question.sweep, settings.figures)
    published = published_marks(answers.question, answers.study)
    stamp = front_files.Stamp(answers, published, settings)
    is_kept = stamp.is_set() and all(file.exists() for file in files)
    if not is_kept:
        with spinner("Drawing"):
            front_files.write_files(answers, published, files)
    if format is Format.table:
        say(*(f"Figure: {path_from_here(file)}" for file in (files.html, files.png)))
    sys.stdout.flush()
    if not is_kept:
        with storing("The figures", settings):
            front_files.store(answers, files, settings)
            stamp.set()


def _objectives(
    sweep: "Sweep", x: str | None, y: str | None, z: str | None, settings: "Settings"
) -> tuple["Objective", ...]:
    """The sweep's first three objectives, or those of the options: error, cost and perhaps a third."""
    from orchestrator.tracking.load import load_directions
    from search_spaces.sweep import Objective

    own = sweep.objectives[:3]
    if len(own) == 1 and not x:
        only = f"{sweep.name} has one objective, {own[0].metric}"
        raise InputError(f"A front has two metrics, but {only}; name a second one by --x METRIC.")
    if not (x or y or z):
        return own
    third = own[2].metric if len(own) > 2 and not (x or y) else None
    chosen = [name for name in (y or own[0].metric, x or own[1].metric, z or third) if name]
    known = load_directions(sweep, settings)
    if unknown := [name for name in chosen if name not in known]:
        names = known_names(known, unknown[0])
        raise InputError(f"{unknown[0]!r} is not a metric with a direction; choose one of {names}.")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"The metrics of a front must differ, but got {', '.join(chosen)}; name others.")
    return tuple(Objective(name, known[name]) for name in chosen)
