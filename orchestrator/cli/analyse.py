"""The command `ponderay analyse`: what the trained replicates of a condition answer to a question of their family."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.options import Smoke, find
from orchestrator.console.printing import Format, OutputFormat, out, print_rows
from trainables.errors import InputError

Given = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the analysis; may be repeated."),
]
Against = Annotated[str | None, typer.Option(help="Another condition to compare with, side by side and by a test.")]


def analyse(
    name: Annotated[
        str, typer.Argument(metavar="SWEEP", help="A sweep that has run and whose trainable has analyses.")
    ],
    condition: Annotated[
        str, typer.Argument(metavar="CONDITION", help="A condition's name, as `ponderay status SWEEP` lists them.")
    ],
    analysis: Annotated[
        str | None, typer.Argument(metavar="[ANALYSIS]", help="One of the trainable's analyses; default: the first.")
    ] = None,
    option: Given = None,
    against: Against = None,
    evaluation: Annotated[
        str | None, typer.Option(help="The evaluation under which each replicate is asked; default: the first one.")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="Each replicate's own numbers, by seed, in place of mean and spread.")
    ] = False,
    smoke: Smoke = False,
    format: OutputFormat = Format.table,
) -> None:
    """Ask the trained replicates of a condition; print mean and spread over them, tests and a figure.

    The best checkpoint of each complete replicate answers. A paired t-test over replicates compares two measures of
    each row; with --against, Welch's test compares the two conditions. Holm's method adjusts p over the whole table. A
    wrong name of an analysis or an option is answered with those that there are.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.analysis import Question, answer, answer_of_each
    from orchestrator.tracking.load import load_study

    settings, sweep = read_settings(), find(name, smoke, None, None)
    load_study(sweep.name, settings)  # whether it has run is known before its analyses, which load torch
    given: dict[str, tuple[str, ...]] = {}
    for item in option or []:
        word, sign, text = item.partition("=")
        if not sign or not word:
            raise InputError(f"--option must be NAME=VALUE, but got {item!r}.")
        given[word] = (*given.get(word, ()), text)
    question = Question.of(sweep, analysis, given)
    if each:
        if against:
            raise InputError("--each gives the numbers of one condition; ask for the other one's by themselves.")
        rows = answer_of_each(question, sweep, condition, evaluation, settings)
        print_rows(rows, format, f"{sweep.name}, {condition}: {question.name}")
        return
    rows = answer(question, sweep, condition, against, evaluation, settings)
    if format is not Format.table:
        print_rows(rows, format, title="")
        return
    filled = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    headings = question.analysis.headings
    readable = [_for_people({column: row[column] for column in filled}, headings) for row in rows]
    print_rows(readable, format, f"{sweep.name}, {condition}: {question.name}")
    title = ".".join([sweep.name, condition])
    for word, value in {"against": against, "evaluation": evaluation, **question.options}.items():
        for text in value if isinstance(value, tuple) else (value,):
            if text is not None and not Path(text).is_file():  # a file shows in what is drawn
                title += f".{word}={text}"
    from orchestrator.report.analysis_figures import AnalysisFigure
    from orchestrator.report.figure.analysis import draw, file_name
    from orchestrator.tracking.client import Tracking

    path = settings.figures / file_name(title, question.name)
    measure = next(column for column in rows[0] if f"{column}_std" in rows[0])
    about = AnalysisFigure(
        sweep.name, f"{title.removeprefix(f'{sweep.name}.')}: {question.name}", question.analysis.about
    )
    draw(rows, question.analysis.columns, measure, question.analysis.lines, path, title, about)
    Tracking(settings).store_figures(sweep.name, [path])
    out.print(f"Figure: {path}", soft_wrap=True, markup=False)


def _for_people(row: dict[str, Any], headings: Mapping[str, str]) -> dict[str, str]:
    """The row with each mean and standard deviation in one column, under a short name."""
    texts = {}
    for column, value in row.items():
        name = headings.get(column, "p (Holm)" if column == "p_holm" else column)
        if f"{column}_std" in row:
            spread = row[f"{column}_std"]
            texts[name] = _readable(value) + (f" ± {_readable(spread)}" if spread is not None else "")
        elif not column.endswith("_std"):
            texts[name] = _readable(value)
    return texts


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "*" if value else ""
    return f"{value:.3g}" if isinstance(value, float) else str("" if value is None else value)
