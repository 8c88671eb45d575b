"""What a study says of a published order or trend."""

import math
from collections.abc import Sequence

import numpy as np

from orchestrator.published.compound_test import CompoundTest, too_few
from orchestrator.published.statement_verdict import Values
from orchestrator.published.verdict import Verdict
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.power import MOST_SEEDS, POWER
from orchestrator.statistics.summary import summarise
from orchestrator.statistics.trend import page_p
from search_spaces.claim import TrendClaim

LEAST = 2


def trend_test(claim: TrendClaim, columns: Sequence[Values]) -> CompoundTest | Verdict:
    """Page's test (1963) over the seeds that all places share; the difference is of the last place and the first.

    Its p-value is twice the one-sided one of the side on which the ranks were seen.
    """
    seeds = sorted(set.intersection(*(set(column) for column in columns)))
    if len(seeds) < LEAST:
        return too_few(claim, columns[0], len(seeds), LEAST)
    values = np.array([[column[seed] for column in columns] for seed in seeds])
    rising, falling = page_p(values), page_p(values[:, ::-1])
    as_claimed, against = (rising, falling) if claim.relation == "rises" else (falling, rising)
    p = min(1.0, 2 * min(rising, falling))
    change = Difference.paired(values[:, -1].tolist(), values[:, 0].tolist())
    return CompoundTest(
        claim=claim,
        ours=summarise(values[:, 0].tolist()),
        difference=change.value,
        is_as_claimed=as_claimed < against,
        p=p,
        test=f"Page's test of {len(columns)} places",
        num_seeds=len(seeds),
        needed=lambda level: _needed(p, len(seeds), level),
        interval=change.interval(),
        tie=_tie(rising, falling),
    )


def _tie(rising: float, falling: float) -> str:
    """In words, where both sides are equally likely, apart from rounding; both are 1 where no seed has two ranks."""
    if not math.isclose(rising, falling, rel_tol=1e-9):
        return ""
    if math.isclose(rising, 1.0, rel_tol=1e-9):
        return "All places are the same in every replicate"
    return "The ranks rise as much as they fall"


def _needed(p: float, num_seeds: int, level: float) -> int | None:
    """By the normal law of L, whose distance from its mean grows as the root of the number of seeds."""
    from scipy.special import ndtri

    if p >= 1:
        return None
    needed = num_seeds * ((ndtri(1 - level / 2) + ndtri(POWER)) / ndtri(1 - p / 2)) ** 2
    return None if needed > MOST_SEEDS else math.ceil(needed)
