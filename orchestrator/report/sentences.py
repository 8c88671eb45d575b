"""What a study says, in sentences."""

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.pareto.membership import Membership
from orchestrator.published.verdict import Finding
from orchestrator.report.answers import Answers
from orchestrator.report.audit_table import audit_sentences
from orchestrator.report.comparison_table import difference_decimals
from orchestrator.report.condition_table import front_objectives, missing_conditions
from orchestrator.report.front_table import volume_sentences
from orchestrator.report.numerals import p_value, probability, signed
from orchestrator.report.training_table import training_sentences
from orchestrator.results.comparison import is_not_worse
from orchestrator.results.points import Point, columns_of
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.size import arguments
from search_spaces.sweep import Objective

MAX_NAMED: Final = 5
MAX_COMPARED: Final = 3


def summary_sentences(answers: Answers) -> tuple[str, ...]:
    """What is on the front and how sure that is, what differs from the reference, what becomes of the claims."""
    found = [*confirmation_sentences(answers.question, answers.front.points), *_front(answers), *_comparisons(answers)]
    is_search = not answers.question.configs and any(one.key for one in answers.study.replicates)
    if is_search and len(answers.front.points) > 1:
        found.append(
            "The seeds that measured the best of many also chose it, which flatters it: `ponderay run "
            f"{shlex.join(arguments(answers.question.sweep))} --confirm` measures the front on fresh seeds."
        )
    if answers.verdicts:
        counts = Counter(verdict.finding for verdict in answers.verdicts)
        parts = (f"{counts[finding]} {finding.value}" for finding in Finding if counts[finding])
        found.append(f"Of {counted(len(answers.verdicts), 'published claim')}: {', '.join(parts)}.")
    return tuple(sentence for sentence in found if sentence)


def warning_sentences(answers: Answers, provenance: StudyProvenance) -> tuple[str, ...]:
    """What a reader must know before believing the rest; each once."""
    points = answers.front.points if answers.study.validations.curves else ()
    improving = training_sentences(answers.study, [point.name for point in points]) if points else ()
    audit = audit_sentences(answers.study)
    metrics: dict[str, list[str]] = {}
    for comparison in answers.comparisons:
        for warning in comparison.warnings:
            metrics.setdefault(warning, []).append(comparison.metric)
    doubts = (
        f"{warning[:1].upper()}{warning[1:].rstrip('.')} ({counted(len(warned), 'comparison')} of "
        f"{listed(list(dict.fromkeys(warned)))})."
        for warning, warned in metrics.items()
    )
    found = (
        *audit,
        *_gaps(answers),
        *improving,
        *_mixtures(answers, provenance),
        *answers.front.notes,
        *doubts,
    )
    return tuple(dict.fromkeys(sentence for sentence in found if sentence))


def counted(number: int, noun: str) -> str:
    """`1 condition`, `3 conditions`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str], most: int = MAX_NAMED) -> str:
    """`a, b and c`; of many the first ones, and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def confirmation_sentences(question: Question, points: Sequence[Point]) -> list[str]:
    """What fresh seeds say of conditions that other seeds chose, beside what had made them the choice."""
    if (confirms := question.confirms) is None:
        return []
    seeds = f"{question.seeds[0]} to {question.seeds[-1]}" if len(question.seeds) > 1 else str(question.seeds[0])
    sentences = [
        f"The means are of seed{'s' * (len(question.seeds) > 1)} {seeds}, which had no part in the choice of "
        f"{len(confirms.means):,} of {counted(confirms.num_conditions, 'condition')} of {confirms.sweep}."
    ]
    for k, objective in enumerate(question.objectives):
        sign, rows, optimism = 1 if objective.direction == "minimize" else -1, [], []
        for point in points:
            before = confirms.means.get(point.condition, {}).get(point.named(objective.metric))
            if before is not None and k < len(point.summaries):
                after = point.summaries[k].mean
                optimism.append(sign * (after - before))
                rows.append(f"{point.name} {before:.4g}, now {after:.4g}")
        if rows:
            mean = math.fsum(optimism) / len(optimism)
            said = "as good as" if mean == 0 else f"{abs(mean):.2g} {'better' if mean > 0 else 'worse'} than"
            sentences.append(f"In {objective.metric} the choice looked {said} it is, on average: {listed(rows)}.")
    return sentences


def _front(answers: Answers) -> list[str]:
    front, metrics = answers.front, [objective.metric for objective in front_objectives(answers)]
    if not front.points:
        return ["No condition has a complete replicate yet."]
    pairs = sorted(zip(front.points, front.memberships, strict=True), key=lambda pair: pair[1].on_front, reverse=True)
    on = [_with_chance(point, sure) for point, sure in pairs if point.is_front]
    near = [_with_chance(point, sure) for point, sure in pairs if sure.standing == "near within noise"]
    best = "the best" if len(metrics) == 1 else f"on the front of {' against '.join(metrics)}"
    is_one = len({point.evaluation for point in front.points}) == 1
    all_points = (
        counted(len(pairs), "condition") if is_one else f"{counted(len(pairs), 'point')} (condition@evaluation)"
    )
    sentences = [f"Of {all_points}, {len(on):,} {'is' if len(on) == 1 else 'are'} {best}: {listed(on)}."]
    if near:
        sentences.append(f"Off it, but within seed noise of it: {listed(near)}.")
    return [*sentences, " ".join(volume_sentences(front, front_objectives(answers)))]


def _with_chance(point: Point, sure: Membership) -> str:
    return f"{point.name} ({_equation('P', probability(sure.on_front))})"


def _comparisons(answers: Answers) -> list[str]:
    """One sentence for each metric: what is better, what is worse, the largest differences first, and the rest.

    That something is not worse takes a margin, which the sweep names; without it the rest is not shown to differ. Of
    one seed nothing is tested, for a cost that a condition fixes and chance look alike.
    """
    found, question, sentences = answers.comparisons, answers.question, []
    for metric in dict.fromkeys(comparison.metric for comparison in found):
        group = [comparison for comparison in found if comparison.metric == metric]
        others = listed(list(dict.fromkeys(comparison.b for comparison in group)))
        parts = []
        for answer in ("better", "worse"):
            differing = sorted((c for c in group if c.answer == answer), key=lambda c: abs(c.difference), reverse=True)
            digits = difference_decimals(differing)
            sure = ["certain" if c.is_certain else _equation("p", p_value(c.p_holm)) for c in differing]
            texts = [f"{c.a} ({signed(c.difference, digits)}, {by})" for c, by in zip(differing, sure, strict=True)]
            parts.append(f"{answer}: {listed(texts, MAX_COMPARED)}" if texts else "")
        as_good = [comparison.a for comparison in group if is_not_worse(comparison, question)]
        parts.append(f"not worse by {question.non_inferiority:g}: {listed(as_good, MAX_COMPARED)}" if as_good else "")
        equal = [comparison.a for comparison in group if comparison.answer == "equal"]
        parts.append(f"equal: {listed(equal, MAX_COMPARED)}" if equal else "")
        rest = [c for c in group if c.answer == "undecided" and not is_not_worse(c, question)]
        untested = [c for c in rest if min(c.summary_a.n, c.summary_b.n) < 2]
        digits = difference_decimals(untested)
        texts = [f"{c.a} ({signed(c.difference, digits)})" for c in untested]
        parts.append(f"not tested, for one seed has no spread: {listed(texts, MAX_COMPARED)}" if texts else "")
        undecided = [c.a for c in rest if c not in untested]
        parts.append(f"not shown to differ: {listed(undecided, MAX_COMPARED)}" if undecided else "")
        sentences.append(f"In {metric}, against {others}: {'; '.join(filter(None, parts))}.")
    return sentences


def _equation(symbol: str, text: str) -> str:
    """`P = 0.57`, `P > 0.99`."""
    return f"{symbol} {text[0]} {text[1:]}" if text[:1] in ("<", ">") else f"{symbol} = {text}"


def of_replicates(study: Study, objectives: Sequence[Objective]) -> tuple[str, ...]:
    """Sentences on replicates and evaluations without a result, and on seeds that changed nothing."""
    states: Counter[str] = Counter(replicate.state for replicate in study.replicates)
    open_states = {
        "failed": "failed",
        "pruned": "pruned by their curves",
        "running": "still running",
        "stopped": "stopped before the end",
    }
    parts = [f"{states[state]:,} {words}" for state, words in open_states.items() if states[state]]
    total = counted(len(study.replicates), "replicate")
    found = [f"Of {total}, {listed(parts)}: they count in nothing here."] if parts else []
    asked = columns_of([objective.metric for objective in objectives], study.metrics())
    if "" not in asked and (others := [name for name in study.evaluations() if name not in asked]):
        found.append(f"In no front, for an objective was not reported there: evaluation {listed(others)}.")
    of_condition: dict[str, list[Mapping[str, float]]] = {}
    for one in study.replicates:
        of_condition.setdefault(one.condition, []).extend([one.metrics] if one.state == "complete" else [])
    several = [metrics for metrics in of_condition.values() if len(metrics) > 1]
    if several and all(one == metrics[0] for metrics in several for one in metrics):
        found.append("No metric differs between the seeds of any condition: does `config.seed` reach the model?")
    return tuple(found)


def _gaps(answers: Answers) -> list[str]:
    """Replicates and conditions that are missing."""
    gaps = list(of_replicates(answers.study, front_objectives(answers)))
    if missing := missing_conditions(answers):
        gaps.append(f"Without a value, and in no comparison: {listed(missing)}.")
    if compared := {comparison.a for comparison in answers.comparisons}:
        others = [point for point in answers.front.points if point.condition != answers.question.reference]
        if lacking := [point.name for point in others if point.name not in compared]:
            gaps.append(f"In no comparison, for some objective has no value: {listed(lacking)}.")
    return gaps


def _mixtures(answers: Answers, provenance: StudyProvenance) -> list[str]:
    """What was not the same throughout, though it should be."""
    num_versions, study = len(provenance.code_versions), answers.study
    data = {name: {r.data_fingerprint for r in study.of(name)} - {""} for name in study.conditions}
    mixed = [name for name, own in data.items() if len(own) > 1]
    found = [f"Results of {num_versions} versions of the code are mixed."] if num_versions > 1 else []
    if mixed:
        found.append(f"Replicates of one condition had different data: {listed(mixed)}.")
    of_data: dict[str, list[str]] = {}
    for name, own in data.items():
        for fingerprint in own:
            of_data.setdefault(fingerprint, []).append(name)
    if len(parts := [listed(names) for names in of_data.values()]) > 1 and not mixed:
        some = " / ".join(parts[:MAX_NAMED]) + (" / ..." if len(parts) > MAX_NAMED else "")
        found.append(f"Conditions had different data ({some}), which may be a part of their differences.")
    complete = {name: [one for one in study.of(name) if one.state == "complete"] for name in study.conditions}
    kinds = {name: {one.device for one in own} - {""} for name, own in complete.items() if own}
    every = sorted(set().union(*kinds.values()))
    if len(every) > 1:
        apart = [name for name, own in kinds.items() if own != set(every)]
        on_each = (
            f"and not every condition on each ({listed(apart)}): a part of their differences may be the processors'."
            if apart
            else "and every condition on each: the spread of its seeds has what they add."
        )
        found.append(f"Replicates ran on {len(every)} kinds of processors ({listed(every)}), {on_each}")
    return found
