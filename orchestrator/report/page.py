"""A report as one HTML page that needs nothing else: no network, no fonts, no files beside it."""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.published.verdict import Finding
from orchestrator.report import curve_plot, front_plot
from orchestrator.report.answers import Answers
from orchestrator.report.claim_table import claim_table
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.condition_table import condition_table, is_reference_point
from orchestrator.report.page_settings import settings
from orchestrator.report.page_table import page_table
from orchestrator.report.sentences import counted, summary_sentences, warning_sentences
from orchestrator.report.shown import curve_conditions, shown_points
from orchestrator.results.curves import Curve
from orchestrator.results.provenance import StudyProvenance
from search_spaces.size import arguments

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent
MAX_MISSING: Final = 50
MAX_FAILED: Final = 50
SIGNS: Final = {
    Finding.reproduced: "✓",
    Finding.better: "▲",
    Finding.worse: "▼",
    Finding.inconclusive: "?",
    Finding.not_comparable: "—",
}


def render(answers: Answers, curves: Sequence[Curve], provenance: StudyProvenance) -> str:
    """The page's text, UTF-8.

    Of many conditions it shows some (`shown_points`) and says so. The same arguments make the same text.

    Args:
        curves: of the conditions that `curve_conditions` names; others are not drawn.
    """
    style, script = ((FOLDER / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    template = _environment().get_template("page.html")
    return template.render(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        answers=answers,
        question=answers.question,
        provenance=provenance,
        facts=_facts(answers),
        warnings=warning_sentences(answers, provenance),
        sentences=summary_sentences(answers),
        **_front(answers),
        **_claims(answers),
        **_curves(answers, curves),
        **_origin(answers, provenance),
    )


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(FOLDER)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _hash(text: str) -> str:
    """As a content security policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _facts(answers: Answers) -> str:
    study = answers.study
    num_complete = sum(replicate.state == "complete" for replicate in study.replicates)
    return " · ".join(
        [
            counted(len(study.conditions), "condition"),
            f"{num_complete:,} of {counted(len(study.replicates), 'replicate')} complete",
            counted(len({replicate.seed for replicate in study.replicates}), "seed"),
        ]
    )


def _front(answers: Answers) -> dict[str, Any]:
    """The figure, and the tables of the conditions that are in it and of their comparisons."""
    table, comparisons, shown = condition_table(answers), comparison_table(answers), shown_points(answers.front)
    num_points = len(answers.front.points)
    rows = [*shown, *range(num_points, min(len(table.rows), num_points + MAX_MISSING))]
    names = {answers.front.points[i].name for i in shown}
    own_notes = tuple(note for note in table.notes if note not in answers.front.notes)
    compared = [i for i, comparison in enumerate(answers.comparisons) if comparison.a in names]
    return {
        "plot": front_plot,
        "panels": front_plot.panels(answers, shown),
        "attained_text": front_plot.attained_text(answers.front.attainment),
        "labels": {row.number: row.label for row in page_table(table, "condition", shown).rows},
        "conditions": page_table(replace(table, notes=own_notes), "condition", rows),
        "references": {point.name for point in answers.front.points if is_reference_point(answers, point)},
        "comparisons": page_table(comparisons, "comparison", compared),
        "chances": [answers.front.memberships[i].on_front for i in range(num_points)],
        "chance_class": front_plot.chance_class,
    }


def _claims(answers: Answers) -> dict[str, Any]:
    counts = Counter(verdict.finding for verdict in answers.verdicts)
    return {
        "claims": page_table(claim_table(answers), "claim"),
        "verdicts": [(finding, counts[finding]) for finding in Finding if counts[finding]],
        "findings": [verdict.finding for verdict in answers.verdicts],
        "signs": SIGNS,
    }


def _curves(answers: Answers, curves: Sequence[Curve]) -> dict[str, Any]:
    names = curve_conditions(answers.front)
    figures = curve_plot.curve_figures(curves, names)
    drawn = {line.condition for figure in figures for line in figure.lines}
    rows = {point.condition: i for i, point in reversed(list(enumerate(answers.front.points)))}
    return {
        "curve_plot": curve_plot,
        "figures": figures,
        "curve_conditions": [(number, name, rows[name]) for number, name in enumerate(names) if name in drawn],
        "num_curve_metrics": curve_plot.curve_metrics(curves),
        "curve_rows": rows,
    }


def _origin(answers: Answers, provenance: StudyProvenance) -> dict[str, Any]:
    """What it was made with, what failed, and the commands that make it again."""
    failed = [replicate for replicate in answers.study.replicates if replicate.state == "failed"]
    shown = [answers.front.points[i].condition for i in shown_points(answers.front)]
    commands = [shlex.join(["ponderay", verb, *arguments(answers.question.sweep)]) for verb in ("run", "report")]
    return {
        "settings": settings(provenance.configs or answers.question.configs, shown),
        "failed": failed[:MAX_FAILED],
        "num_failed": len(failed),
        "failed_text": counted(len(failed), "failed replicate"),
        "commits": [commit.rstrip("+") for commit in provenance.commits if commit not in ("", "unknown")],
        "commands": commands,
    }
