"""The tables of claims: what others published, what the study says of it, and published numbers against each other."""

from collections.abc import Sequence

from orchestrator.published.printed import PrintedPair
from orchestrator.published.verdict import Verdict
from orchestrator.report.numerals import between, decimals, estimate, fixed, p_value, signed, written_decimals
from orchestrator.report.table import INTERVAL, Cell, Column, Table
from search_spaces.claim import (
    Claim,
    FrontClaim,
    JointClaim,
    NumberClaim,
    Place,
    Published,
    StatementClaim,
    TrendClaim,
    margin_of,
)

_COLUMNS = (
    "id", "kind", "claim", "origin", "published_mean", "published_std", "published_n", "ours_mean", "ours_std",
    "ours_n", "difference", "low", "high", "margin", "p", "finding", "reason", "note", "seeds_needed", "paper", "place",
)  # fmt: skip


def claim_table(sweep: str, found: tuple[Verdict, ...]) -> Table:
    """Every verdict on a sweep's claims in its order.

    Raw columns: id, kind (number, statement, spread, joint, front or trend), claim in words, origin (published, or
    computed: by us, of published numbers), `published_` mean, std as printed and n, `ours_` the same with the sample
    standard deviation, difference with low and high (95 %), margin, p, finding, reason,
    note on the printed number, seeds_needed, paper and place of the source. All numbers are in the published unit.
    """
    return Table(
        name=f"{sweep}.claims",
        title=f"{sweep}: held against published results",
        columns=_COLUMNS,
        rows=tuple(_row(verdict) for verdict in found),
        printed=_printed(found),
        notes=_notes(found),
    )


def claim_text(claim: Claim) -> str:
    """What is claimed, in words."""
    if not isinstance(claim, NumberClaim):
        return claim.text
    return f"{claim.place.metric} of {_place_text(claim.place)} ({claim.source.place})"


def _place_text(place: Place) -> str:
    name = f"{place.condition}@{place.evaluation}" if place.evaluation else place.condition
    return f"{name} / {place.over.metric} of {_place_text(place.over)}" if place.over else name


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    claim, ours = verdict.claim, verdict.ours
    published: tuple[Cell, ...] = (None, None, None)
    if isinstance(claim, NumberClaim):
        published = (claim.published.mean, claim.published.std, claim.published.n)
    origin = claim.published.origin if isinstance(claim, NumberClaim) else "published"
    means = (ours.mean, ours.std, ours.n) if ours else (None, None, None)
    numbers = (verdict.difference, *verdict.interval, margin_of(claim), verdict.p)
    end = (verdict.finding.value, verdict.reason, claim.note, verdict.seeds_needed)
    return (
        claim.id,
        _kind(claim),
        claim_text(claim),
        origin,
        *published,
        *means,
        *numbers,
        *end,
        claim.source.paper,
        claim.source.place,
    )


def _printed(found: tuple[Verdict, ...]) -> tuple[Column, ...]:
    digits = []  # as published, or by our spread where that needs more or nothing is published
    for v in found:
        ours = decimals([v.ours]) if v.ours else 0
        digits.append(max(ours, published_decimals(v.claim.published)) if isinstance(v.claim, NumberClaim) else ours)
    pairs = list(zip(found, digits, strict=True))
    needed = (f"{v.seeds_needed:,}" if v.seeds_needed else "" for v in found)
    return (
        Column("claim", tuple(claim_text(v.claim) for v in found), "claim", False),
        Column("verdict", tuple(v.finding.value for v in found), "finding", False),
        Column("published", tuple(_published_text(v.claim, d) for v, d in pairs), "published_mean"),
        Column("ours", tuple(estimate(v.ours, d) for v, d in pairs), "ours_mean"),
        Column("difference", tuple(signed(v.difference, d) for v, d in pairs), "difference"),
        Column(INTERVAL, tuple(between(v.interval, d) for v, d in pairs), "low"),
        Column("margin", tuple(f"{margin:g}" if (margin := margin_of(v.claim)) else "" for v in found), "margin"),
        Column("p", tuple(p_value(v.p) for v in found), "p"),
        Column("reason", tuple(f"{v.reason} {v.claim.note}".strip() for v in found), "reason", False),
        Column("seeds still needed", tuple(needed), "seeds_needed"),
        Column("source", tuple(v.claim.source.text for v in found), "paper", False),
    )


def published_decimals(published: Published) -> int:
    """How many digits after the point are printed, of the mean or of the standard deviation."""
    return max(written_decimals(value) for value in (published.mean, published.std or 0.0))


def _kind(claim: Claim) -> str:
    match claim:
        case NumberClaim():
            return "number"
        case StatementClaim():
            return "spread" if claim.of == "spread" else "statement"
        case JointClaim():
            return "joint"
        case FrontClaim():
            return "front"
        case TrendClaim():
            return "trend"


def _published_text(claim: Claim, digits: int) -> str:
    match claim:
        case NumberClaim():
            return published_text(claim.published, digits)
        case StatementClaim():
            return _comparison_text(claim)
        case JointClaim():
            return "; ".join(f"{part.left.metric} {_comparison_text(part)}" for part in claim.parts)
        case FrontClaim():
            return f"{'on' if claim.is_on else 'off'} the front of {len(claim.others) + 1} points"
        case TrendClaim():
            return f"{claim.relation} over {', '.join(_place_text(place) for place in claim.places)}"


def _comparison_text(claim: StatementClaim) -> str:
    if claim.of == "every":
        return f"{claim.right:g} within {claim.margin:g} in every replicate"
    if claim.relation == "same":
        return f"within {claim.margin:g}"
    other = claim.right if isinstance(claim.right, float | int) else _place_text(claim.right)
    return f"{'spread ' if claim.of == 'spread' else ''}{claim.relation} {other}"


def published_text(published: Published, digits: int) -> str:
    """`mean ± std (n)` with what of it is printed; a number that we computed is called so."""
    text = fixed(published.mean, digits)
    if published.std is not None:
        text += f" ± {fixed(published.std, digits)}"
    if published.n is not None:
        text += f" (n = {published.n})"
    return f"computed: {text}" if published.is_computed else text


def _notes(found: tuple[Verdict, ...]) -> tuple[str, ...]:
    if not found:
        return ("Nothing published is known of this sweep.",)
    is_computed = any(isinstance(v.claim, NumberClaim) and v.claim.published.is_computed for v in found)
    return (
        "In the published unit. A published ± is the population's standard deviation, as printed; ours, the sample's.",
        *(["computed: not printed; we computed it from printed numbers, as its source or note says."] * is_computed),
        "REPRODUCED: two one-sided t-tests at 5 % find the difference within the margin (its 90 % interval is in it), "
        "or a statement's test agrees with it.",
        "p: of the test that decided; of a number whether it is within the margin, or else whether it differs; of "
        "statements adjusted by Holm.",
    )


def printed_table(sweep: str, found: Sequence[PrintedPair]) -> Table:
    """A row for each pair.

    Raw columns: a, b (their rows in the source), metric, a_mean, a_std, a_n and those of b as printed, difference (of a
    less b) with low and high (95 %), p, p_holm, said.
    """
    return Table(
        name=f"{sweep}.printed",
        title=f"{sweep}: by the source's own spreads",
        columns=(
            *("a", "b", "metric", "a_mean", "a_std", "a_n", "b_mean", "b_std", "b_n"),
            *("difference", "low", "high", "p", "p_holm", "said"),
        ),
        rows=tuple(
            (
                *(one.a.source.place, one.b.source.place, one.a.place.metric),
                *(one.a.published.mean, one.a.published.std, one.a.published.n),
                *(one.b.published.mean, one.b.published.std, one.b.published.n),
                *(one.difference.value, *one.difference.interval(), one.p, one.p_holm, one.said),
            )
            for one in found
        ),
        printed=_columns(found) if found else (),
        marked=frozenset(i for i, one in enumerate(found) if one.p_holm <= 0.05),
        notes=(
            "p: of Welch's t-test, from the printed means, standard deviations (the population's, made the sample's) "
            f"and n; Holm over the {len(found):,} pairs. In the published unit.",
        )
        if found
        else ("Of this sweep no two numbers of one metric were printed with a spread over seeds.",),
    )


def _columns(found: Sequence[PrintedPair]) -> tuple[Column, ...]:
    digits = [max(published_decimals(one.a.published), published_decimals(one.b.published)) for one in found]
    pairs = list(zip(found, digits, strict=True))
    return (
        Column("a", tuple(one.a.source.place for one in found), "a", False),
        Column("b", tuple(one.b.source.place for one in found), "b", False),
        Column("metric", tuple(one.a.place.metric for one in found), "metric", False),
        Column("a printed", tuple(published_text(one.a.published, n) for one, n in pairs), "a_mean"),
        Column("b printed", tuple(published_text(one.b.published, n) for one, n in pairs), "b_mean"),
        Column("difference", tuple(signed(one.difference.value, n) for one, n in pairs), "difference"),
        Column(INTERVAL, tuple(between(one.difference.interval(), n) for one, n in pairs), "low"),
        Column("p", tuple(p_value(one.p) for one in found), "p"),
        Column("p (Holm)", tuple(p_value(one.p_holm) for one in found), "p_holm"),
        Column("the source says", tuple(one.said for one in found), "said", False),
    )
