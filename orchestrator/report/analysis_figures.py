"""Figures that `ponderay analyse` has drawn of a sweep, as a report shows them."""

import base64
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError


@dataclass(frozen=True)
class AnalysisFigure:
    """What a figure of an analysis is about; it stands in the file.

    Attributes:
        title: the condition and the question that the analysis answers.
        text: what the analysis is, one sentence.
        image: the PNG as text in base 64; empty before it is drawn.
    """

    sweep: str
    title: str
    text: str
    image: str = ""


def analysis_figures(folder: Path, sweep: str) -> tuple[AnalysisFigure, ...]:
    """The figures in `folder` of analyses of the sweep, by their titles."""
    found = []
    for path in sorted(folder.glob("*.png")):
        try:
            with Image.open(path) as image:
                about = {name: str(value) for name, value in image.info.items()}
        except (OSError, UnidentifiedImageError):
            continue  # torn or no picture: not of an analysis that ended
        if about.get("Source") == sweep and {"Title", "Description"} <= about.keys():
            text = base64.b64encode(path.read_bytes()).decode()
            found.append(AnalysisFigure(sweep, about["Title"], about["Description"], text))
    return tuple(sorted(found, key=lambda one: one.title))
