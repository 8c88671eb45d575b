"""The thesis's conclusions as claims, against its own numbers."""

import itertools
import math

import pytest
from scipy import stats

from search_spaces.claim import JointClaim, Place
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep


def perplexity(condition: str) -> Place:
    return Place(condition, "perplexity", "test")


def claim_of(identity: str):
    sweep = ".".join(identity.split(".")[:2])
    return {claim.id: claim for claim in claims_of(find_sweep(sweep))}[identity]


# figure 5.4a: perplexity and standard deviation by rate
RATES = {
    0.1: (141.32, 4.83),
    0.2: (140.37, 4.49),
    0.3: (145.51, 4.97),
    0.4: (139.14, 8.29),
    0.5: (143.95, 4.17),
    0.6: (143.25, 3.91),
}


def test_no_pair_of_printed_rates_differs_significantly():
    """Section 5.3.3; the margin of a pair is what a two-sided t-test of four against four would have shown."""
    claim = claim_of("lm.mc_dropout_rate.rates.same.perplexity")
    assert isinstance(claim, JointClaim) and claim.source.place == "section 5.3.3 and Figure 5.4"
    pairs = list(itertools.combinations(RATES, 2))
    assert [(part.left.condition, part.right.condition) for part in claim.parts] == [
        (f"rate={low}", f"rate={high}") for low, high in pairs
    ]
    for (low, high), part in zip(pairs, claim.parts, strict=True):
        (mean, std), (other, other_std) = RATES[low], RATES[high]
        error = math.sqrt((std**2 * 4 / 3 + other_std**2 * 4 / 3) / 4)
        assert part.relation == "same" and part.margin == pytest.approx(stats.t.ppf(0.975, 6) * error, rel=1e-4)
        assert abs(mean - other) < part.margin


# table 5.2, MC dropout: perplexity by K
SAMPLES = {1: 145.77, 5: 138.02, 10: 140.81, 25: 143.88, 50: 143.85}


def test_the_printed_gains_diminish_behind_five_samples():
    claim = claim_of("lm.samples.mc_dropout.diminishing.after.K=5")
    first, *others = claim.parts
    assert (first.left, first.relation, first.right) == (
        perplexity("mc_dropout,K=5"),
        "below",
        perplexity("mc_dropout,K=1"),
    )
    assert SAMPLES[5] < SAMPLES[1] and len(others) == 3
    for count, part in zip((10, 25, 50), others, strict=True):
        assert part.left.conditions == ("mc_dropout,K=5", f"mc_dropout,K={count}") and part.relation == "below"
        assert part.right.conditions == ("mc_dropout,K=1", "mc_dropout,K=5")
        assert SAMPLES[5] / SAMPLES[count] < SAMPLES[1] / SAMPLES[5]


def test_variational_dropout_is_claimed_to_be_magnitudes_worse_than_what_the_thesis_has_beside_it():
    claim = claim_of("lm.signals.variational.magnitudes.above")
    assert "magnitudes" in claim.text and claim.source.place == "section 5.3.1"
    assert {part.left for part in claim.parts} == {perplexity("variational")}
    assert {part.right.scale for part in claim.parts} == {10.0}
    kinds = {part.right.condition.partition(",")[0] for part in claim.parts}
    assert kinds == {"baseline", "surprisal", "mc_dropout", "ensemble"}


@pytest.mark.parametrize(("sweep", "condition"), [("step_size", "eq44,step=5"), ("error_signal", "eq44,recoded")])
def test_recoding_with_the_best_fixed_step_is_claimed_to_raise_delta_of_no_token(sweep, condition):
    """Section 6.1.2: of the best surprisal-based model, whose step is 5 (section 6.1.1)."""
    claim = claim_of(f"lm.{sweep}.{condition}.never.raises.delta")
    assert claim.left == Place(condition, "raised_share", "test")
    assert (claim.relation, claim.right, claim.margin, claim.of) == ("same", 0.0, 0.0, "every")
    sweep = find_sweep(f"lm.{sweep}")
    recoder = sweep.config(sweep.condition(condition), 1).recoder
    assert (recoder.signal.variant, recoder.signal.target, recoder.step.size) == ("eq44", "gold", 5.0)
