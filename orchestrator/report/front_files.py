"""A front's files: drawn and stored in MLflow once, until something changes."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.environment.settings import Settings
from orchestrator.report.answers import Answers
from orchestrator.report.condition_table import front_objectives
from orchestrator.report.figure.front import Published
from orchestrator.tracking import names
from orchestrator.tracking.study_cache import cache_folder


class FrontFiles(NamedTuple):
    """Where a front's figures and its JSON are."""

    html: Path
    png: Path
    json: Path

    @classmethod
    def of(cls, sweep: str, folder: Path) -> "FrontFiles":
        """Those of `sweep` in `folder`."""
        html, png, json = (folder / f"{sweep}.front.{end}" for end in ("html", "png", "json"))
        return cls(html, png, json)


class Stamp:
    """Says what was drawn and stored last; without a cache, nothing ever was."""

    def __init__(self, answers: Answers, published: Sequence[Published], settings: Settings) -> None:
        """A run's id tells a store from one that was made anew in its place."""
        folder, front, study = cache_folder(), answers.front, answers.study
        place = (settings.tracking_uri, study.replicates[0].run_id, str(settings.figures))
        content = repr((place, front_objectives(answers), front.points, front.reference, tuple(published)))
        self._file = folder / f"{study.sweep}.front.sha256" if folder else None
        self._digest = hashlib.sha256(content.encode()).hexdigest()

    def is_set(self) -> bool:
        """Whether this very front was stored last."""
        return self._file is not None and self._file.exists() and self._file.read_text() == self._digest

    def set(self) -> None:
        """Says that this front is stored."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(self._digest)


def write_files(answers: Answers, published: Sequence[Published], files: FrontFiles) -> None:
    """Draws the figures and writes the JSON."""
    from orchestrator.report.front_page import draw_front
    from orchestrator.report.front_table import front_json

    draw_front(answers, published, files.html, files.png)
    files.json.write_text(
        front_json(answers.question.sweep, answers.front, front_objectives(answers)) + "\n", encoding="utf-8"
    )


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
