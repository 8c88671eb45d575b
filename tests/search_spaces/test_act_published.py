"""What is held of Graves' paper (arXiv:1603.08983, version 6), number for number."""

import pytest

from search_spaces.claim import NumberClaim, StatementClaim, TrendClaim
from search_spaces.find import find_sweep
from search_spaces.source_items import OURS
from search_spaces.sources import claims_in

CLAIMS = {claim.id: claim for claim in claims_in("act")}
GRID = [round(i * 10.0**-j, 4) for j in (1, 2, 3, 4) for i in range(1, 11)]  # section 3, with repetitions


def statement(identity: str) -> StatementClaim:
    claim = CLAIMS[identity]
    assert isinstance(claim, StatementClaim)
    return claim


def test_every_place_is_in_every_sweep_of_its_claim():
    for claim in CLAIMS.values():
        for sweep in claim.sweeps:
            names = {condition.name for condition in find_sweep(sweep).conditions}
            assert {name for place in claim.places for name in place.conditions} <= names, claim.id


@pytest.mark.parametrize(("task", "error", "figure"), [("parity", 40.0, 4), ("logic", 20.0, 8), ("sort", 12.0, 17)])
def test_errors_without_act_of_20_networks(task, error, figure):
    """Sections 3.1, 3.2 and 3.4: almost 40 %, around 0.2, around 12 %."""
    claim = CLAIMS[f"act.{task}.no_act"]
    assert isinstance(claim, NumberClaim)
    assert (claim.published.mean, claim.published.n, claim.published.std) == (error, 20, None)
    assert claim.source.place.endswith(f"figure {figure}")


def test_addition_is_perfectly_solved_at_every_tau():
    """Section 3.3: "perfectly solved", which is an error of 0 and no threshold above it."""
    found = [one for one in CLAIMS.values() if one.id.startswith("act.addition.solved")]
    assert len(found) == len(set(GRID)) == 37
    for tau in set(GRID):
        claim = statement(f"act.addition.solved.{tau:g}")
        assert (claim.left.text, claim.left.scale) == (f"sequence_error@test of tau={tau:g}", 100)
        assert (claim.relation, claim.right, claim.margin) == ("same", 0.0, 1.0)
        assert claim.source.place == "addition, figure 12"


def test_text_is_of_10000_iterations_and_none_of_its_penalties_is_below_a_thousandth():
    found = [one for one in CLAIMS.values() if one.id.startswith("act.text.")]
    assert {one.setting.requires["training.num_iterations"] for one in found} == {"10000"}
    assert {one.setting.requires["hidden_size"] for one in found} == {"1500"}
    taus = {float(name.removeprefix("tau=")) for one in found for name in one.places[0].conditions}
    assert taus == {0.001, 0.006, 0.01, 0.1, 1.0}
    others = [one for one in CLAIMS.values() if one.setting.requires["data.kind"] != "text"]
    iterations = {one.setting.requires.get("training.num_iterations") for one in others if one.source.paper != OURS}
    assert iterations == {"1000000"}


@pytest.mark.parametrize(
    ("identity", "left", "relation", "right", "figure"),
    [
        ("act.parity.rises.0.001", "updates_per_difficulty@test of tau=0.001", "above", 0.0, 6),
        (
            "act.parity.steeper.0.001",
            "updates_per_difficulty@test of tau=0.001",
            "above",
            "updates_per_difficulty@test of tau=0.01",
            6,
        ),
        ("act.logic.one.1", "mean_updates@test of tau=1", "same", 1.0, 9),
        ("act.logic.cluster.0.0001", "mean_updates@test of tau=0.0001", "same", 5.5, 9),
        (
            "act.logic.rises.0.01",
            "mean_updates_difficulty_10@test of tau=0.01",
            "above",
            "mean_updates_difficulty_5@test of tau=0.01",
            10,
        ),
        ("act.addition.slope.1", "updates_per_difficulty@test of tau=1", "same", 1.0, 14),
        ("act.addition.bound", "ponder_above_digits@test of tau=0.0009", "above", 0.0, 15),
        (
            "act.sort.sublinear",
            "mean_updates_difficulty_15@test of tau=0.0001 / mean_updates_difficulty_5@test of tau=0.0001",
            "below",
            3.0,
            19,
        ),
        (
            "act.sort.spike",
            "mean_updates_end_of_input@test of tau=0.001",
            "above",
            "mean_updates_elsewhere@test of tau=0.001",
            20,
        ),
        (
            "act.text.clause.0.006",
            "mean_updates_boundary@test of tau=0.006",
            "above",
            "mean_updates_space@test of tau=0.006",
            23,
        ),
        (
            "act.text.loss.0.006",
            "surprisal_bits_boundary@test of tau=0.006",
            "below",
            "bits_per_character@test of tau=0.006",
            23,
        ),
        (
            "act.text.calm.0.006",
            "mean_updates_before_rare@test of tau=0.006",
            "below",
            "mean_updates@test of tau=0.006",
            24,
        ),
    ],
)
def test_what_is_said_of_ponder(identity, left, relation, right, figure):
    claim = statement(identity)
    found = claim.right if isinstance(claim.right, float) else claim.right.text
    assert (claim.left.text, claim.relation, found) == (left, relation, right)
    assert claim.source.place.endswith(f"figure {figure}")


@pytest.mark.parametrize(
    ("identity", "metric", "relation", "figure"),
    [
        ("act.parity.sequence_error.by_tau", "sequence_error@test", "rises", 5),
        ("act.logic.mean_updates.by_tau", "mean_updates@test", "falls", 9),
    ],
)
def test_what_is_said_along_the_time_penalty(identity, metric, relation, figure):
    """Section 3.1: "more accurate with lower time penalties"; 3.2: "for higher tau values ponder time reduces to 1"."""
    claim = CLAIMS[identity]
    assert isinstance(claim, TrendClaim) and claim.relation == relation
    assert [place.condition for place in claim.places] == ["tau=0.0001", "tau=0.001", "tau=0.01", "tau=0.1"]
    assert {place.column for place in claim.places} == {metric}
    assert claim.source.place.endswith(f"figure {figure}")
