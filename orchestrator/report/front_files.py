"""A front's files: a page, a PNG of the same drawing, and JSON; written and stored in MLflow when something changes."""

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from orchestrator.environment.settings import Settings
from orchestrator.pareto.attainment import MAX_STEPS
from orchestrator.report.answers import Answers, front_of
from orchestrator.report.condition_table import condition_table, front_objectives, reference_names
from orchestrator.report.figure.front import Published, chance_class, front_figure
from orchestrator.report.front_table import draws_text, front_json
from orchestrator.report.page_table import page_table
from orchestrator.report.published_marks import published_marks
from orchestrator.report.render import image, page, to_png
from orchestrator.report.selection import selected_points
from orchestrator.results.reference import recorded_question
from orchestrator.tracking import names
from orchestrator.tracking.load import load_study
from search_spaces.names import path_part
from search_spaces.redaction import redacted_text
from search_spaces.sweep import Sweep


class FrontFiles(NamedTuple):
    """Where a front's figures and its JSON are."""

    html: Path
    png: Path
    json: Path

    @classmethod
    def of(cls, sweep: str, folder: Path) -> "FrontFiles":
        """The files of `sweep` in `folder`."""
        html, png, json = (folder / f"{path_part(sweep)}.front.{end}" for end in ("html", "png", "json"))
        return cls(html, png, json)


class Stamp:
    """Says what was drawn and stored last; without a cache, nothing ever was."""

    def __init__(self, answers: Answers, published: Sequence[Published], settings: Settings) -> None:
        """A run's id tells a store from one that was made anew in its place."""
        folder, front, study = os.environ.get("PONDERAY_CACHE"), answers.front, answers.study
        place = (settings.tracking_uri, study.replicates[0].run_id, str(settings.figures))
        content = repr((place, front_objectives(answers), front.points, front.reference, tuple(published)))
        self._file = Path(folder) / "studies" / f"{path_part(study.sweep)}.front.sha256" if folder else None
        self._digest = hashlib.sha256(content.encode()).hexdigest()

    def is_set(self) -> bool:
        """Whether this very front was stored last."""
        return self._file is not None and self._file.exists() and self._file.read_bytes() == self._digest.encode()

    def set(self) -> None:
        """Says that this front is stored."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(self._digest)


def keep_front(sweep: Sweep, settings: Settings) -> str:
    """Why the front of what a sweep has come to could not be drawn and stored as `ponderay pareto` would; else empty.

    Of one objective there is no front, and nothing is drawn.
    """
    if len(sweep.objectives) < 2:
        return ""
    try:
        study = load_study(sweep.name, settings)
        question = replace(recorded_question(sweep, study, None), objectives=sweep.objectives[:3])
        answers = Answers(question, study, front_of(study, question), (), ())
        if answers.front.points:
            published, files = published_marks(question, study), FrontFiles.of(sweep.name, settings.figures)
            write_files(answers, published, files)
            store(answers, files, settings)
            Stamp(answers, published, settings).set()
    except Exception as error:  # the sweep is complete, whatever becomes of a picture
        return f"The front is not drawn ({redacted_text(str(error))}); `ponderay pareto {sweep.name}` does it."
    return ""


def write_files(answers: Answers, published: Sequence[Published], files: FrontFiles) -> None:
    """Draws the figures and writes the JSON."""
    draw_front(answers, published, files.html, files.png)
    files.json.write_text(
        front_json(answers.question.sweep, answers.front, front_objectives(answers), answers.study.configs) + "\n",
        encoding="utf-8",
    )


def draw_front(answers: Answers, published: Sequence[Published], html: Path, png: Path) -> None:
    """Writes the front of two or three objectives as HTML that needs nothing beside it, and as PNG.

    Of many points only some are drawn (`selected_points`), and the caption says so. Three objectives make a panel for
    each pair.
    """
    shown = selected_points(answers.front)
    table = page_table(condition_table(answers), "condition", shown)
    table = replace(table, file=html.with_suffix(".json").name)
    drawn = {
        "sweep": answers.question.sweep,
        "figure": front_figure(answers, shown, published),
        "labels": {row.number: row.label for row in table.rows},
        "caption": tuple(_caption(answers, shown)),
    }
    for file in (html, png):
        file.parent.mkdir(parents=True, exist_ok=True)
    text = page(
        "front.html",
        conditions=table,
        references=reference_names(answers),
        chances=[membership.on_front for membership in answers.front.memberships],
        chance_class=chance_class,
        **drawn,
    )
    html.write_text(text, encoding="utf-8", errors="backslashreplace")
    png.write_bytes(to_png(image("front.svg", **drawn)))


def _caption(answers: Answers, shown: Sequence[int]) -> Iterator[str]:
    """What is drawn, what the shares are of, and what is left out."""
    front = answers.front
    numbers = sorted({len(point.seeds) for point in front.points})
    seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    what = "one value each" if numbers == [1] else "mean and 95 % interval"
    yield f"{what}, n = {seeds}"
    if front.num_draws > 1:
        yield f"P(front): share of {draws_text(front)}"
    if len(shown) < len(front.points):
        num_front, num_drawn = (
            sum(p.is_front for p in points) for points in (front.points, [front.points[i] for i in shown])
        )
        yield (
            f"{num_drawn:,} of {num_front:,} points on the front and {len(shown) - num_drawn:,} of "
            f"{len(front.points) - num_front:,} others drawn"
        )
    if len(front_objectives(answers)) == 2 and any(surface.is_thinned for surface in front.attainment):
        yield f"band at {MAX_STEPS} costs at most"
    if len(front_objectives(answers)) > 2:
        yield "the front is that of all three objectives"


def store(answers: Answers, files: FrontFiles, settings: Settings) -> None:
    """Stores files on the sweep's own run in MLflow, with the hypervolume, its bounds and its reference point."""
    from orchestrator.tracking.client import Tracking

    front, objectives = answers.front, front_objectives(answers)
    metrics, tags = {}, {names.FRONT_OBJECTIVES: ", ".join(f"{o.metric} ({o.direction})" for o in objectives)}
    if front.volume:
        low, high = front.volume.interval
        numbers = {"hypervolume": front.volume.value, "hypervolume.low": low, "hypervolume.high": high}
        metrics = {name: value for name, value in numbers.items() if math.isfinite(value)}
        place = zip(objectives, front.volume.reference, strict=True)
        tags[names.HYPERVOLUME_REFERENCE] = ", ".join(f"{o.metric} {value:.12g}" for o, value in place)
    Tracking(settings).store_front(answers.question.sweep, files, metrics, tags)
