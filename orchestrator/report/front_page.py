"""A front as a page of its own, and as a PNG of the same drawing."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from orchestrator.pareto.attainment import MAX_STEPS
from orchestrator.report.answers import Answers
from orchestrator.report.condition_table import condition_table, front_objectives, reference_names
from orchestrator.report.figure.front import Published, chance_class, front_figure
from orchestrator.report.figure.labels import font_file
from orchestrator.report.front_table import draws_text
from orchestrator.report.html import image, page
from orchestrator.report.page_table import page_table
from orchestrator.report.shown import shown_points

PIXELS_PER_UNIT: Final = 2
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_front(answers: Answers, published: Sequence[Published], html: Path, png: Path) -> None:
    """Writes the front of two or three objectives as HTML that needs nothing beside it, and as PNG.

    Of many points only some are drawn (`shown_points`), and the caption says so. Three objectives make a panel for each
    pair.
    """
    shown = shown_points(answers.front)
    table = page_table(condition_table(answers), "condition", shown)
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
    png.write_bytes(_png(image("front.svg", **drawn)))


def _png(svg: str) -> bytes:
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=NOT_XML.sub("\N{REPLACEMENT CHARACTER}", svg),
        background="white",
        zoom=PIXELS_PER_UNIT,
        skip_system_fonts=True,
        font_files=[str(font_file())],
    )


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
    if any(surface.is_thinned for surface in front.attainment):
        yield f"band at {MAX_STEPS} costs at most"
    if len(front_objectives(answers)) > 2:
        yield "the front is that of all three objectives"
