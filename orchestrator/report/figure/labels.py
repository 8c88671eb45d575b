"""Names beside points, so that none covers another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.report.html import font_file

FONT_SIZE: Final = 12
LINE_HEIGHT: Final = 14.0
MAX_CHARACTERS: Final = 28
GAP: Final = 9.0
DIAGONAL: Final = 5.5

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Label:
    """A name: the left end of its base line, and the row that it belongs to."""

    row: int
    text: str
    x: float
    y: float


def place_labels(
    named: Sequence[tuple[int, str, float, float]], taken: Sequence[tuple[float, float]], frame: Box
) -> tuple[Label, ...]:
    """Labels of as many of the `named` (row, name, x, y) as fit, the first ones first.

    Each lies beside its point, rather off its whiskers, inside the frame (left, top, right, bottom), and covers no
    other label and none of the points that are `taken`.
    """
    boxes: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in taken]
    labels = []
    for row, name, x, y in named:
        text = name if len(name) <= MAX_CHARACTERS else f"{name[: MAX_CHARACTERS - 1]}…"
        for box in _places(x, y, text_width(text)):
            if _is_inside(box, frame) and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                labels.append(Label(row, text, round(box[0], 1), round(box[3] - 3, 1)))
                break
    return tuple(labels)


def text_width(text: str) -> float:
    """How wide a label is in that font."""
    from PIL import ImageFont

    return ImageFont.truetype(font_file(), FONT_SIZE).getlength(text)


def _places(x: float, y: float, width: float) -> list[Box]:
    half = LINE_HEIGHT / 2
    right, left, above, below = x + DIAGONAL, x - DIAGONAL - width, y - DIAGONAL - LINE_HEIGHT, y + DIAGONAL
    corners = [(right, above), (right, below), (left, above), (left, below)]
    corners += [(x + GAP, y - half), (x - GAP - width, y - half), (x - width / 2, y - GAP - LINE_HEIGHT)]
    return [(left, top, left + width, top + LINE_HEIGHT) for left, top in corners]


def _is_inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
