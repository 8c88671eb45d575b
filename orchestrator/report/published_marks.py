"""Published points for the figure of a front."""

from collections.abc import Sequence

from orchestrator.published.find import PublishedPoint, published_points
from orchestrator.published.places import obstacle
from orchestrator.report.front_drawing import PublishedMark
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.size import size_of
from search_spaces.sweep import Objective, Sweep


def published_marks(sweep: Sweep, study: Study, objectives: Sequence[Objective]) -> tuple[PublishedMark, ...]:
    """Every published row of the sweep with a number for each objective; those of other data are named so."""
    found = published_points(sweep.name, objectives)
    question = Question.of(sweep) if found else None
    return tuple(_mark(point, study, question) for point in found if question)


def _mark(point: PublishedPoint, study: Study, question: Question) -> PublishedMark:
    is_comparable = size_of(study.sweep) == "full" and not any(obstacle(c, study, question) for c in point.claims)
    paper = point.claims[0].source.paper.partition(" (")[0]
    lines = [point.source]
    for claim, value, std in zip(point.claims, point.values, point.stds, strict=True):
        lines.append(f"{claim.place.metric} {value:.5g}" + (f" ± {std:.2g}" if std else ""))
    lines += dict.fromkeys(claim.note for claim in point.claims if claim.note)
    legend = f"published ({paper})" if is_comparable else "published, other data"
    return PublishedMark(point.values, "\n".join(lines), legend, is_comparable)
