"""A front with its uncertainty as a table, as sentences, as JSON and as CSV records."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.console.json_text import json_text
from orchestrator.console.printing import fits
from orchestrator.pareto.attainment import Surface
from orchestrator.pareto.hypervolume import OUTSIDE
from orchestrator.pareto.membership import Standing, UncertainFront
from orchestrator.report.numerals import between, decimals, fixed, probability, with_interval
from orchestrator.report.table import finite
from orchestrator.results.config_columns import config_columns
from search_spaces.sweep import Objective

MARKS: Final[dict[Standing, str]] = {
    "front": "*",
    "front within noise": "*?",
    "near within noise": "?",
    "dominated": "",
}


COLUMNS: Final = frozenset(
    ("condition", "evaluation", "on_front", "n", "front_probability", "dominates_reference_probability", "standing")
)
"""Columns of every front; a metric of such a name has another column."""


def front_rows(
    front: UncertainFront, objectives: Sequence[Objective], configs: Mapping[str, Mapping[str, str]]
) -> list[dict[str, Any]]:
    """One flat record a point: the columns of the CSV and of the JSON's `points`; None where there is no number.

    condition, evaluation, on_front (of the means), n, each objective with its mean (`metric NAME` where it is called as
    another column) and `_std` (sample standard
    deviation), then each with `_low` and `_high` (95 % interval of the mean), front_probability,
    dominates_reference_probability, standing; then `config.PATH` for each path of the configs.
    """
    rows = []
    columns = config_columns(configs, [point.condition for point in front.points])
    for i, (point, membership) in enumerate(zip(front.points, front.memberships, strict=True)):
        row: dict[str, Any] = {
            "condition": point.condition,
            "evaluation": point.evaluation,
            "on_front": point.is_front,
            "n": len(point.seeds),
        }
        for objective, summary in zip(objectives, point.summaries, strict=True):
            name = objective.metric
            row[f"metric {name}" if name in COLUMNS else name] = summary.mean
            row[f"{objective.metric}_std"] = finite(summary.std)
        for objective, interval in zip(objectives, membership.intervals, strict=True):
            row[f"{objective.metric}_low"] = finite(interval.low)
            row[f"{objective.metric}_high"] = finite(interval.high)
        row["front_probability"] = membership.on_front
        row["dominates_reference_probability"] = finite(membership.dominates_reference)
        row["standing"] = membership.standing
        row |= {name: column[i] for name, column in columns.items()}
        rows.append(row)
    return rows


def front_json(
    sweep: str, front: UncertainFront, objectives: Sequence[Objective], configs: Mapping[str, Mapping[str, str]]
) -> str:
    """The front as stable JSON.

    sweep, objectives, points, hypervolume with its reference point and 95 % interval, num_draws, is_exact, is_paired,
    reference, notes; attainment and seed_attainment: surfaces with the level, a value of each objective a step, and
    whether steps are left out.
    """
    volume = front.volume
    content = {
        "sweep": sweep,
        "objectives": [vars(objective) for objective in objectives],
        "points": front_rows(front, objectives, configs),
        "hypervolume": finite(volume.value) if volume else None,
        "hypervolume_reference": [finite(value) for value in volume.reference] if volume else None,
        "hypervolume_low": finite(volume.interval.low) if volume else None,
        "hypervolume_high": finite(volume.interval.high) if volume else None,
        "num_draws": front.num_draws,
        "is_exact": front.is_exact,
        "is_paired": front.is_paired,
        "reference": front.reference,
        "notes": front.notes,
        "attainment": [_surface(surface) for surface in front.attainment],
        "seed_attainment": [_surface(surface) for surface in front.seed_attainment],
    }
    return json_text(content)


def _surface(surface: Surface) -> dict[str, Any]:
    steps = [[finite(value) for value in step] for step in surface.steps]
    return {"level": surface.level, "steps": steps, "is_thinned": surface.is_thinned}


def front_table(
    sweep: str, front: UncertainFront, objectives: Sequence[Objective], shown: Sequence[int], width: int
) -> RenderableType:
    """Mark, means with 95 % intervals, n and shares of the draws of the points numbered `shown`.

    Where that is more than `width` characters wide, intervals stand below their means, and there are no frames; where
    that is too wide too, each name stands above its numbers, as a paragraph at last. No name is folded.
    """
    digits = [decimals(front.points[k].summaries[i] for k in shown) for i in range(len(objectives))]
    titles = ["", "condition", *(f"{o.metric} ({o.direction[:3]})" for o in objectives), "n", "P(front)"]
    titles += ["P(dominates reference)"] if front.reference else []
    title = f"{sweep}: {' against '.join(o.metric for o in objectives)}"
    title += f"; reference: {_reference(front)}" if front.reference else ""
    wide = [titles, *(_cells(front, k, digits, " ") for k in shown)]
    narrow = [[title.replace(" ", "\n") for title in titles], *(_cells(front, k, digits, "\n") for k in shown)]
    compact = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    below = (_under_names(title, wide), _under_names(title, narrow))
    for table in (_table(title, wide, Table()), _table(title, narrow, compact), *below):
        if fits(table, width):
            return table
    return _as_paragraphs(title, wide)


def _table(title: str, rows: Sequence[Sequence[str]], table: Table) -> Table:
    table.title = Text(title)
    for place, heading in enumerate(rows[0]):
        table.add_column(Text(heading), justify="left" if place < 2 else "right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    return table


def _under_names(title: str, rows: Sequence[Sequence[str]]) -> Group:
    """The numbers of each row below its mark and its name."""
    parts: list[RenderableType] = [Text(title, style="italic")]
    columns = zip(*(row[2:] for row in rows), strict=True)
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    for mark, name, *cells in rows:
        numbers = Table.grid(padding=(0, 2))
        for width in widths:
            numbers.add_column(justify="right", width=width)
        numbers.add_row(*map(Text, cells))
        heading = Text(f"{mark:2} {name}", no_wrap=True, overflow="ignore")
        parts += [heading, Padding(numbers, (0, 0, 0, 3), expand=False)]
    return Group(*parts)


def _as_paragraphs(title: str, rows: Sequence[Sequence[str]]) -> Group:
    """Each number behind its heading, below the mark and the name of its row."""
    parts: list[RenderableType] = [Text(title, style="italic")]
    for mark, name, *cells in rows[1:]:
        said = ", ".join(f"{heading} {cell}" for heading, cell in zip(rows[0][2:], cells, strict=True) if cell)
        heading = Text(f"{mark:2} {name}", no_wrap=True, overflow="ignore")
        parts += [heading, Padding(Text(said), (0, 0, 0, 3))]
    return Group(*parts)


def _cells(front: UncertainFront, k: int, digits: Sequence[int], gap: str) -> list[str]:
    """The row of a point, with `gap` between a mean and its interval."""
    point, membership = front.points[k], front.memberships[k]
    means = [fixed(summary.mean, d) for summary, d in zip(point.summaries, digits, strict=True)]
    spans = [
        f"{gap}[{between(interval, d)}]" if interval.low < interval.high else ""
        for interval, d in zip(membership.intervals, digits, strict=True)
    ]
    shares = [probability(membership.on_front)]
    shares += [probability(membership.dominates_reference)] if front.reference else []
    numbers = [mean + span for mean, span in zip(means, spans, strict=True)]
    return [MARKS[membership.standing], point.name, *numbers, str(len(point.seeds)), *shares]


def front_sentences(front: UncertainFront, objectives: Sequence[Objective]) -> list[str]:
    """What stands below the table: what the marks mean, the hypervolume, what the reader must know."""
    return [
        "* on the front of the means; *? on it, but in fewer than 95 % of the draws; ? off it, but on the front in "
        "more than 5 % of the draws. [low to high]: 95 % interval of the mean.",
        f"P: share of {draws_text(front)} in which nothing dominates the condition"
        + (f", and in which it dominates the reference, {_reference(front)}." if front.reference else "."),
        *volume_sentences(front, objectives),
        *front.notes,
    ]


def _reference(front: UncertainFront) -> str:
    (condition,) = {point.condition for point in front.points if point.name == front.reference}
    is_one = len({point.evaluation for point in front.points}) == 1
    return condition if is_one else f"{condition}, under the same evaluation"


def draws_text(front: UncertainFront) -> str:
    """`all 126 paired resamples of the seeds`."""
    if front.num_draws == 1:
        return "the one resample there is"
    kind = "paired resamples" if front.is_paired else "resamples"
    number = f"all {front.num_draws:,}" if front.is_exact else f"{front.num_draws:,} random"
    return f"{number} {kind} of the seeds"


def volume_sentences(front: UncertainFront, objectives: Sequence[Objective]) -> list[str]:
    """The hypervolume with its interval and reference point, and why it may lie outside; none where there is none."""
    volume = front.volume
    if volume is None:
        return []
    columns = zip(*(point.summaries for point in front.points), strict=True)
    places = zip(objectives, volume.reference, map(decimals, columns), strict=True)
    corner = ", ".join(f"{objective.metric} = {fixed(value, digits)}" for objective, value, digits in places)
    digits = decimals([with_interval(volume.value, volume.interval)])
    interval = between(volume.interval, digits)
    bounds = f" (95 % interval {interval})" if interval else ""
    said = [f"The hypervolume of the front up to {corner} is {fixed(volume.value, digits)}{bounds}."]
    return [*said, OUTSIDE] if volume.is_outside() else said
