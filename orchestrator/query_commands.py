"""The commands that ask what a sweep has produced so far: `status` and `pareto`."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orchestrator.printing import Format, OutputFormat, out, print_rows
from orchestrator.sweep_options import Smoke, SweepName, find
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.pareto.front import Point
    from orchestrator.settings import Settings
    from orchestrator.study import Study
    from search_spaces.sweep import Objective, Sweep

MAX_FRONT_ROWS: Final = 200
MAX_ROWS: Final = 60
NUM_DOMINATED_ROWS: Final = 20


def status(name: SweepName, smoke: Smoke = False, format: OutputFormat = Format.table) -> None:
    """Show how a sweep stands: its replicates, or its conditions where they are many, and why what failed has failed.

    json and csv always list every replicate.
    """
    from orchestrator import status_view
    from orchestrator.settings import read_settings
    from orchestrator.study import Study

    settings, sweep = read_settings(), find(name, smoke, None, None)
    study = Study.load(sweep.name, settings)
    if format is Format.table:
        status_view.show(study, sweep.objectives[0], settings)
    else:
        print_rows(status_view.replicate_rows(study), format, title=sweep.name)


def pareto(
    name: SweepName,
    smoke: Smoke = False,
    x: Annotated[str | None, typer.Option(help="Cost metric; default: the sweep's second objective.")] = None,
    y: Annotated[str | None, typer.Option(help="Error metric; default: the sweep's first objective.")] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Print the front of error against cost, draw it as HTML and PNG, and store both in MLflow.

    Figures of the same points are drawn and stored once.
    """
    from orchestrator.pareto.front import front
    from orchestrator.settings import read_settings
    from orchestrator.study import Study

    settings, sweep = read_settings(), find(name, smoke, None, None)
    objectives = _objectives(sweep, x, y)
    study = Study.load(sweep.name, settings)
    points = front(study, objectives)
    if not points:
        metrics = " and ".join(objective.metric for objective in objectives)
        raise InputError(f"No complete replicate of {sweep.name} has {metrics}; see `ponderay status {sweep.name}`.")
    _print_front(sweep.name, points, objectives, format)
    _keep_figures(study, points, objectives, settings, is_told=format is Format.table)


def _print_front(sweep: str, points: "Sequence[Point]", objectives: "Sequence[Objective]", format: Format) -> None:
    from orchestrator.printing import to_csv
    from orchestrator.report import front_rows

    if format is Format.json:
        print(front_rows.front_json(sweep, points, objectives))
    elif format is Format.csv:
        print(to_csv(front_rows.front_rows(points, objectives)), end="")
    else:
        shown = _readable(points)
        out.print(front_rows.front_table(sweep, shown, objectives))
        if len(shown) < len(points):
            _say_what_is_left_out(shown, points)


def _readable(points: "Sequence[Point]") -> "Sequence[Point]":
    """All of few points; of many the front, or some of a very long one, and the nearest of the rest."""
    from orchestrator.pareto.front import nearest, spread_out

    if len(points) <= MAX_ROWS:
        return points
    front = spread_out([point for point in points if point.is_front], MAX_FRONT_ROWS)
    chosen = {point.name for point in (*front, *nearest(points, NUM_DOMINATED_ROWS))}
    return [point for point in points if point.name in chosen]


def _say_what_is_left_out(shown: "Sequence[Point]", points: "Sequence[Point]") -> None:
    num_front, num_others = (
        [sum(point.is_front == is_front for point in chosen) for chosen in (shown, points)]
        for is_front in (True, False)
    )
    front = "all" if num_front[0] == num_front[1] else f"{num_front[0]:,} of {num_front[1]:,} points"
    out.print(
        f"Shown: {front} of the front, and of {num_others[1]:,} dominated points the {num_others[0]} nearest to it; "
        "--format csv lists all.",
        soft_wrap=True,
        markup=False,
    )


def _keep_figures(
    study: "Study", points: "Sequence[Point]", objectives: "Sequence[Objective]", settings: "Settings", is_told: bool
) -> None:
    """Draws and stores what is not drawn and stored yet; the printed answer does not wait for the store."""
    from orchestrator.report import front_figure

    files = front_figure.front_files(study.sweep, settings.figures)
    stamp, digest = _stamp(study, points, objectives, settings)
    is_kept = stamp is not None and all(file.exists() for file in (stamp, *files)) and stamp.read_text() == digest
    if not is_kept:
        front_figure.draw_front(study.sweep, points, objectives, settings.figures)
    for file in files if is_told else ():
        out.print(f"Figure: {_shown(file)}", soft_wrap=True, markup=False)
    sys.stdout.flush()
    if is_kept:
        return
    from orchestrator.tracking import Tracking

    Tracking(settings).store_figures(study.sweep, files)
    if stamp is not None:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)


def _stamp(
    study: "Study", points: "Sequence[Point]", objectives: "Sequence[Objective]", settings: "Settings"
) -> tuple[Path | None, str]:
    """The file that says what was drawn and stored last, and what it must say for `points`.

    A run's id tells a store from one that was made anew in its place.
    """
    import hashlib

    from orchestrator.study_cache import cache_folder

    folder, run_id = cache_folder(), study.replicates[0].run_id
    content = repr((settings.tracking_uri, run_id, str(settings.figures), tuple(objectives), tuple(points)))
    stamp = folder / f"{study.sweep}.front.sha256" if folder else None
    return stamp, hashlib.sha256(content.encode()).hexdigest()


def _objectives(sweep: "Sweep", x: str | None, y: str | None) -> tuple["Objective", ...]:
    from search_spaces.sweep import Objective

    if not x and not y:
        return sweep.objectives[:2]
    family = importlib.import_module(sweep.trainable.rpartition(".")[0] + ".metrics")
    known = {metric.name: metric.direction for metric in family.METRICS}
    chosen = (y or sweep.objectives[0].metric, x or sweep.objectives[1].metric)
    unknown = [name for name in chosen if known.get(name, "none") == "none"]
    if unknown:
        ranked = ", ".join(name for name, direction in known.items() if direction != "none")
        raise InputError(f"{unknown[0]!r} is no metric with a direction; there are {ranked}.")
    return tuple(Objective(name, known[name]) for name in chosen)


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
