"""No verdict stands on a race that was stopped, if a tenth more of it would overturn the difference."""

import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim import JointClaim, NumberClaim, Place, Published, Setting, Source, StatementClaim, TrendClaim
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.improved import with_slopes

PER = {"routed": (0.500, 0.502, 0.498), "plain": (0.550, 0.552, 0.548), "other": (0.650, 0.652, 0.648)}
CONFIGS: dict[str, dict[str, str]] = {name: {} for name in PER}
SOURCE, SETTING = Source("A paper", "table 1"), Setting("here")
ROUTED, PLAIN, OTHER = (Place(name, "per", scale=100.0) for name in PER)


def study(slopes: dict[str, float], metric: str = "valid_per") -> Study:
    replicates = [
        replicate(name, seed, metrics={"per": value, "macs": 1.0 + value})
        for name, values in PER.items()
        for seed, value in enumerate(values, 1)
    ]
    return with_slopes(Study("s", tuple(replicates)), slopes, metric)


def statement(left: Place = ROUTED, right: Place | float = PLAIN) -> StatementClaim:
    return StatementClaim("below", ("s",), "Below.", left, "below", right, SOURCE, SETTING)


def verdict(claim, slopes: dict[str, float], metric: str = "valid_per"):
    asked = Question("s", "", (Objective("per"),), "", "welch", (1, 2, 3), CONFIGS, claims=(claim,))
    (found,) = judge(study(slopes, metric), asked)
    return found


FLAT = dict.fromkeys(PER, 0.0)
CLAIMS = [
    statement(),
    NumberClaim("n", ("s",), ROUTED, Published(50.0, 0.2, 3), 1.0, "", SOURCE, SETTING),
    JointClaim("j", ("s",), "Both.", (statement(), statement(right=OTHER)), SOURCE, SETTING),
    TrendClaim("t", ("s",), "Rises.", (ROUTED, PLAIN, OTHER), "rises", SOURCE, SETTING),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
def test_a_verdict_that_a_tenth_more_would_overturn_is_open(claim):
    """Of what falls by .01 a step a tenth, of two steps, takes two points; intervals are half a point wide."""
    assert verdict(claim, FLAT).finding == Finding.reproduced
    for moving in ({"routed": -0.01}, {"routed": -0.01, "plain": -0.005, "other": -0.005}):
        found = verdict(claim, FLAT | moving)
        assert found.finding == Finding.inconclusive and found.seeds_needed is None
        assert found.reason.startswith("Training was stopped while it still improved: a tenth more would take")
        assert "As trained: REPRODUCED. " in found.reason


def test_the_sentence_has_the_difference_before_and_after():
    found = verdict(statement(), FLAT | {"plain": -0.01})
    assert "from -5 to -2.96, out of its interval (-5.4" in found.reason
    assert found.difference == pytest.approx(-5)


def test_a_contradiction_is_open_too():
    claim = statement(PLAIN, ROUTED)
    assert verdict(claim, FLAT).finding == Finding.worse
    assert verdict(claim, FLAT | {"plain": -0.01}).finding == Finding.inconclusive


def test_what_moves_alike_or_little_leaves_the_verdict():
    assert verdict(statement(), dict.fromkeys(PER, -0.01)).finding == Finding.reproduced
    assert verdict(statement(), FLAT | {"routed": -0.0005}).finding == Finding.reproduced
    assert verdict(statement(), FLAT | {"other": -0.01}).finding == Finding.reproduced


def test_what_rises_again_or_is_not_known_is_not_extrapolated():
    assert verdict(statement(), FLAT | {"routed": 0.05}).finding == Finding.reproduced
    assert verdict(statement(), {}).finding == Finding.reproduced


def test_a_cost_stays_where_it_is():
    """Training validates no cost here, so nothing of it is foreseen."""
    claim = statement(Place("routed", "macs"), Place("plain", "macs"))
    assert verdict(claim, FLAT | {"routed": -0.5}).finding == Finding.reproduced


def test_what_only_selects_says_nothing_of_another_metric():
    assert verdict(statement(), FLAT | {"routed": -0.5}, "valid_loss_nats").finding == Finding.reproduced
