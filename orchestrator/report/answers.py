"""Everything that a study says about its sweep's question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.pareto.equal_cost import EqualCost, unequal_costs
from orchestrator.pareto.front import MOST_OBJECTIVES, front
from orchestrator.pareto.membership import UncertainFront, uncertain_front
from orchestrator.published.judge import judge, statement_p_values
from orchestrator.published.verdict import Verdict
from orchestrator.results.comparison import Comparison, compare_with_reference
from orchestrator.results.lookup import no_points
from orchestrator.results.points import Point
from orchestrator.results.question import Question
from orchestrator.results.study import Study


@dataclass(frozen=True)
class Answers:
    """A front with its uncertainty, comparisons with the reference, verdicts on what was published.

    Attributes:
        front: of the question's objectives, of more than three the first three.
        comparisons: every point against the reference's in every objective; empty without a reference.
        num_tests: in the family of comparisons and statements that is adjusted together; 0 where each is its own.
        unequal_costs: of the compared points that do not cost the same, the first against the front at its own cost.
    """

    question: Question
    study: Study
    front: UncertainFront
    comparisons: tuple[Comparison, ...]
    verdicts: tuple[Verdict, ...]
    unequal_costs: tuple[EqualCost, ...] = ()
    num_tests: int = 0


def front_of(study: Study, question: Question) -> UncertainFront:
    """The front of the question's objectives, of more than three the first three, with the question's notes."""
    found = uncertain_front(study, question.objectives[:MOST_OBJECTIVES], question.reference or None)
    return replace(found, notes=(*question.notes, *found.notes))


def answer(study: Study, question: Question, beside: Sequence[float] | None = ()) -> Answers:
    """What `study` says about `question`; nothing else goes into it, so the same two give the same answers anywhere.

    Comparisons with the reference and statements are one family, by which their p-values are adjusted (Holm 1979).

    Args:
        beside: p-values of further tests on the same page, which are of the family too. None: comparisons and
            statements are a family each, as they were in bundles before format 6.

    Raises:
        InputError: if no complete replicate has all objectives.
    """
    objectives = question.objectives[:MOST_OBJECTIVES]
    found = front_of(study, question)
    if not found.points:
        raise no_points(study, objectives)
    points = found.points if objectives == question.objectives else front(study, question.objectives)
    family: list[float] = []
    if beside is None:  # verdicts of an old bundle are judged as they were
        comparisons, verdicts = compared(points, question), judge(study, question)
    else:
        of_comparisons = [one.p for one in compared(points, question)]
        of_statements = statement_p_values(study, question)
        family = [p for p in (*of_comparisons, *of_statements, *beside) if not math.isnan(p)]
        comparisons = compared(points, question, [*of_statements, *beside])
        verdicts = judge(study, question, [*of_comparisons, *beside])
    unequal: tuple[EqualCost, ...] = ()
    if comparisons:
        unequal = unequal_costs([(one.a, one.b) for one in comparisons], points, question.objectives)
    return Answers(question, study, found, comparisons, verdicts, unequal, len(family))


def compared(points: Sequence[Point], question: Question, beside: Sequence[float] = ()) -> tuple[Comparison, ...]:
    """Every point against the reference's by the question's test; none without a reference.

    Args:
        beside: p-values of other tests that are of the family too.
    """
    if not any(point.condition == question.reference for point in points):
        return ()
    return compare_with_reference(
        points, question.reference, question.objectives, question.test, tied=question.tied, beside=beside
    )
