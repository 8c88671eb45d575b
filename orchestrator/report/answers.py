"""Everything that a study says about its sweep's question."""

from dataclasses import dataclass

from orchestrator.claims.verdict import Verdict
from orchestrator.comparison import Comparison
from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.question import Question
from orchestrator.study import Study


@dataclass(frozen=True)
class Answers:
    """A front with its uncertainty, comparisons with the reference, verdicts on what was published.

    Attributes:
        front: of the sweep's first two objectives, or three.
        comparisons: every point against the reference's in every objective; empty without a reference.
    """

    question: Question
    study: Study
    front: UncertainFront
    comparisons: tuple[Comparison, ...]
    verdicts: tuple[Verdict, ...]
