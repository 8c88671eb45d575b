"""The command `report`: answers as a page and as tables."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.cli.options import (
    ReferenceName,
    Smoke,
    SweepName,
    Values,
    Where,
    ask,
    find_recorded,
    storing,
)
from orchestrator.console.printing import Format, OutputFormat
from orchestrator.console.spinner import spinner
from orchestrator.environment.places import expanded, file_at, folder_at
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.report.analysis_figures import AnalysisFigure
    from orchestrator.report.answers import Answers
    from orchestrator.report.bundle.join import Part
    from orchestrator.results.provenance import StudyProvenance
    from orchestrator.results.study import Study
    from orchestrator.results.trials import Importance, Trials
    from search_spaces.sweep import Sweep

MOST_DIFF_CHARACTERS: Final = 500_000
"""The most of a diff that the page holds."""

MOST_FIGURES: Final = 50
"""How many stored figures the page shows."""


def report(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    where: Where = None,
    reference: ReferenceName = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder for the files; default: runs/reports/SWEEP.")
    ] = None,
    with_bundles: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="Also the replicates of this bundle of the same sweep, which ran elsewhere; may be repeated. With it, "
            "nothing needs to have run here.",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one zip with all raw values, which `ponderay verify` checks."),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME",
            help="The columns of the LaTeX tables that have all of these, by heading or CSV name; default: all.",
        ),
    ] = "",
    format: OutputFormat = Format.table,
) -> None:
    """Answer a sweep's question: front, comparisons, verdicts on published numbers; as a page and as tables.

    The page opens from disk without a network. Page and tables are stored in MLflow too. json is one object: sweep,
    summary and warnings (sentences), conditions, comparisons, equal_cost, training, over_items and claims (records as
    in the CSV files; null for no number), importance (of a search: trials, parameters, ranges, notes; else null),
    files, bundle (path and sha256, or null). csv has the columns table, row, column, value.
    """
    from orchestrator.cli import report_summary
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.answer_tables import tables
    from orchestrator.report.bundle.join import read_part
    from orchestrator.report.bundle.write import write_bundle
    from orchestrator.report.importance_table import importance_tables
    from orchestrator.report.save import check_columns, write_files
    from orchestrator.tracking.load import open_tracking

    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    if output:
        folder_at(output, "--output")
    folder = expanded(output) if output else settings.reports(sweep.name)
    bundle = file_at(bundle, "--bundle") if bundle else None
    parts = [read_part(file, sweep) for file in with_bundles or ()]
    answers = _answers(sweep, settings, where, reference, parts)
    trials = _trials(sweep, answers.study, settings)
    importance = _importance(trials) if trials else None
    all_tables = (*tables(answers), *importance_tables(importance))
    chosen = [heading for heading in map(str.strip, columns.split(",")) if heading]
    check_columns(all_tables, chosen)
    poor, beaten = _floors(sweep, answers.study, settings)
    page, provenance = _page(answers, importance, settings, parts, poor, beaten)
    with spinner("Writing page and tables"), _writing(folder):
        files = write_files(folder, sweep.name, page, all_tables, chosen)
    if bundle:
        with spinner(f"Writing {bundle}"), _writing(bundle):
            bundle.parent.mkdir(parents=True, exist_ok=True)
            write_bundle(bundle, answers, all_tables, provenance, page, trials)
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest() if bundle else ""
    report_summary.show(
        report_summary.Report(answers, provenance, all_tables, files, bundle, digest, importance, beaten), format
    )
    sys.stdout.flush()
    with storing("Page and tables", settings):
        tracking = open_tracking(sweep.name, settings)  # takes a second, for which no answer waits
        if tracking:
            tracking.store_report(sweep.name, files)


def _importance(trials: "Trials") -> "Importance":
    from orchestrator.scheduler.importance import importance  # loads Optuna

    with spinner("Computing which parameters matter"):
        return importance(trials)


def _answers(
    sweep: "Sweep", settings: "Settings", where: list[str] | None, reference: str | None, parts: "Sequence[Part]"
) -> "Answers":
    with spinner(f"Reading {sweep.name}"):
        from orchestrator.audit.record import with_audit
        from orchestrator.report.answers import answer
        from orchestrator.scheduler.kept_checkpoint import with_items
        from orchestrator.tracking.curves import with_validations
        from search_spaces.redaction import redacted_text

        recorded, question = ask(sweep, settings, where, reference, parts)
        # a report is made to be handed on, and an error may have named a password or a token
        replicates = [replace(r, error=redacted_text(r.error)) if r.error else r for r in recorded.replicates]
        recorded = replace(recorded, replicates=tuple(replicates))
        study = with_audit(with_items(with_validations(sweep, recorded, settings), settings))
    text = f"Answering: the front of {len(study.conditions):,} conditions under noise, comparisons, published claims"
    with spinner(text):
        return answer(study, question)


def _trials(sweep: "Sweep", study: "Study", settings: "Settings") -> "Trials | None":
    """The trials of a search whose conditions the study has; None for listed conditions."""
    if sweep.search is None:
        return None
    from orchestrator.scheduler.search_store import read_trials  # loads Optuna

    with spinner("Asking Optuna's database what the search has drawn"):
        return read_trials(sweep, settings).of_conditions(study.conditions)


def _page(
    answers: "Answers",
    importance: "Importance | None",
    settings: "Settings",
    parts: "Sequence[Part]",
    poor: tuple[str, ...],
    beaten: tuple[str, ...],
) -> tuple[str, "StudyProvenance"]:
    from orchestrator.report.bundle.join import join_provenance
    from orchestrator.report.page import render
    from orchestrator.report.selection import curve_conditions, selected_points
    from orchestrator.results.provenance import with_short_diffs
    from orchestrator.tracking.curves import load_mean_curves
    from orchestrator.tracking.load import with_origins
    from orchestrator.tracking.provenance import read_provenance

    with spinner("Reading learning curves and where the results came from"):
        points = answers.front.points
        conditions = [points[i].condition for i in selected_points(answers.front)]
        curves = load_mean_curves(answers.study, curve_conditions(answers.front), settings)
        own = read_provenance(with_origins(answers.study, settings), settings, conditions)
        provenance = join_provenance(own, answers.study, parts)
        provenance = replace(provenance, notes=(*provenance.notes, *poor))  # warnings, wherever a bundle is read
    with spinner("Drawing"):
        figures = _analysis_figures(answers.study.sweep, settings)
        shown = with_short_diffs(replace(provenance, notes=(*provenance.notes, *beaten)), MOST_DIFF_CHARACTERS)
        page = render(answers, curves, shown, importance, figures)
        return page, provenance


def _floors(sweep: "Sweep", study: "Study", settings: "Settings") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Warnings of conditions and prerequisites that do not beat their floor, and sentences about those that do.

    A floor is what needs no learning. Prerequisites count whose journals are here. None where the code or the data are
    not here; conditions that beat their floor are not spoken of.
    """
    from orchestrator.results.floors import beaten_sentences, of_study
    from orchestrator.scheduler.floors import of_prerequisites
    from orchestrator.scheduler.task_factory import TaskFactory
    from orchestrator.worker.trainable import load

    try:
        of_conditions = of_study(study, load(sweep.trainable).metrics)
        of_others = of_prerequisites(TaskFactory(sweep, settings, num_gpus=0)) if sweep.prerequisites else []
    except InputError:
        return (), ()
    poor = tuple(floor.sentence for floor in (*of_others, *of_conditions) if not floor.is_beaten)
    return poor, beaten_sentences(of_others)


def _analysis_figures(sweep: str, settings: "Settings") -> "tuple[AnalysisFigure, ...]":
    """The figures that were stored in MLflow, wherever they were drawn, and those of this machine in their place.

    That the store of files is away stands in the provenance of the same report, which reads from it too.
    """
    from orchestrator.report.analysis_figures import analysis_figures
    from orchestrator.tracking.load import load_files
    from orchestrator.tracking.stored_files import FIGURES

    with TemporaryDirectory() as folder:
        with suppress(OSError):
            files = [file for file in load_files(sweep, FIGURES, settings) if file.path.endswith(".png")]
            for file in files[:MOST_FIGURES]:
                (Path(folder) / PurePosixPath(file.path).name).write_bytes(file.read())
        stored = analysis_figures(Path(folder), sweep)
    by_title = {figure.title: figure for figure in (*stored, *analysis_figures(settings.figures, sweep))}
    return tuple(by_title[title] for title in sorted(by_title))


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Has a disk that is full or somebody else's folder be an InputError: the program has no fault."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{place} must be a place that can be written to, but: {error}.") from None
