"""Published means held against each other by their printed spreads: would the source's own numbers show it?"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.significance import holm
from search_spaces.claim import Claim, FrontClaim, JointClaim, NumberClaim, Place, StatementClaim


@dataclass(frozen=True)
class PrintedPair:
    """Two numbers of one metric, both printed with a spread over seeds.

    Attributes:
        difference: of the first less the second, in the published unit, by Welch (1947); printed standard deviations
            are the population's and are made the sample's.
        p: of Welch's t-test.
        p_holm: `p` adjusted over all pairs of the sweep.
        said: what the source says of the two, where that is a claim; else empty.
    """

    a: NumberClaim
    b: NumberClaim
    difference: Difference
    p: float
    p_holm: float
    said: str


def printed_pairs(claims: Sequence[Claim]) -> tuple[PrintedPair, ...]:
    """Every two numbers of one metric and setting among claims of a sweep that have mean, spread and n, each row once.

    Pairs that the source says something of stand first.
    """
    numbers: dict[tuple[str | float, ...], NumberClaim] = {}
    for one in claims:
        if isinstance(one, NumberClaim) and one.published.sample_std > 0 and not one.published.is_computed:
            row = one.place.metric, one.setting.title, one.source.text, one.published.mean, one.published.sample_std
            numbers.setdefault(row, one)
    pairs = [
        (a, b)
        for a, b in itertools.combinations(numbers.values(), 2)
        if (a.place.metric, a.setting.title) == (b.place.metric, b.setting.title)
    ]
    sides = [[(n.published.mean, n.published.sample_std, n.published.n or 0) for n in pair] for pair in pairs]
    differences = [Difference.of_published(*pair) for pair in sides]
    p_values = [one.p() for one in differences]
    said: dict[frozenset[tuple[str, str, str]], str] = {}
    for one in claims:  # statements on two means, also those that are parts of a claim
        if isinstance(one, StatementClaim | JointClaim):
            parts = one.parts if isinstance(one, JointClaim) else (one,)
            compared = [(p.left, p.right) for p in parts if p.of == "mean" and isinstance(p.right, Place)]
        elif isinstance(one, FrontClaim):
            compared = [pair for row in one.others for pair in zip(one.point, row, strict=True)]
        else:
            continue
        for left, right in compared:
            said.setdefault(frozenset((_key(left), _key(right))), one.text)
    found = [
        PrintedPair(a, b, difference, p, adjusted, said.get(frozenset((_key(a.place), _key(b.place))), ""))
        for (a, b), difference, p, adjusted in zip(pairs, differences, p_values, holm(p_values), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: not one.said))


def _key(place: Place) -> tuple[str, str, str]:
    """Condition, evaluation and metric; a number that released code counted has the name of the corrected one."""
    return place.condition, place.evaluation, place.metric.removeprefix("released_")
