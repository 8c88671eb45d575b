"""What was published of a sweep."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from search_spaces.claim import Claim, NumberClaim
from search_spaces.size import plain_name
from search_spaces.sweep import Objective


@dataclass(frozen=True)
class PublishedPoint:
    """A row of a published table, as a point beside a front; whether it is comparable `places.obstacle` says.

    Attributes:
        name: of the row.
        values: one for each objective, in the study's unit.
        stds: their sample standard deviations; 0 where none is printed.
        claims: the numbers, one for each objective.
    """

    name: str
    values: tuple[float, ...]
    stds: tuple[float, ...]
    source: str
    claims: tuple[NumberClaim, ...]


def claims_of(sweep_name: str) -> tuple[Claim, ...]:
    """The claims that a study of the sweep can be held against, numbers first; none for a sweep of one's own.

    Args:
        sweep_name: with or without `.smoke`, whose results are comparable with nothing.
    """
    name = plain_name(sweep_name)
    return tuple(claim for claim in all_claims(name.partition(".")[0]) if name in claim.sweeps)


def all_claims(family: str) -> Iterator[Claim]:
    """Every claim about asr, act or lm; none about another family."""
    match family:
        case "asr":
            from search_spaces import asr_published as asr
            from search_spaces import asr_published_statements as asr_statements

            yield from asr.numbers()
            yield from asr_statements.statements()
        case "act":
            from search_spaces import act_published as act

            yield from act.numbers()
            yield from act.statements()
        case "lm":
            from search_spaces import lm_published as lm
            from search_spaces import lm_published_statements as lm_statements

            yield from lm.numbers()
            yield from lm_statements.statements()


def published_points(sweep_name: str, objectives: Sequence[Objective]) -> tuple[PublishedPoint, ...]:
    """Every published row that has a number for each of the objectives."""
    whole = whole_rows(claims_of(sweep_name), [objective.metric for objective in objectives])
    return tuple(
        PublishedPoint(
            name=row[0].row,
            values=tuple(claim.in_our_unit for claim in row),
            stds=tuple(claim.published.sample_std / claim.place.scale for claim in row),
            source=row[0].source.text,
            claims=tuple(row),
        )
        for row in whole
    )


def whole_rows(claims: Iterable[Claim], metrics: Sequence[str]) -> list[list[NumberClaim]]:
    """Of each row of a published table that may be drawn beside all of `metrics`, its numbers in their order."""
    rows: dict[str, dict[str, NumberClaim]] = {}
    for claim in claims:
        if isinstance(claim, NumberClaim) and claim.row:
            rows.setdefault(claim.row, {})[claim.objective] = claim
    return [[row[metric] for metric in metrics] for row in rows.values() if all(metric in row for metric in metrics)]
