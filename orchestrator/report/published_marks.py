"""Published numbers as points beside a front."""

from collections.abc import Iterable, Sequence

from orchestrator.published.places import obstacle
from orchestrator.published.verdict import Finding
from orchestrator.report.answers import Answers
from orchestrator.report.claim_table import published_decimals, published_text
from orchestrator.report.figure.front import Published
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim import Claim, NumberClaim
from search_spaces.size import size_of


def published_marks(question: Question, study: Study) -> tuple[Published, ...]:
    """Every published row of the sweep with a number for each objective; those of other data are named so."""
    metrics = [objective.metric for objective in question.objectives]
    rows = [row for row in _rows(question.claims, metrics) if len(row) == len(metrics)]
    is_full = size_of(study.sweep) == "full"
    return tuple(_mark(row, is_full and not any(obstacle(claim, study, question) for claim in row)) for row in rows)


def compared_marks(answers: Answers) -> tuple[Published, ...]:
    """Every published row that the study is held against in two objectives, with its row of the table of claims."""
    numbers = {verdict.claim.id: i for i, verdict in enumerate(answers.verdicts)}
    compared = (v.claim for v in answers.verdicts if v.finding is not Finding.not_comparable)
    rows = _rows(compared, [objective.metric for objective in answers.question.objectives])
    return tuple(_mark(row, True, f"claim-{numbers[row[0].id]}") for row in rows if len(row) > 1)


def _rows(claims: Iterable[Claim], metrics: Sequence[str]) -> list[list[NumberClaim]]:
    """The numbers of each row of a published table that may be drawn beside `metrics`, in their order."""
    rows: dict[str, dict[str, NumberClaim]] = {}
    for claim in claims:
        if isinstance(claim, NumberClaim) and claim.row:
            rows.setdefault(claim.row, {})[claim.objective] = claim
    return [[row[metric] for metric in metrics if metric in row] for row in rows.values()]


def _mark(row: Sequence[NumberClaim], is_comparable: bool, id: str = "") -> Published:
    is_computed = any(claim.published.is_computed for claim in row)
    origin = "computed of what is published" if is_computed else "published"
    lines = [f"{origin}: {row[0].source.text}"]
    for claim in row:
        published = published_text(claim.published, published_decimals(claim.published))
        lines.append(f"{claim.place.metric} of {claim.place.condition}: {published}")
    lines += dict.fromkeys(claim.note for claim in row if claim.note)
    paper = row[0].source.paper.partition(" (")[0]
    legend = f"{origin} ({paper})" if is_comparable else f"{origin}, other data"
    return Published({claim.objective: claim.in_our_unit for claim in row}, "\n".join(lines), legend, is_comparable, id)
