"""What is drawn of a front, whatever draws it: panels of points, the band that is attained, published points."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.pareto.attainment import MAX_STEPS, Surface
from orchestrator.pareto.front import spread_out
from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.front_border import Border, Places, limits
from orchestrator.report.front_rows import draws_text
from orchestrator.report.numerals import probability
from orchestrator.statistics.intervals import Interval
from search_spaces.sweep import Objective

MAX_FRONT_DRAWN: Final = 300
MAX_OTHERS_DRAWN: Final = 300
MAX_LABELLED: Final = 40
NUM_LABELS: Final = 10


@dataclass(frozen=True)
class PublishedMark:
    """A published point beside a front.

    Attributes:
        values: one for each objective.
        text: what it is, in a line or more.
        legend: `published (Lugosch et al. 2020)`, or `published, other data`.
        is_comparable: whether it is of the same data and sizes; where not, it does not stretch the axes.
    """

    values: tuple[float, ...]
    text: str
    legend: str
    is_comparable: bool


@dataclass(frozen=True)
class Mark:
    """One point of the front in a panel.

    Attributes:
        share: of the draws in which it is on the front.
        is_labelled: whether its name stands beside it.
        text: lines for where the pointer rests on it.
    """

    name: str
    x: float
    y: float
    x_interval: Interval
    y_interval: Interval
    share: float
    is_front: bool
    is_labelled: bool
    text: str


@dataclass(frozen=True)
class Panel:
    """Two of the objectives.

    Attributes:
        staircase: corners of the border of what the front of the means attains; empty where it is of three objectives.
        band: corners around what 5 % of the draws attain and 95 % do not; empty likewise.
        by_seed: corners of what each number of seeds attains, with its name.
        published: legend, and its points with their texts.
        x_limits, y_limits: so that all marks, intervals and comparable published points can be seen.
    """

    x_metric: str
    y_metric: str
    marks: tuple[Mark, ...]
    staircase: Places
    band: Places
    by_seed: tuple[tuple[str, Places], ...]
    published: tuple[tuple[str, tuple[tuple[float, float, str], ...]], ...]
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    """A front's figure: a panel, or three for three objectives; the title's lines say what is left out."""

    title: tuple[str, ...]
    panels: tuple[Panel, ...]


def drawing(
    sweep: str, front: UncertainFront, objectives: Sequence[Objective], published: Sequence[PublishedMark]
) -> Drawing:
    """The figure of two or three objectives: of each pair the first upwards, the second to the right."""
    shown = _shown(front)
    labelled = _labelled(front, shown)
    pairs = itertools.combinations(range(len(objectives)), 2)
    panels = tuple(_panel(front, objectives, published, shown, labelled, y, x) for y, x in pairs)
    title = _title(sweep, front, shown)
    return Drawing((*title, "the front is that of all three objectives") if len(panels) > 1 else title, panels)


def _shown(front: UncertainFront) -> list[int]:
    """Numbers of the points that are drawn: those on the front of the means, those near it, some of the others."""
    places = {point.name: i for i, point in enumerate(front.points)}
    is_near = [membership.standing != "dominated" for membership in front.memberships]
    groups = [
        [point for point in front.points if point.is_front],
        [p for p, near in zip(front.points, is_near, strict=True) if near and not p.is_front],
        [p for p, near in zip(front.points, is_near, strict=True) if not near],
    ]
    most = (MAX_FRONT_DRAWN, MAX_OTHERS_DRAWN, MAX_OTHERS_DRAWN)
    kept = [spread_out(group, count) for group, count in zip(groups, most, strict=True)]
    return sorted(places[point.name] for group in kept for point in group)


def _labelled(front: UncertainFront, shown: Sequence[int]) -> set[str]:
    """Names that stand beside points: all of a few, else some on the front."""
    points = [front.points[i] for i in shown]
    if len(front.points) <= MAX_LABELLED:
        return {point.name for point in points}
    return {point.name for point in spread_out([point for point in points if point.is_front], NUM_LABELS)}


def _title(sweep: str, front: UncertainFront, shown: Sequence[int]) -> tuple[str, ...]:
    numbers = sorted({len(point.seeds) for point in front.points})
    seeds = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    what = "one value each" if numbers == [1] else "mean and 95 % interval"
    lines = [f"{sweep}: {what}, n = {seeds}"]
    if front.num_draws > 1:
        lines.append(f"P(front): share of {draws_text(front)}")
    if len(shown) < len(front.points):
        drawn = {True: 0, False: 0}
        for i in shown:
            drawn[front.points[i].is_front] += 1
        num_front = sum(point.is_front for point in front.points)
        num_others = len(front.points) - num_front
        lines.append(
            f"{drawn[True]:,} of {num_front:,} points on the front and {drawn[False]:,} of {num_others:,} others drawn"
        )
    if any(surface.is_thinned for surface in front.attainment):
        lines.append(f"band at {MAX_STEPS} costs at most")
    return tuple(lines)


def _panel(
    front: UncertainFront,
    objectives: Sequence[Objective],
    published: Sequence[PublishedMark],
    shown: Sequence[int],
    labelled: set[str],
    y: int,
    x: int,
) -> Panel:
    marks = tuple(_mark(front, objectives, i, front.points[i].name in labelled, y, x) for i in shown)
    seen = [mark.values for mark in published if mark.is_comparable]
    x_limits = limits([*(end for m in marks for end in (m.x, *m.x_interval)), *(values[x] for values in seen)])
    y_limits = limits([*(end for m in marks for end in (m.y, *m.y_interval)), *(values[y] for values in seen)])
    means = [(p.summaries[y].mean, p.summaries[x].mean) for p in front.points if p.is_front]
    border, is_whole = Border(objectives[y], objectives[x], x_limits, y_limits), len(objectives) == 2
    return Panel(
        objectives[x].metric,
        objectives[y].metric,
        marks,
        border.around(means) if is_whole else (),
        border.between(front.attainment) if is_whole else (),
        tuple(_named(front.seed_attainment, border)) if is_whole else (),
        tuple(_published(published, y, x, x_limits, y_limits)),
        x_limits,
        y_limits,
    )


def _mark(front: UncertainFront, objectives: Sequence[Objective], i: int, is_labelled: bool, y: int, x: int) -> Mark:
    point, membership = front.points[i], front.memberships[i]
    lines = [point.name]
    for objective, summary, (low, high) in zip(objectives, point.summaries, membership.intervals, strict=True):
        interval = f" [{low:.5g} to {high:.5g}]" if low < high else ""
        lines.append(f"{objective.metric} {summary.mean:.5g}{interval}")
    lines.append(f"n = {len(point.seeds)}, P(front) {probability(membership.on_front)}: {membership.standing}")
    if not math.isnan(membership.dominates_reference):
        lines.append(f"P(dominates reference) {probability(membership.dominates_reference)}")
    means = point.summaries[x].mean, point.summaries[y].mean
    intervals = membership.intervals[x], membership.intervals[y]
    return Mark(point.name, *means, *intervals, membership.on_front, point.is_front, is_labelled, "\n".join(lines))


def _named(surfaces: Sequence[Surface], border: Border) -> Iterable[tuple[str, Places]]:
    for k, surface in enumerate(surfaces, start=1):
        yield f"attained under {k} of {len(surfaces)} seeds", border.around(surface.steps)


def _published(
    published: Sequence[PublishedMark], y: int, x: int, x_limits: tuple[float, float], y_limits: tuple[float, float]
) -> Iterable[tuple[str, tuple[tuple[float, float, str], ...]]]:
    """By legend; points outside the limits are counted in it."""
    for legend in dict.fromkeys(mark.legend for mark in published):
        places = [(mark.values[x], mark.values[y], mark.text) for mark in published if mark.legend == legend]
        num_outside = sum(
            not (x_limits[0] <= across <= x_limits[1] and y_limits[0] <= up <= y_limits[1]) for across, up, _ in places
        )
        outside = f" ({num_outside} of {len(places)} outside the figure)" if num_outside else ""
        yield legend + outside, tuple(places)
