"""A report as one HTML page that needs nothing else: no network, no fonts, no files beside it."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from orchestrator.published.verdict import Finding
from orchestrator.report.analysis_figures import AnalysisFigure
from orchestrator.report.answers import Answers
from orchestrator.report.audit_table import audit_table
from orchestrator.report.claim_table import claim_table
from orchestrator.report.comparison_table import comparison_table, equal_cost_table, over_items_table
from orchestrator.report.condition_table import condition_table, reference_names
from orchestrator.report.figure.curves import AREA, curve_figures, curve_metrics
from orchestrator.report.figure.front import chance_class, front_figure
from orchestrator.report.figure.varied import AREA as VARIED_AREA
from orchestrator.report.figure.varied import varied_figures
from orchestrator.report.importance_table import importance_table
from orchestrator.report.page_table import page_table, settings
from orchestrator.report.published_marks import compared_marks
from orchestrator.report.render import page
from orchestrator.report.selection import curve_conditions, selected_points
from orchestrator.report.sentences import counted, summary_sentences, warning_sentences
from orchestrator.report.training_table import training_table
from orchestrator.results.curves import Curve
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.trials import Importance
from orchestrator.results.varied import of_objectives
from search_spaces.size import arguments

MAX_MISSING: Final = 50
MAX_FAILED: Final = 50
SIGNS: Final = {
    Finding.reproduced: "✓",
    Finding.better: "▲",
    Finding.worse: "▼",
    Finding.inconclusive: "?",
    Finding.not_comparable: "—",
}


def render(
    answers: Answers,
    curves: Sequence[Curve],
    provenance: StudyProvenance,
    importance: Importance | None = None,
    figures: Sequence[AnalysisFigure] = (),
) -> str:
    """The page's text, UTF-8.

    Of many conditions it shows some (`selected_points`) and says so. The same arguments make the same text.

    Args:
        curves: of the conditions that `curve_conditions` names; others are not drawn.
        importance: of the parameters, where the sweep is a search.
        figures: of analyses of trained replicates.
    """
    study, warnings = answers.study, warning_sentences(answers, provenance)
    facts = [
        counted(len(study.conditions), "condition"),
        f"{sum(one.state == 'complete' for one in study.replicates):,} of "
        f"{counted(len(study.replicates), 'replicate')} complete",
        counted(len({replicate.seed for replicate in study.replicates}), "seed"),
    ]
    counts = Counter(verdict.finding for verdict in answers.verdicts)
    varied = of_objectives(study, answers.question)
    return page(
        "page.html",
        answers=answers,
        question=answers.question,
        provenance=provenance,
        facts=" · ".join(facts),
        warnings=warnings,
        warnings_text=f"{counted(len(warnings), 'warning')}: read {'it' if len(warnings) == 1 else 'them'} first",
        sentences=summary_sentences(answers),
        **_front(answers),
        claims=page_table(claim_table(answers.question.sweep, answers.verdicts), "claim"),
        verdicts=[(finding, counts[finding]) for finding in Finding if counts[finding]],
        findings=[verdict.finding for verdict in answers.verdicts],
        signs=SIGNS,
        audit=page_table(audit_table(study), "audit") if study.audit else None,
        importance=page_table(importance_table(importance), "importance") if importance else None,
        varied=varied_figures(varied),
        num_varied=len(varied),
        varied_area=VARIED_AREA,
        **_curves(answers, curves),
        analysed=figures,
        **_origin(answers, provenance),
    )


def _front(answers: Answers) -> dict[str, Any]:
    """The figure, and the tables of the conditions that are in it and of their comparisons."""
    table, comparisons, shown = condition_table(answers), comparison_table(answers), selected_points(answers.front)
    num_points = len(answers.front.points)
    rows = [*shown, *range(num_points, min(len(table.rows), num_points + MAX_MISSING))]
    names = {answers.front.points[i].name for i in shown}
    own_notes = tuple(note for note in table.notes if note not in answers.front.notes)
    compared = [i for i, comparison in enumerate(answers.comparisons) if comparison.a in names]
    hint = f"{len(shown):,} of {num_points:,} conditions are drawn: the front, what is nearest to it, and some of the "
    return {
        "figure": front_figure(answers, shown, compared_marks(answers)),
        "hint": f"{hint}rest; all are in {table.name}.csv. " if len(shown) < num_points else "",
        "labels": {row.number: row.label for row in page_table(table, "condition", shown).rows},
        "conditions": page_table(replace(table, notes=own_notes), "condition", rows),
        "references": reference_names(answers),
        "comparisons": page_table(comparisons, "comparison", compared),
        "equal_cost": page_table(equal_cost_table(answers), "equal-cost"),
        "training": page_table(training_table(answers), "training"),
        "over_items": page_table(over_items_table(answers), "over_items"),
        "chances": [membership.on_front for membership in answers.front.memberships],
        "chance_class": chance_class,
    }


def _curves(answers: Answers, curves: Sequence[Curve]) -> dict[str, Any]:
    names = curve_conditions(answers.front)
    figures = curve_figures(curves, names)
    drawn = {name for figure in figures for name in figure.conditions}
    rows = {point.condition: i for i, point in reversed(list(enumerate(answers.front.points)))}
    return {
        "curve_area": AREA,
        "curve_figures": figures,
        "curve_conditions": [(number, name, rows[name]) for number, name in enumerate(names) if name in drawn],
        "num_curve_metrics": curve_metrics(curves),
        "curve_rows": rows,
        "num_pruned": sum(one.state == "pruned" for one in answers.study.replicates),
        "num_pruned_drawn": len({line.condition for one in figures for line in one.lines if line.number is None}),
    }


def _origin(answers: Answers, provenance: StudyProvenance) -> dict[str, Any]:
    """What the results were made with, what failed, and the commands that make them again."""
    failed = [replicate for replicate in answers.study.replicates if replicate.state == "failed"]
    shown = [answers.front.points[i].condition for i in selected_points(answers.front)]
    is_ours = any(replicate.key for replicate in answers.study.replicates)
    verbs = ("run", "report") if is_ours else ()  # no command makes results of others again
    # A sweep of one's own is found by its place alone, as the command that ran it says; a shipped one by its name.
    name, *size = arguments(answers.question.sweep)
    runs = (command.split() for command in provenance.commands)
    places = (words[2] for words in runs if words[:2] == ["ponderay", "run"] and ":" in "".join(words[2:3]))
    place = next(places, name)
    commands = [shlex.join(["ponderay", verb, place, *size]) for verb in verbs]
    return {
        "settings": settings(provenance.configs or answers.question.configs, shown),
        "failed": failed[:MAX_FAILED],
        "num_failed": len(failed),
        "failed_text": counted(len(failed), "failed replicate"),
        "commits": [commit.rstrip("+") for commit in provenance.commits if commit not in ("", "unknown")],
        "commands": commands,
    }
