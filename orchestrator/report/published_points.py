"""Published numbers of one row of a table, as points beside a front."""

from dataclasses import dataclass

from orchestrator.published.find import whole_rows
from orchestrator.published.verdict import Finding
from orchestrator.report.answers import Answers
from orchestrator.report.claim_table import published_text
from orchestrator.report.numerals import written_decimals
from search_spaces.claim import NumberClaim


@dataclass(frozen=True)
class PublishedPoint:
    """In the study's unit; `claim` is the number of the verdict on its y."""

    claim: int
    text: str
    x: float
    y: float


def published_points(answers: Answers, x_metric: str, y_metric: str) -> tuple[PublishedPoint, ...]:
    """One for each row of a published table that has both metrics and can be compared with the study."""
    verdicts = answers.verdicts
    comparable = [verdict.claim for verdict in verdicts if verdict.finding is not Finding.not_comparable]
    numbers = {verdict.claim.id: i for i, verdict in enumerate(verdicts)}
    return tuple(_point(x, numbers[y.id], y) for x, y in whole_rows(comparable, (x_metric, y_metric)))


def _point(x: NumberClaim, number: int, y: NumberClaim) -> PublishedPoint:
    lines = [f"published: {y.source.text}"]
    for claim in (y, x):
        published = published_text(claim.published, written_decimals(claim.published.mean))
        lines.append(f"{claim.place.metric} of {claim.place.condition}: {published}")
    lines += dict.fromkeys(claim.note for claim in (y, x) if claim.note)
    return PublishedPoint(number, "\n".join(lines), x.in_our_unit, y.in_our_unit)
