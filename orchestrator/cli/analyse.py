"""The command `ponderay analyse`: trained language models on sentences, minimal pairs and agreement."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.console.printing import Format, OutputFormat, out, print_rows
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.report.analysis import Question

SHORT = {
    "sentence": "",
    "position": "at",
    "is_critical": "*",
    "bits_without": "without",
    "bits_before": "before",
    "bits_after": "after",
    "delta_before": "delta",
    "delta_after": "delta'",
    "p_holm": "p (Holm)",
}
"""Of columns, in tables for people."""

Sentences = Annotated[
    Path | None,
    typer.Option(help="One sentence a line, * before its critical word; default: classic garden paths."),
]
Suites = Annotated[list[Path] | None, typer.Option(help="Minimal pairs as SyntaxGym's CSV; may be repeated.")]
Agreement = Annotated[Path | None, typer.Option(help="Subject-verb agreement items of Gulordava et al. (.tab).")]
Theorems = Annotated[bool, typer.Option("--theorems", help="How often theorems 1 and 2 of the thesis hold.")]
Step = Annotated[int | None, typer.Option(min=1, help="For sentences: recode at this word only, counted from 1.")]
Against = Annotated[str | None, typer.Option(help="Another condition to compare with, side by side and by a test.")]


def analyse(
    name: Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep of language models that has run.")],
    condition: Annotated[
        str, typer.Argument(metavar="CONDITION", help="A condition's name, as `ponderay status SWEEP` lists them.")
    ],
    sentences: Sentences = None,
    suite: Suites = None,
    agreement: Agreement = None,
    theorems: Theorems = False,
    step: Step = None,
    against: Against = None,
    evaluation: Annotated[
        str | None, typer.Option(help="The evaluation whose recoder is used; default: the first one.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Use the small size of the sweep, SWEEP.smoke.")] = False,
    format: OutputFormat = Format.table,
) -> None:
    """Read sentences with the trained models of a condition; print mean and spread over replicates, tests and a figure.

    The checkpoint of each complete replicate reads them. Welch's test compares before with after recoding at each word
    or, with --against, the two conditions; Holm's method adjusts p over the whole table.
    """
    question = _question(sentences, suite, agreement, theorems, step)
    from orchestrator.environment.settings import read_settings
    from orchestrator.report import analysis
    from orchestrator.report.figure.analysis import draw
    from orchestrator.tracking.client import Tracking
    from search_spaces.find import find_sweep

    settings, sweep = read_settings(), find_sweep(name, smoke)
    rows = analysis.answer(question, sweep, condition, against, evaluation, settings)
    if format is not Format.table:
        print_rows(rows, format, title="")
        return
    filled = [column for column in rows[0] if any(row[column] is not None for row in rows)]
    print_rows(
        [_shown({column: row[column] for column in filled}) for row in rows],
        format,
        f"{sweep.name}, {condition}: {question.kind}",
    )
    options = {"against": against, "evaluation": evaluation, "step": step}
    chosen = [f"{option}={value}" for option, value in options.items() if value is not None]
    label = ".".join([sweep.name, condition, *chosen])
    path = draw(rows, question.columns, question.kind, label, settings.figures)
    Tracking(settings).store_figures(sweep.name, [path])
    out.print(f"Figure: {path}", soft_wrap=True, markup=False)


def _question(
    sentences: Path | None, suite: list[Path] | None, agreement: Path | None, theorems: bool, step: int | None
) -> "Question":
    given = {"--sentences": sentences, "--suite": suite, "--agreement": agreement, "--theorems": theorems}
    chosen = [option for option, value in given.items() if value]
    if len(chosen) > 1:
        raise InputError(f"Give one of {', '.join(given)}, but got {' and '.join(chosen)}.")
    if step is not None and chosen not in ([], ["--sentences"]):
        raise InputError(f"--step needs sentences, but got {chosen[0]}; leave one of them out.")
    from orchestrator.report import analysis

    if suite:
        return analysis.about_suites(suite)
    if agreement:
        return analysis.about_agreement(agreement)
    return analysis.about_theorems() if theorems else analysis.about_sentences(sentences, step)


def _shown(row: dict[str, Any]) -> dict[str, str]:
    """The row with each mean and standard deviation in one column, under a short name."""
    shown = {}
    for column, value in row.items():
        name = SHORT.get(column, column)
        if f"{column}_std" in row:
            spread = row[f"{column}_std"]
            shown[name] = _readable(value) + (f" ± {_readable(spread)}" if spread is not None else "")
        elif not column.endswith("_std"):
            shown[name] = _readable(value)
    return shown


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "*" if value else ""
    return f"{value:.3g}" if isinstance(value, float) else str("" if value is None else value)
