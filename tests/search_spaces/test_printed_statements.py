"""A shipped statement of one model against another holds in the printed numbers of the two."""

import itertools
from collections import defaultdict

import pytest

from search_spaces.claim import NumberClaim, StatementClaim
from tests.search_spaces.shipped_cells import cell
from tests.search_spaces.test_transcription import SHIPPED
from tests.search_spaces.transcription import SOURCES, read

METRICS = {"per": "error", "released_per": "error"} | dict.fromkeys(
    ("paper_flops_per_frame", "released_flops_per_frame"), "cost"
)


def key(sweep, place):
    """What a study measures; errors and costs by either count are one, as a paper prints one."""
    return sweep, place.condition, place.evaluation, METRICS.get(place.metric, place.metric)


def printed_by_key(source):
    """Transcribed numbers, by what of a study is held against them."""
    table, found = read(source), defaultdict(set)
    for claim in SHIPPED[source]:
        if isinstance(claim, NumberClaim) and claim.place.over is None and not claim.id.startswith("asr.sizes"):
            printed = table.get(cell(claim)) if "valid_flops" not in claim.id else None
            for sweep in claim.sweeps if printed else ():
                found[key(sweep, claim.place)].add(printed.number)
    return found


def compared(source):
    """Statements between two places that have printed numbers, and these."""
    numbers = printed_by_key(source)
    for claim in SHIPPED[source]:
        if not isinstance(claim, StatementClaim) or isinstance(claim.right, float):
            continue
        for sweep in claim.sweeps:
            sides = [numbers.get(key(sweep, place)) for place in (claim.left, claim.right)]
            if all(sides):
                yield claim, list(itertools.product(*sides))


def holds(claim, left, right):
    """The relation, of two numbers; equal ones bear out only what is no more than the other."""
    if claim.relation == "same":
        return abs(left - right) <= claim.margin
    gain = right - left if claim.relation == "below" else left - right
    return gain > 0 or (claim.margin > 0 and gain >= -claim.margin)


@pytest.mark.parametrize("source", SOURCES)
def test_a_statement_holds_in_the_printed_numbers(source):
    pairs = list(compared(source))
    assert len(pairs) >= {"surprisal_paper": 30, "recoding_thesis": 40, "act": 1}[source]
    wrong = {
        f"{claim.id}: {left} against {right}"
        for claim, sides in pairs
        for left, right in sides
        if not holds(claim, left, right)
    }
    assert not wrong, "\n".join(sorted(wrong))
