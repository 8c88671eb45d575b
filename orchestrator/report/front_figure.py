"""Figures of a front: HTML with its script in it, and PNG."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from orchestrator.pareto.front import Point, spread_out
from search_spaces.sweep import Objective

if TYPE_CHECKING:
    from orchestrator.statistics.summary import Summary

MAX_DOMINATED_DRAWN: Final = 300
MAX_LABELLED: Final = 40
NUM_LABELS: Final = 10


def front_files(sweep: str, folder: Path) -> tuple[Path, Path]:
    """Where `draw_front` writes HTML and PNG."""
    return folder / f"{sweep}.front.html", folder / f"{sweep}.front.png"


def draw_front(sweep: str, points: Sequence[Point], objectives: Sequence[Objective], folder: Path) -> tuple[Path, Path]:
    """Writes the front of the first two objectives as HTML (its script included) and as PNG; returns both paths.

    Of many dominated points only some are drawn, and the title says so; of many points only some on the front are
    named, in the HTML the others where the pointer rests on them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    html, png = front_files(sweep, folder)
    _draw_html(sweep, points, objectives, html)
    _draw_png(sweep, points, objectives, png)
    return html, png


def _spread(summary: "Summary") -> float:
    return summary.std if summary.n > 1 else 0.0


def _draw_html(sweep: str, points: Sequence[Point], objectives: Sequence[Objective], path: Path) -> None:
    import html as escaping

    from plotly import graph_objects

    figure, labels = graph_objects.Figure(), _labels(points)
    for name, chosen in _groups(points).items():
        error, cost = ([point.summaries[i] for point in chosen] for i in (0, 1))
        figure.add_scatter(
            x=[s.mean for s in cost],
            y=[s.mean for s in error],
            error_x={"type": "data", "array": [_spread(s) for s in cost]},
            error_y={"type": "data", "array": [_spread(s) for s in error]},
            mode="lines+markers+text" if name == "front" else "markers+text",
            line_shape="hv" if _holds_to_the_right(objectives) else "vh",
            text=[escaping.escape(point.name) if point.name in labels else "" for point in chosen],
            hovertext=[escaping.escape(point.name) for point in chosen],
            textposition="top center",
            name=name,
        )
    figure.update_layout(
        title=_title(sweep, points).replace("\n", "<br>"),
        xaxis_title=objectives[1].metric,
        yaxis_title=objectives[0].metric,
    )
    figure.write_html(path, include_plotlyjs=True)


def _holds_to_the_right(objectives: Sequence[Objective]) -> bool:
    """Whether a front point's error stays the best there is until the next dearer one; so where cost is minimized."""
    return objectives[1].direction == "minimize"


def _draw_png(sweep: str, points: Sequence[Point], objectives: Sequence[Objective], path: Path) -> None:
    from matplotlib.figure import Figure

    figure, labels = Figure(figsize=(7, 5), layout="constrained"), _labels(points)
    axes = figure.subplots()
    for name, chosen in _groups(points).items():
        error, cost = ([point.summaries[i] for point in chosen] for i in (0, 1))
        x, y = [s.mean for s in cost], [s.mean for s in error]
        spreads = [_spread(s) for s in error], [_spread(s) for s in cost]
        drawn = axes.errorbar(x, y, *spreads, fmt="o", capsize=3, label=name, zorder=3 if name == "front" else 2)
        if name == "front":
            where: Literal["post", "pre"] = "post" if _holds_to_the_right(objectives) else "pre"
            axes.step(x, y, where=where, alpha=0.4, color=drawn.lines[0].get_color())
        for point, place in zip(chosen, zip(x, y, strict=True), strict=True):
            if point.name in labels:
                axes.annotate(point.name, place, textcoords="offset points", xytext=(5, 5), parse_math=False)
    axes.set(title=_title(sweep, points), xlabel=objectives[1].metric, ylabel=objectives[0].metric)
    axes.margins(x=0.2)
    axes.legend()
    figure.savefig(path, dpi=150)


def _title(sweep: str, points: Sequence[Point]) -> str:
    numbers = sorted({summary.n for point in points for summary in point.summaries})
    seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    title = f"{sweep}: mean and sample standard deviation, n = {seeds}"
    num_dominated = sum(not point.is_front for point in points)
    if num_dominated <= MAX_DOMINATED_DRAWN:
        return title
    return f"{title}\n{MAX_DOMINATED_DRAWN:,} of {num_dominated:,} dominated points drawn"


def _groups(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Front points in order of cost, then those of the dominated ones that are drawn; empty groups are left out."""
    groups = {
        "front": sorted((p for p in points if p.is_front), key=lambda point: point.summaries[1].mean),
        "dominated": list(spread_out([p for p in points if not p.is_front], MAX_DOMINATED_DRAWN)),
    }
    return {name: chosen for name, chosen in groups.items() if chosen}


def _labels(points: Sequence[Point]) -> set[str]:
    """Names of the points that are named in a figure."""
    if len(points) > MAX_LABELLED:
        points = spread_out([point for point in points if point.is_front], NUM_LABELS)
    return {point.name for point in points}
