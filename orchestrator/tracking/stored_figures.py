"""Figures that were stored on a sweep's own run, for who has the store and not the folder in which they were drawn."""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.tracking.study_runs import StudyRuns

FIGURES: Final = "figures"
MOST: Final = 50


def fetch_figures(runs: "StudyRuns", folder: Path) -> None:
    """Copies the PNG files, at most 50, into `folder`; none where the store of artifacts is away.

    That it is away stands in the provenance of the same report, which reads from it too.
    """
    try:
        for file in [file for file in runs.files_of(FIGURES) if file.path.endswith(".png")][:MOST]:
            (folder / PurePosixPath(file.path).name).write_bytes(file.read())
    except OSError:
        return
