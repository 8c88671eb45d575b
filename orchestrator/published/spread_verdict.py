"""What a study says of a published comparison of spreads over seeds."""

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from orchestrator.published.compound_test import CompoundTest, too_few
from orchestrator.published.number_verdict import UNDECIDABLE
from orchestrator.published.statement_verdict import Test, Values, is_paired
from orchestrator.published.verdict import Verdict
from orchestrator.statistics import scale
from orchestrator.statistics.spread import (
    LEAST,
    brown_forsythe_p,
    paired_spread_required_sample_size,
    pitman_morgan_p,
    spread_required_sample_size,
)
from orchestrator.statistics.summary import summarise
from search_spaces.claim import StatementClaim

UNPLANNED: Final = "a side without spread does not tell how many seeds would show it"


def spread_test(claim: StatementClaim, left: Values, right: Values, test: Test) -> CompoundTest | Verdict:
    """The test that the left side's standard deviation is below or above the right side's.

    By Brown and Forsythe's test (1974) of two groups; by Pitman's and Morgan's (1939) where means would be compared
    seed by seed, too, and both sides vary: for theirs a side of equal values would be a certainty, from three of them.
    """
    is_by_seed = is_paired(claim, left, right, test)
    if is_by_seed:
        shared = sorted(left.keys() & right.keys())
        left, right = ({seed: group[seed] for seed in shared} for group in (left, right))
    num_seeds = min(len(left), len(right))
    if num_seeds < LEAST:
        return too_few(claim, left, num_seeds, LEAST)
    a, b = list(left.values()), list(right.values())
    ours, other = summarise(a), summarise(b)
    is_paired_test = is_by_seed and min(ours.std, other.std) > 0
    p = pitman_morgan_p(a, b) if is_paired_test else brown_forsythe_p(a, b)
    is_tie = math.isclose(ours.std, other.std, rel_tol=1e-9)
    difference = 0.0 if is_tie else ours.std - other.std
    return CompoundTest(
        claim=claim,
        ours=ours,
        difference=difference,
        is_as_claimed=difference < 0 if claim.relation == "below" else difference > 0,
        p=1.0 if is_tie or math.isnan(p) else p,
        test=f"{'Pitman and Morgan' if is_paired_test else 'Brown and Forsythe'}'s test of two standard deviations",
        num_seeds=num_seeds,
        needed=partial(_needed, a, b, is_paired_test),
        tie="Both sides have the same spread" if is_tie else "",
        unplanned=UNDECIDABLE if min(ours.std, other.std) else UNPLANNED,
    )


def _needed(a: Sequence[float], b: Sequence[float], is_paired_test: bool, level: float) -> int | None:
    first, second = summarise(a).std, summarise(b).std
    if not is_paired_test:
        return spread_required_sample_size(first, second, level)
    return paired_spread_required_sample_size(
        first, second, statistics.correlation(*(scale.normalised(np.array(x))[0].tolist() for x in (a, b))), level
    )
