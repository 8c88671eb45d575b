"""A front as a table, as JSON and as CSV records."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from orchestrator.pareto.front import Point
from orchestrator.pareto.hypervolume import hypervolume
from search_spaces.sweep import Objective

if TYPE_CHECKING:
    from orchestrator.statistics.summary import Summary


def front_rows(points: Sequence[Point], objectives: Sequence[Objective]) -> list[dict[str, Any]]:
    """One flat record a point: the columns of the CSV and of the JSON's `points`."""
    rows = []
    for point in points:
        row: dict[str, Any] = {
            "condition": point.condition,
            "evaluation": point.evaluation,
            "on_front": point.is_front,
            "n": min(summary.n for summary in point.summaries),
        }
        for objective, summary in zip(objectives, point.summaries, strict=True):
            row[objective.metric] = summary.mean
            row[f"{objective.metric}_std"] = summary.std if summary.n > 1 else None
        rows.append(row)
    return rows


def front_json(sweep: str, points: Sequence[Point], objectives: Sequence[Objective]) -> str:
    """The front as stable JSON: sweep, objectives, points, hypervolume with its reference point."""
    volume = hypervolume(points, objectives)
    content = {
        "sweep": sweep,
        "objectives": [vars(objective) for objective in objectives],
        "points": front_rows(points, objectives),
        "hypervolume": volume[0] if volume else None,
        "hypervolume_reference": volume[1] if volume else None,
    }
    return json.dumps(content, indent=2)


def front_table(sweep: str, points: Sequence[Point], objectives: Sequence[Objective]) -> Table:
    """Mean ± sample standard deviation and n of every point; those on the front have a star."""
    table = Table(title=f"{sweep}: {' against '.join(o.metric for o in objectives)} (* on the front of the means)")
    table.add_column("")
    table.add_column("condition")
    for objective in objectives:
        table.add_column(f"{objective.metric} ({objective.direction[:3]})", justify="right")
    table.add_column("n", justify="right")
    for point in points:
        numbers = [readable(summary) for summary in point.summaries]
        n = str(min(summary.n for summary in point.summaries))
        table.add_row("*" if point.is_front else "", point.name, *numbers, n)
    return table


def readable(summary: "Summary") -> str:
    """Four digits for small numbers, none after the point for large ones."""
    return summary.text(digits=4 if abs(summary.mean) < 100 else 0)
