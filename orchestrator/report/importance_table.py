"""The table of a search's parameters: how much each matters for each objective."""

from typing import Final

from orchestrator.report.numerals import probability
from orchestrator.report.sentences import counted
from orchestrator.report.table import Column, Table
from orchestrator.results.trials import Importance

WITHOUT: Final = "some left out"
"""Heads the column of ranges of the column before it."""

Row = tuple[str, tuple[float | None, ...], tuple[tuple[float, float] | None, ...]]
"""A parameter with its share, and the lowest and highest, of each objective."""


def importance_table(found: Importance) -> Table:
    """A row a parameter, the most important for the first objective first; without a row the notes say why.

    Raw columns: parameter, then for each objective a share, and its lowest and highest (METRIC_low, METRIC_high).
    """
    rows = _rows(found)
    columns = [Column("parameter", tuple(path for path, *_ in rows), "parameter", False)]
    for i, metric in enumerate(found.objectives):
        columns.append(Column(metric, tuple(_share(shares[i]) for _, shares, _ in rows), metric))
        if found.num_groups:
            columns.append(Column(WITHOUT, tuple(_range(ranges[i]) for *_, ranges in rows), f"{metric}_low"))
    pairs = zip(found.objectives, found.explained, strict=bool(found.parameters))
    explained = ", ".join(f"{probability(share)} of {metric}" for metric, share in pairs if share is not None)
    about = (
        f"How much of an objective's variance over {counted(found.num_trials, 'trial')} each parameter explains by "
        "itself (functional ANOVA of a random forest; Hutter et al. 2014); scaled to add up to 1. Of the "
        f"variance of trials that it has not seen a forest explains {explained}: the less, the less shares say."
    )
    if found.num_groups:
        about += f" {WITHOUT.capitalize()}: the lowest and the highest share when {_left_out(found)} is left out."
    return Table(
        name=f"{found.sweep}.importance",
        title=f"{found.sweep}: importance of the parameters",
        columns=("parameter", *(f"{name}{end}" for name in found.objectives for end in ("", "_low", "_high"))),
        rows=tuple(
            (path, *(cell for one in zip(shares, ranges, strict=True) for cell in (one[0], *(one[1] or (None, None)))))
            for path, shares, ranges in rows
        ),
        printed=tuple(columns),
        notes=((about,) if rows else ()) + found.notes,
    )


def importance_tables(found: Importance | None) -> tuple[Table, ...]:
    """The table, or none where it would have no row, or the sweep is no search."""
    return (importance_table(found),) if found and found.parameters else ()


def _rows(found: Importance) -> list[Row]:
    return sorted(zip(found.parameters, found.shares, found.ranges, strict=True), key=lambda row: -(row[1][0] or 0.0))


def _left_out(found: Importance) -> str:
    return "one trial" if found.num_trials <= found.num_groups else f"each {found.num_groups}th part of the trials"


def _share(share: float | None) -> str:
    return "" if share is None else probability(share)


def _range(both: tuple[float, float] | None) -> str:
    return "" if both is None else f"{probability(both[0])} to {probability(both[1])}"


def importance_sentences(found: Importance) -> tuple[str, ...]:
    """One for each objective, and the notes."""
    sentences = []
    for i, metric in enumerate(found.objectives):
        parts = [
            f"{path} {_share(shares[i])}" + (f" ({_range(ranges[i])})" if ranges[i] else "")
            for path, shares, ranges in _rows(found)
            if shares[i] is not None
        ]
        if parts:
            unseen = f"R² of unseen trials {probability(found.explained[i] or 0.0)}"
            sentences.append(f"Importance for {metric}: {', '.join(parts)} ({found.num_trials} trials; {unseen}).")
    if found.num_groups and sentences:
        sentences.append(f"In brackets: the lowest and the highest share when {_left_out(found)} is left out.")
    return (*sentences, *found.notes)
