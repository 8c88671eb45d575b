"""Everything that a study says about its sweep's question."""

from dataclasses import dataclass, replace
from typing import Final

from orchestrator.pareto.equal_cost import EqualCost
from orchestrator.pareto.membership import UncertainFront
from orchestrator.published.verdict import Verdict
from orchestrator.results.comparison import Comparison
from orchestrator.results.named import no_points
from orchestrator.results.question import Question
from orchestrator.results.study import Study

MOST_OBJECTIVES: Final = 3
"""Of a front."""


@dataclass(frozen=True)
class Answers:
    """A front with its uncertainty, comparisons with the reference, verdicts on what was published.

    Attributes:
        front: of the question's objectives, of more than three the first three.
        comparisons: every point against the reference's in every objective; empty without a reference.
        unequal_costs: of the compared points that do not cost the same, the first against the front at its own cost.
    """

    question: Question
    study: Study
    front: UncertainFront
    comparisons: tuple[Comparison, ...]
    verdicts: tuple[Verdict, ...]
    unequal_costs: tuple[EqualCost, ...] = ()


def front_of(study: Study, question: Question) -> UncertainFront:
    """The front of the question's objectives, of more than three the first three, with the question's notes."""
    from orchestrator.pareto.membership import uncertain_front

    found = uncertain_front(study, question.objectives[:MOST_OBJECTIVES], question.reference or None)
    return replace(found, notes=(*question.notes, *found.notes))


def answer(study: Study, question: Question) -> Answers:
    """What `study` says about `question`; nothing else goes into it, so the same two give the same answers anywhere.

    Raises:
        InputError: if no complete replicate has all objectives.
    """
    from orchestrator.pareto.equal_cost import unequal_costs
    from orchestrator.pareto.front import front
    from orchestrator.published.judge import judge
    from orchestrator.results.comparison import compare_with_reference

    objectives = question.objectives[:MOST_OBJECTIVES]
    found = front_of(study, question)
    if not found.points:
        raise no_points(study, objectives)
    points = found.points if objectives == question.objectives else front(study, question.objectives)
    comparisons: tuple[Comparison, ...] = ()
    unequal: tuple[EqualCost, ...] = ()
    if any(point.condition == question.reference for point in points):
        asked = (question.reference, question.objectives, question.test)
        comparisons = compare_with_reference(points, *asked, tied=question.tied)
        unequal = unequal_costs([(one.a, one.b) for one in comparisons], points, question.objectives)
    return Answers(question, study, found, comparisons, judge(study, question), unequal)
