"""The table of conditions: every objective with its spread, and how sure the place on the front is."""

import math
from collections.abc import Sequence
from typing import Final

from orchestrator.pareto.front import MOST_OBJECTIVES
from orchestrator.report.answers import Answers
from orchestrator.report.numerals import between, decimals, estimate, fixed, probability
from orchestrator.report.table import INTERVAL, Cell, Column, Table
from orchestrator.report.training_table import marked, training_sentences
from orchestrator.results.config_columns import config_columns
from orchestrator.results.points import Point
from orchestrator.statistics.correlation import over_seeds
from orchestrator.statistics.summary import NONE
from search_spaces.known_names import known_names
from search_spaces.sweep import Objective

MOST_FAILED: Final = 6
NO_VALUE: Final = "no value"


def condition_table(answers: Answers) -> Table:
    """Every point in the order of the front, then the conditions that have none; those on the front are marked.

    Raw columns: condition, evaluation, n, for each objective its name with `_mean`, `_std`, `_low` and `_high` (95 %),
    on_front (of the means), p_on_front, p_dominates_reference, standing; then `config.PATH` for each path of the
    configs.
    """
    front, objectives = answers.front, front_objectives(answers)
    missing = missing_conditions(answers)
    numbers = [f"{o.metric}_{end}" for o in objectives for end in ("mean", "std", "low", "high")]
    tail = ("on_front", "p_on_front", "p_dominates_reference", "standing")
    rows: list[tuple[Cell, ...]] = []
    for point, sure in zip(front.points, front.memberships, strict=True):
        own: list[Cell] = []
        for summary, interval in zip(point.summaries, sure.intervals, strict=True):
            own += [summary.mean, summary.std, interval.low, interval.high]
        chances = (sure.on_front, sure.dominates_reference)
        rows.append((point.condition, point.evaluation, _n(point), *own, point.is_front, *chances, sure.standing))
    rows += [(name, "", 0, *[None] * len(numbers), None, None, None, NO_VALUE) for name in missing]
    configs = config_columns(answers.study.configs, [*(point.condition for point in front.points), *missing])
    rows = [(*row, *(column[i] for column in configs.values())) for i, row in enumerate(rows)]
    return Table(
        name=f"{answers.question.sweep}.conditions",
        title=f"{answers.question.sweep}: {' against '.join(o.metric for o in objectives)}",
        columns=("condition", "evaluation", "n", *numbers, *tail, *configs),
        rows=tuple(rows),
        printed=_printed(answers, missing),
        marked=frozenset(i for i, point in enumerate(front.points) if point.is_front),
        notes=_notes(answers),
    )


def front_objectives(answers: Answers) -> tuple[Objective, ...]:
    """The objectives of the question that the front is of."""
    points = answers.front.points
    return answers.question.objectives[: len(points[0].summaries) if points else MOST_OBJECTIVES]


def is_reference_point(answers: Answers, point: Point) -> bool:
    """Whether the point is the reference's, which has one for each evaluation."""
    return bool(answers.front.reference) and point.condition == answers.question.reference


def reference_names(answers: Answers) -> set[str]:
    """The names of the reference's points, as tables print them."""
    return {marked(answers.study, point.name) for point in answers.front.points if is_reference_point(answers, point)}


def missing_conditions(answers: Answers) -> tuple[str, ...]:
    """The conditions of the study without a complete replicate that has every objective."""
    found = {point.condition for point in answers.front.points}
    return tuple(name for name in answers.study.conditions if name not in found)


def _n(point: Point) -> int:
    return min(summary.n for summary in point.summaries)


def _printed(answers: Answers, missing: Sequence[str]) -> tuple[Column, ...]:
    front, num_missing = answers.front, len(missing)
    blank = ("",) * num_missing
    columns = [
        Column(
            "condition", (*(marked(answers.study, point.name) for point in front.points), *missing), "condition", False
        )
    ]
    for i, objective in enumerate(front_objectives(answers)):
        summaries = [point.summaries[i] for point in front.points]
        intervals = [*(sure.intervals[i] for sure in front.memberships), *[NONE] * num_missing]
        metric, digits = objective.metric, decimals(summaries)
        means = tuple(estimate(summary, digits) for summary in summaries)
        columns.append(Column(f"{metric} ({objective.direction[:3]})", means + blank, f"{metric}_mean"))
        if not all(math.isnan(interval.low) for interval in intervals):
            texts = tuple(between(interval, digits) for interval in intervals)
            columns.append(Column(INTERVAL, texts, f"{metric}_low"))
    columns.append(Column("n", (*(str(_n(point)) for point in front.points), *["0"] * num_missing), "n"))
    chances = tuple(probability(sure.on_front) for sure in front.memberships)
    columns.append(Column("P(front)", chances + blank, "p_on_front"))
    if front.reference:
        chances = tuple(probability(sure.dominates_reference) for sure in front.memberships)
        columns.append(Column("P(dominates reference)", chances + blank, "p_dominates_reference"))
    standings = (*(sure.standing for sure in front.memberships), *[NO_VALUE] * num_missing)
    return (*columns, Column("standing", standings, "standing", False))


def _notes(answers: Answers) -> tuple[str, ...]:
    front = answers.front
    notes = ["Mean ± sample standard deviation over n seeds; the intervals are of the mean; min: lower is better."]
    notes.append("Bold: on the front of the means.")
    if front.num_draws:
        draws = f"all {front.num_draws:,}" if front.is_exact else f"{front.num_draws:,}"
        kind = "paired " if front.is_paired else ""
        notes.append(
            f"P(front): share of {draws} {kind}resamples of the seeds in which nothing dominates the condition."
        )
    if front.reference:
        several = len({point.evaluation for point in front.points}) > 1
        notes.append(f"The reference is {answers.question.reference}{', under the same evaluation' * several}.")
    if failed := [f"{one.condition} seed {one.seed}" for one in answers.study.replicates if one.state == "failed"]:
        notes.append(f"Failed, and not counted: {known_names(failed, most=MOST_FAILED)}.")
    # Whether seeds make conditions go up and down together in the first objective, which pairing would use.
    first = next(iter(front.points), None)
    alike = [p for p in front.points if first and (p.evaluation, p.seeds) == (first.evaluation, first.seeds)]
    if found := over_seeds([point.values[0] for point in alike]):
        low, high, median = (fixed(value, 2) for value in (found.low, found.high, found.median))
        pairs = f"median {median}, {low} to {high} over {found.num_pairs:,} pairs" if found.num_pairs > 1 else median
        pairing = "Seeds are paired" if answers.question.test == "paired_permutation" else "Seeds are not paired"
        metric = front_objectives(answers)[0].metric
        notes.append(f"{pairing}; correlation over seeds between conditions in {metric}: {pairs}.")
    return (*notes, *training_sentences(answers.study, [point.name for point in front.points]), *front.notes)
