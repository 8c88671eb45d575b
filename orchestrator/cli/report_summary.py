"""What `ponderay report` prints: a summary for people, records for programs."""

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.console.printing import Format, out, path_from_here, say, to_csv
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.report.answers import Answers
from orchestrator.report.claim_table import claim_text
from orchestrator.report.condition_table import front_objectives
from orchestrator.report.front_table import front_table
from orchestrator.report.importance_table import importance_sentences
from orchestrator.report.sentences import summary_sentences, warning_sentences
from orchestrator.report.table import Table, records
from orchestrator.report.table import to_csv as table_csv
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.trials import Importance

MAX_ROWS: Final = 30
MAX_WARNINGS: Final = 20
PRINTED: Final = ("conditions", "comparisons", "equal_cost", "training", "over_items", "claims")
"""The tables that json and csv print; metrics and replicates are in the files."""


@dataclass(frozen=True)
class Report:
    """What a report was made of, and where it is.

    Attributes:
        files: the page first.
        bundle_sha256: empty without a bundle.
        importance: of the parameters of a search; None for listed conditions.
        beaten: sentences about prerequisites that beat what needs no learning.
    """

    answers: Answers
    provenance: StudyProvenance
    tables: tuple[Table, ...]
    files: tuple[Path, ...]
    bundle: Path | None
    bundle_sha256: str
    importance: Importance | None = None
    beaten: tuple[str, ...] = ()


def show(report: Report, format: Format) -> None:
    """Prints a report."""
    if format is Format.json:
        print(json.dumps(_content(report), indent=2, allow_nan=False))
    elif format is Format.csv:
        cells = []  # as the CSV files write them
        for kind, table in _printed(report):
            heading, *rows = csv.reader(io.StringIO(table_csv(table), newline=""))
            for i, row in enumerate(rows, 1):
                cells += [{"table": kind, "row": i, "column": c, "value": v} for c, v in zip(heading, row, strict=True)]
        print(to_csv(cells), end="")
    else:
        _show_to_people(report)


def _content(report: Report) -> dict[str, Any]:
    bundle = {"path": str(report.bundle), "sha256": report.bundle_sha256} if report.bundle else None
    importance: dict[str, Any] | None = None
    if of := report.importance:
        shares, ranges = (
            {path: dict(zip(of.objectives, row, strict=True)) for path, row in zip(of.parameters, rows, strict=True)}
            for rows in (of.shares, of.ranges)
        )
        importance = {"trials": of.num_trials, "parameters": shares, "ranges": ranges, "notes": of.notes}
    return {
        "sweep": report.answers.question.sweep,
        "summary": (*summary_sentences(report.answers), *report.beaten),
        "warnings": _warnings(report),
        **{kind: records(table) for kind, table in _printed(report)},
        "importance": importance,
        "files": [str(file) for file in report.files],
        "bundle": bundle,
    }


def _printed(report: Report) -> list[tuple[str, Table]]:
    by_kind = {table.name.rpartition(".")[2]: table for table in report.tables}
    return [(kind, by_kind[kind]) for kind in PRINTED]


def _warnings(report: Report) -> tuple[str, ...]:
    return (*warning_sentences(report.answers, report.provenance), *report.provenance.notes)


def _show_to_people(report: Report) -> None:
    front, objectives = report.answers.front, front_objectives(report.answers)
    near = [i for i, membership in enumerate(front.memberships) if membership.standing != "dominated"]
    out.print(front_table(report.answers.question.sweep, front, objectives, near[:MAX_ROWS], out.width))
    if len(near) > MAX_ROWS:
        say(f"{len(near) - MAX_ROWS:,} more are on the front or near it; the files list all.")
    say(*summary_sentences(report.answers), *report.beaten)
    show_verdicts(report.answers.verdicts)
    if report.importance:
        say(*importance_sentences(report.importance))
    warnings = _warnings(report)
    say(*(f"Warning: {warning}" for warning in warnings[:MAX_WARNINGS]))
    if len(warnings) > MAX_WARNINGS:
        say(f"{len(warnings) - MAX_WARNINGS} more warnings are in the page.")
    page, *tables = report.files
    say(
        f"Report: {path_from_here(page)}",
        f"Tables: {path_from_here(page.parent)} ({len(tables)} files: .md, .tex, .csv)",
    )
    if report.bundle:
        say(f"Bundle: {path_from_here(report.bundle)} (sha256 {report.bundle_sha256})")


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Prints a line for each verdict; claims that are not comparable for the same reason share a line."""
    width = max((len(verdict.finding.value) for verdict in verdicts), default=0)
    same = Counter((verdict.finding, verdict.reason) for verdict in verdicts)
    for verdict in verdicts:
        number = same.pop((verdict.finding, verdict.reason), 0) if verdict.finding is Finding.not_comparable else 1
        text = f"{number} claims" if number > 1 else claim_text(verdict.claim).rstrip(".")
        if number:
            say(f"{verdict.finding.value:{width}}  {text}: {verdict.reason}")
