"""Published numbers of one row of a table, as points beside a front."""

from dataclasses import dataclass

from orchestrator.claims.claim import NumberClaim
from orchestrator.claims.verdict import Finding
from orchestrator.report.answers import Answers
from orchestrator.report.claim_table import published_text
from orchestrator.report.numerals import written_decimals


@dataclass(frozen=True)
class PublishedPoint:
    """In the study's unit; `claim` is the number of the verdict on its y."""

    claim: int
    text: str
    x: float
    y: float


def published_points(answers: Answers, x_metric: str, y_metric: str) -> tuple[PublishedPoint, ...]:
    """One for each row of a published table that has both metrics and can be compared with the study."""
    rows: dict[str, dict[str, tuple[int, NumberClaim]]] = {}
    for i, verdict in enumerate(answers.verdicts):
        claim = verdict.claim
        if (
            isinstance(claim, NumberClaim)
            and claim.row
            and claim.objective
            and verdict.finding is not Finding.not_comparable
        ):
            rows.setdefault(claim.row, {})[claim.objective] = (i, claim)
    found = [row for row in rows.values() if x_metric in row and y_metric in row]
    return tuple(_point(row[x_metric][1], *row[y_metric]) for row in found)


def _point(x: NumberClaim, number: int, y: NumberClaim) -> PublishedPoint:
    lines = [f"published: {y.source.text}"]
    for claim in (y, x):
        published = published_text(claim.published, written_decimals(claim.published.mean))
        lines.append(f"{claim.place.metric} of {claim.place.condition}: {published}")
    lines += dict.fromkeys(claim.note for claim in (y, x) if claim.note)
    return PublishedPoint(number, "\n".join(lines), _ours(x), _ours(y))


def _ours(claim: NumberClaim) -> float:
    return claim.published.mean / claim.place.scale
