"""The command `report`: answers as a page and as tables."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.cli.options import ReferenceName, Smoke, SweepName, Values, Where, ask, find_recorded, with_curves
from orchestrator.console.printing import Format, OutputFormat
from orchestrator.console.spinner import spinner
from orchestrator.environment.places import folder_at
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.report.analysis_figures import AnalysisFigure
    from orchestrator.report.answers import Answers
    from orchestrator.report.bundle.join import Part
    from orchestrator.results.importance import Importance
    from orchestrator.results.provenance import StudyProvenance
    from orchestrator.results.study import Study
    from orchestrator.results.trials import Trials
    from orchestrator.tracking.mlflow_runs import MlflowRuns
    from orchestrator.tracking.sqlite_runs import SqliteRuns
    from orchestrator.tracking.study_runs import NoRuns, StudyRuns
    from search_spaces.sweep import Sweep

MOST_DIFF_CHARACTERS: Final = 500_000
"""In the page."""


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
    from orchestrator.report.bundle.write import write_bundle, write_files
    from orchestrator.report.importance_table import importance_tables
    from orchestrator.tracking.load import open_runs_if_run
    from orchestrator.tracking.study_runs import NoRuns
    from orchestrator.tracking.sweep_run import store_report

    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    folder = output or settings.reports(sweep.name)
    _check_places(output, bundle)
    parts = [read_part(file, sweep) for file in with_bundles or ()]
    answers = _answers(sweep, settings, where, reference, parts)
    trials = _trials(sweep, answers.study, settings)
    importance = _importance(trials) if trials else None
    runs = open_runs_if_run(sweep.name, settings)
    floors = _floors(sweep, answers.study, settings)
    page, provenance = _page(answers, importance, settings, runs, parts, floors)
    with spinner("Writing page and tables"), _writing(folder):
        found = (*tables(answers), *importance_tables(importance))
        files = write_files(folder, sweep.name, page, found)
    if bundle:
        with spinner(f"Writing {bundle}"), _writing(bundle):
            bundle.parent.mkdir(parents=True, exist_ok=True)
            write_bundle(bundle, answers, found, provenance, page, trials)
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest() if bundle else ""
    made = report_summary.Report(answers, provenance, found, files, bundle, digest, importance)
    report_summary.show(made, format)
    sys.stdout.flush()
    if not isinstance(runs, NoRuns):
        with spinner("Storing page and tables in MLflow"):
            store_report(sweep.name, settings, files)


def _check_places(output: Path | None, bundle: Path | None) -> None:
    """Raises InputError where files could not be written, before any work is done."""
    if output:
        folder_at(output, "--output")
    if bundle:
        folder_at(bundle.parent, "--bundle")
        with _writing(bundle):
            is_folder = bundle.is_dir()
        if is_folder:
            raise InputError(f"--bundle must be a file, but {bundle} is a folder; name a file in it, such as it.zip.")


def _answers(
    sweep: "Sweep", settings: "Settings", where: list[str] | None, reference: str | None, parts: "Sequence[Part]"
) -> "Answers":
    with spinner(f"Reading {sweep.name}"):
        from orchestrator.report.answers import answer
        from orchestrator.scheduler.item_errors import with_items

        recorded, question = ask(sweep, settings, where, reference, parts)
        study = with_items(with_curves(_redacted(recorded), sweep, settings), settings)
    text = f"Answering: the front of {len(study.conditions):,} conditions under noise, comparisons, published claims"
    with spinner(text):
        return answer(study, question)


def _redacted(study: "Study") -> "Study":
    """Without passwords and tokens that an error may have named: a report is made to be handed on."""
    from dataclasses import replace

    from search_spaces.redaction import redacted_text

    found = (replace(one, error=redacted_text(one.error)) if one.error else one for one in study.replicates)
    return replace(study, replicates=tuple(found))


def _trials(sweep: "Sweep", study: "Study", settings: "Settings") -> "Trials | None":
    """Of a search, those whose conditions are shown; None for listed conditions."""
    if sweep.search is None:
        return None
    from orchestrator.scheduler.search_store import read_trials

    with spinner("Asking Optuna's database what the search has drawn"):
        return read_trials(sweep, settings).of_conditions(study.conditions)


def _importance(trials: "Trials") -> "Importance":
    from orchestrator.scheduler.importance import importance

    with spinner("Computing which parameters matter"):
        return importance(trials)


def _page(
    answers: "Answers",
    importance: "Importance | None",
    settings: "Settings",
    runs: "SqliteRuns | MlflowRuns | NoRuns",
    parts: "Sequence[Part]",
    floors: tuple[str, ...],
) -> tuple[str, "StudyProvenance"]:
    from dataclasses import replace

    from orchestrator.report.bundle.join import join_provenance
    from orchestrator.report.page import render
    from orchestrator.report.shown import curve_conditions, shown_points
    from orchestrator.results.provenance import with_short_diffs
    from orchestrator.tracking.curves import read_curves
    from orchestrator.tracking.provenance import read_provenance

    with spinner("Reading learning curves and where the results came from"):
        points = answers.front.points
        shown = [points[i].condition for i in shown_points(answers.front)]
        curves = read_curves(runs, curve_conditions(answers.front))
        provenance = join_provenance(read_provenance(runs, answers.study, shown), answers.study, parts)
        provenance = replace(provenance, notes=(*provenance.notes, *floors))
    with spinner("Drawing"):
        figures = _analysis_figures(answers.study.sweep, runs, settings)
        page = render(answers, curves, with_short_diffs(provenance, MOST_DIFF_CHARACTERS), importance, figures)
        return page, provenance


def _floors(sweep: "Sweep", study: "Study", settings: "Settings") -> tuple[str, ...]:
    """Prerequisites beside what needs no learning, as far as their journals are here, and conditions that do not
    beat it; nothing where the code or the data are not here.
    """
    from orchestrator.results.floors import of_study
    from orchestrator.scheduler.floors import of_prerequisites
    from orchestrator.scheduler.task_factory import TaskFactory
    from orchestrator.worker.trainable import load

    try:
        poor = [one.sentence for one in of_study(study, load(sweep.trainable).metrics) if not one.is_beaten]
        of_others = of_prerequisites(TaskFactory(sweep, settings, num_gpus=0)) if sweep.prerequisites else []
    except InputError:
        return ()
    return (*(one.sentence for one in of_others), *poor)


def _analysis_figures(sweep: str, runs: "StudyRuns", settings: "Settings") -> "tuple[AnalysisFigure, ...]":
    """Those that were stored in MLflow, wherever they were drawn, and those of this machine in their place."""
    from orchestrator.report.analysis_figures import analysis_figures
    from orchestrator.tracking.stored_figures import fetch_figures

    with TemporaryDirectory() as folder:
        fetch_figures(runs, Path(folder))
        stored = analysis_figures(Path(folder), sweep)
    found = {one.title: one for one in (*stored, *analysis_figures(settings.figures, sweep))}
    return tuple(found[title] for title in sorted(found))


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """A disk that is full or a folder of somebody else is not a fault of the program."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{place} must be a place that can be written to, but: {error}.") from None
