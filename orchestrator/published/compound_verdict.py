"""What a study says of a published claim that is made of several comparisons: joint ones, and places on a front."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator.published.compound_test import CompoundTest, Needed
from orchestrator.published.statement_verdict import StatementTest
from orchestrator.published.verdict import Verdict
from search_spaces.claim import FrontClaim, JointClaim, Place, StatementClaim

Part = StatementTest | CompoundTest
Compare = Callable[[StatementClaim], Part | Verdict]


def joint_test(claim: JointClaim, compare: Compare) -> CompoundTest | Verdict:
    """All parts are shown where the least of them is (intersection-union test, Berger 1982).

    One part that is contradicted contradicts the whole, with Bonferroni's correction for its choice, and while others
    still wait for replicates; nothing is tested while some wait and no other is against it. A part that is a tie leaves
    it open.
    """
    parts, waits = _split([compare(part) for part in claim.parts])
    against = [one for one in parts if not one.is_as_claimed]
    if waits and all(one.tie for one in against):
        return replace(waits[0], claim=claim)
    ties = [one.tie for one in against if one.tie]
    deciding = against or parts
    if against:
        p = min(1.0, len(claim.parts) * min(map(_p_of_part, against)))
        needed = _least([_at(one, len(claim.parts)) for one in against])
        is_certain = any(map(_is_certain, against))
    else:
        p, needed = max(map(_p_of_part, parts)), _most([one.needed for one in parts])
        is_certain = all(map(_is_certain, parts))
    return CompoundTest(
        claim=claim,
        ours=parts[0].ours,
        difference=math.nan,
        is_as_claimed=not against,
        p=math.nan if is_certain else p,
        test=_text(deciding),
        num_seeds=min(one.num_seeds for one in deciding),
        needed=needed,
        tie=f"In one part {ties[0][0].lower()}{ties[0][1:]}" if ties and len(ties) == len(against) else "",
        waits=waits[0] if waits else None,
    )


def front_test(claim: FrontClaim, compare: Compare) -> CompoundTest | Verdict:
    """On the front is what each other is shown to be worse than in something; off it, what some other dominates.

    Each comparison is one of two means. That all others fail to dominate is an intersection of unions: the largest over
    the others of the smallest p-value of an objective, times the number of objectives (Berger 1982; Bonferroni). One
    that dominates is enough while others still wait for replicates; without one nothing is tested until then.
    """
    rows, missing = [], []
    for other in claim.others:
        row, waits = _split([compare(part) for part in _parts(claim, other)])
        missing += waits
        if not waits:
            rows.append([one for one in row if isinstance(one, StatementTest)])
    waits = sorted(missing, key=_wait, reverse=True)
    # Rows in which the other was seen at least as good in everything and better in something.
    dominated = [row for row in rows if all(one.surplus <= 0 for one in row) and any(one.surplus < 0 for one in row)]
    if waits and not dominated:
        return replace(waits[0], claim=claim)
    p, needed, deciding = _of_off(dominated, len(claim.others)) if dominated else _of_on(rows)
    every = [one for row in rows for one in row]
    return CompoundTest(
        claim=claim,
        ours=every[0].ours,
        difference=math.nan,
        is_as_claimed=(not dominated) == claim.is_on,
        p=p if deciding else math.nan,
        test=_text(deciding or every),
        num_seeds=min(one.num_seeds for one in deciding or every),
        needed=needed,
        waits=waits[0] if waits else None,
    )


def _split(found: Sequence[Part | Verdict]) -> tuple[list[Part], list[Verdict]]:
    """The tests, and what waits for replicates, the longest wait first."""
    waits = [one for one in found if isinstance(one, Verdict)]
    return [one for one in found if not isinstance(one, Verdict)], sorted(waits, key=_wait, reverse=True)


def front_parts(claim: FrontClaim) -> list[StatementClaim]:
    """That the point is better than each other in each objective."""
    return [part for other in claim.others for part in _parts(claim, other)]


def _wait(one: Verdict) -> int:
    return one.seeds_needed or 0


def _parts(claim: FrontClaim, other: Sequence[Place]) -> list[StatementClaim]:
    """That the point is better than `other` in each objective."""
    parts = []
    for left, right, direction in zip(claim.point, other, claim.directions, strict=True):
        relation = "below" if direction == "minimize" else "above"
        parts.append(StatementClaim("", (), claim.text, left, relation, right, claim.source, claim.setting))  # type: ignore[arg-type]
    return parts


def _of_on(rows: Sequence[Sequence[StatementTest]]) -> tuple[float, Needed, list[StatementTest]]:
    """The p-value, the seeds that it needs, and the tests that it rests on; none where all is certain.

    A row without spread is certainly not dominating, and neither is one in which the point is certainly better.
    """
    p, needed = 0.0, []
    tests: list[StatementTest] = []
    for row in rows:
        better = [one for one in row if one.surplus > 0]
        if all(math.isnan(one.p) for one in row) or any(map(_is_certain, better)):
            continue
        p = max(p, min(1.0, len(row) * min((one.p for one in better), default=1.0)))
        needed.append(_least([_at(one, len(row)) for one in better]))
        tests += better or row
    return p, _most(needed), tests


def _of_off(dominated: Sequence[Sequence[StatementTest]], num_others: int) -> tuple[float, Needed, list[StatementTest]]:
    """p-value, seeds and tests as of `_of_on`, where some other dominates; one row is enough."""
    tested = [[one for one in row if not math.isnan(one.p)] for row in dominated]
    p = min(max(map(_p, row)) for row in dominated)
    needed = _least([_most([_at(one, num_others) for one in row]) for row in dominated])
    return min(1.0, num_others * p), needed, [one for row in tested for one in row] if all(tested) else []


def _is_certain(one: Part) -> bool:
    """Whether what was seen is so without a test."""
    return math.isnan(one.p) and not one.tie


def _p(one: Part) -> float:
    """The p-value of a part; 0 where it is certain."""
    return 0.0 if math.isnan(one.p) else one.p


def _p_of_part(one: Part) -> float:
    """The p-value of a part, 0 where it is certain, and 1 for a tie, which shows nothing."""
    return 1.0 if one.tie else _p(one)


def _at(one: Part, num_choices: int) -> Needed:
    return lambda level: one.needed(level / num_choices)


def _most(parts: Sequence[Needed]) -> Needed:
    def needed(level: float) -> int | None:
        found = [part(level) for part in parts]
        return None if None in found else max(number for number in found if number is not None)

    return needed


def _least(parts: Sequence[Needed]) -> Needed:
    def needed(level: float) -> int | None:
        return min((number for part in parts if (number := part(level)) is not None), default=None)

    return needed


def _text(deciding: Sequence[Part]) -> str:
    """The tests that decided."""
    tested = [one for one in deciding if not math.isnan(one.p)]
    return " and ".join(dict.fromkeys(one.test for one in tested or deciding))
