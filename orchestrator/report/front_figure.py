"""Figures of a front: HTML with its script in it, and PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.front_drawing import Drawing, Mark, Panel, PublishedMark, drawing
from orchestrator.report.svg_labels import place_labels
from orchestrator.statistics.intervals import Interval
from search_spaces.sweep import Objective

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure

COLOURS: Final = "Blues"
GREY: Final = "#8a8a8a"
POINTS_PER_INCH: Final = 72
TEXT: Final = "#2a3f5f"
PUBLISHED_COLOURS: Final = ("#c0392b", "#8a8a8a")
BAND: Final = "attained in 5 % to 95 % of the draws"
SHARE: Final = "P(front)"


def draw_front(
    sweep: str,
    front: UncertainFront,
    objectives: Sequence[Objective],
    published: Sequence[PublishedMark],
    html: Path,
    png: Path,
) -> None:
    """Writes the front of two or three objectives as HTML (its script included) and as PNG.

    Of many points only some are drawn, and the title says so; only some of those are named, in the HTML the others
    where the pointer rests on them. Three objectives make a panel for each pair.
    """
    drawn = drawing(sweep, front, objectives, published)
    for file in (html, png):
        file.parent.mkdir(parents=True, exist_ok=True)
    _html_figure(drawn).write_html(html, include_plotlyjs=True)
    _write_png(drawn, png)


def _groups(panel: Panel) -> dict[str, list[Mark]]:
    """Marks by what the legend says of them, without empty groups."""
    groups = {
        "front of the means": [mark for mark in panel.marks if mark.is_front],
        "others": [mark for mark in panel.marks if not mark.is_front],
    }
    return {name: marks for name, marks in groups.items() if marks}


def _spans(places: Sequence[float], intervals: Sequence[Interval]) -> tuple[list[float], list[float]]:
    """How far each interval goes down and up; 0 where there is none."""
    pairs = [(x - i.low, i.high - x) if i.low < i.high else (0.0, 0.0) for x, i in zip(places, intervals, strict=True)]
    return [down for down, _ in pairs], [up for _, up in pairs]


def _short(numbers: Sequence[float]) -> list[float]:
    """With the seven digits that show; all of them would make a page of many points a quarter larger."""
    return [float(f"{number:.7g}") for number in numbers]


def _html_figure(drawn: Drawing) -> "Figure":
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=len(drawn.panels), horizontal_spacing=0.08)
    for column, panel in enumerate(drawn.panels, start=1):
        for trace in _traces(panel, is_first=column == 1):
            figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(title_text=_escaped(panel.x_metric), range=panel.x_limits, row=1, col=column)
        figure.update_yaxes(title_text=_escaped(panel.y_metric), range=panel.y_limits, row=1, col=column)
    figure.update_layout(
        title=_escaped("\n".join(drawn.title)),
        legend={"orientation": "h", "y": -0.15},
        coloraxis={
            "colorscale": COLOURS,
            "cmin": 0,
            "cmax": 1,
            "colorbar": {"title": {"text": SHARE}},
        },
    )
    return figure


def _escaped(text: str) -> str:
    """For plotly, which reads texts as HTML."""
    import html

    return html.escape(text).replace("\n", "<br>")


def _traces(panel: Panel, is_first: bool) -> list[Any]:
    """Band, borders, points and published points; only the first panel's are in the legend."""
    from plotly.graph_objects import Scatter

    def line(name: str, places: Sequence[tuple[float, float]], **options: Any) -> Any:
        x, y = _short([x for x, _ in places]), _short([y for _, y in places])
        return Scatter(x=x, y=y, mode="lines", name=name, hoverinfo="skip", showlegend=is_first, **options)

    found = []
    if panel.band:
        found.append(line(BAND, panel.band, fill="toself", fillcolor="rgba(128,128,128,0.25)", line_width=0))
    if panel.staircase:
        found.append(line("attained by the means", panel.staircase, line={"color": GREY, "width": 1}))
    for name, places in panel.by_seed:
        found.append(line(name, places, visible="legendonly", line={"dash": "dot", "width": 1}))
    for name, marks in reversed(_groups(panel).items()):
        shape = {"symbol": "circle" if marks[0].is_front else "square", "size": 10 if marks[0].is_front else 7}
        found.append(_points(name, marks, shape))
        if is_first:  # in the legend by itself: there plotly takes a share for a colour, and complains
            found.append(Scatter(x=[None], y=[None], mode="markers", marker=shape | {"color": TEXT}, name=name))
    for (name, published), colour in zip(panel.published, PUBLISHED_COLOURS, strict=False):
        marker = {"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}}
        found.append(
            Scatter(
                x=[x for x, _, _ in published],
                y=[y for _, y, _ in published],
                mode="markers",
                marker=marker,
                name=_escaped(name),
                hovertext=[_escaped(text) for _, _, text in published],
                hoverinfo="text",
                showlegend=is_first,
            )
        )
    return found


def _points(name: str, marks: Sequence[Mark], shape: Mapping[str, Any]) -> Any:
    from plotly.graph_objects import Scatter

    x, y = [mark.x for mark in marks], [mark.y for mark in marks]
    left, right = map(_short, _spans(x, [mark.x_interval for mark in marks]))
    down, up = map(_short, _spans(y, [mark.y_interval for mark in marks]))
    bars = {"type": "data", "symmetric": False, "color": GREY, "thickness": 1}
    return Scatter(
        x=_short(x),
        y=_short(y),
        error_x=bars | {"array": right, "arrayminus": left},
        error_y=bars | {"array": up, "arrayminus": down},
        mode="markers+text",
        marker={
            "color": [mark.share for mark in marks],
            "coloraxis": "coloraxis",
            "line": {"width": 0.6, "color": TEXT},
            **shape,
        },
        text=[_escaped(mark.name) if mark.is_labelled else "" for mark in marks],
        textposition="top center",
        hovertext=[_escaped(mark.text) for mark in marks],
        hoverinfo="text",
        name=name,
        showlegend=False,
    )


def _write_png(drawn: Drawing, path: Path) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    shares = ScalarMappable(Normalize(0, 1), colormaps[COLOURS])
    figure = Figure(figsize=(6.5 * len(drawn.panels) + 1, 6), layout="constrained")
    all_axes = list(figure.subplots(1, len(drawn.panels), squeeze=False)[0])
    for axes, panel in zip(all_axes, drawn.panels, strict=True):
        _draw_panel(axes, panel, shares)
    figure.suptitle("\n".join(drawn.title), parse_math=False)
    figure.colorbar(shares, ax=all_axes, label=SHARE)
    handles, names = all_axes[0].get_legend_handles_labels()
    legend = figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
    figure.draw_without_rendering()
    for axes, panel in zip(all_axes, drawn.panels, strict=True):
        _name_marks(axes, panel.marks, POINTS_PER_INCH * figure.get_figheight())
    figure.savefig(path, dpi=150)


def _name_marks(axes: "Axes", marks: Sequence[Mark], height: float) -> None:
    """Writes names where they cover neither marks nor one another, in points of a figure of this height.

    What lies where is known once the layout is.
    """
    scale = POINTS_PER_INCH / axes.figure.dpi

    def place(mark: Mark) -> tuple[float, float]:
        x, y = axes.transData.transform((mark.x, mark.y))
        return float(x * scale), float(height - y * scale)

    left, bottom, right, top = (scale * edge for edge in axes.bbox.extents)
    named = [(i, mark.name, *place(mark)) for i, mark in enumerate(marks) if mark.is_labelled]
    taken = [place(mark) for mark in marks]
    for label in place_labels(named, taken, (left, height - top, right, height - bottom)):
        place_of_label = (label.x, height - label.y)
        axes.annotate(label.text, place_of_label, xycoords="figure points", fontsize="small", parse_math=False)


def _draw_panel(axes: "Axes", panel: Panel, shares: Any) -> None:
    if panel.band:
        axes.fill(*zip(*panel.band, strict=True), color=GREY, alpha=0.25, linewidth=0, label=BAND)
    if panel.staircase:
        axes.plot(*zip(*panel.staircase, strict=True), color=GREY, linewidth=1, label="attained by the means")
    for name, marks in reversed(_groups(panel).items()):
        x, y = [mark.x for mark in marks], [mark.y for mark in marks]
        spans = _spans(y, [mark.y_interval for mark in marks]), _spans(x, [mark.x_interval for mark in marks])
        axes.errorbar(x, y, *spans, fmt="none", ecolor=GREY, elinewidth=0.8, capsize=2)
        shape, size = ("o", 45) if marks[0].is_front else ("s", 20)
        colours = shares.to_rgba([mark.share for mark in marks])
        axes.scatter(x, y, c=colours, marker=shape, s=size, label=name, zorder=3, edgecolors="black", linewidths=0.4)
    for (name, published), colour in zip(panel.published, PUBLISHED_COLOURS, strict=False):
        across, up = [x for x, _, _ in published], [y for _, y, _ in published]
        axes.scatter(across, up, marker="D", s=50, facecolors="none", edgecolors=colour, label=name, zorder=4)
    axes.set(xlim=panel.x_limits, ylim=panel.y_limits)
    axes.set_xlabel(panel.x_metric, parse_math=False)
    axes.set_ylabel(panel.y_metric, parse_math=False)
