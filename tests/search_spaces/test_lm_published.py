"""What is published of recoding language models, against the thesis's own words and figures."""

import math

import pytest

from search_spaces.claim import NumberClaim, Place, StatementClaim, TrendClaim
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep


def perplexity(condition: str, evaluation: str = "test") -> Place:
    return Place(condition, "perplexity", evaluation)


def added_place(kind: str, step: str) -> Place:
    """The baseline tested with a recoder: its own replicates with a fixed step, else those that trained the steps."""
    return perplexity("baseline", f"{kind}_fixed") if step == "fixed" else perplexity(f"{kind},{step}", "added")


def numbers(sweep: str) -> dict[str, tuple[float, float | None, int | None]]:
    found = [claim for claim in claims_of(find_sweep(sweep)) if isinstance(claim, NumberClaim)]
    return {claim.id: (claim.published.mean, claim.published.std, claim.published.n) for claim in found}


def statements(sweep: str) -> dict[tuple[Place, Place | float], StatementClaim]:
    found = [claim for claim in claims_of(find_sweep(sweep)) if isinstance(claim, StatementClaim)]
    assert len({(claim.left, claim.right) for claim in found}) == len(found)
    return {(claim.left, claim.right): claim for claim in found}


# figure 5.6a, surprisal, and figure 5.5a: perplexity and standard deviation
LEARNED, PREDICTED = (126.25, 0.77, 4), (129.01, 2.42, 4)


def test_the_rows_of_surprisal_have_the_spread_that_figure_5_6_prints() -> None:
    without, dynamic = numbers("lm.ablation"), numbers("lm.dynamic_step")
    assert without["lm.figure5_6.eq44.fixed.without"] == (126.11, 1.38, 4)
    assert without["lm.figure5_6.eq44.learned.without"] == dynamic["lm.figure5_5.eq44.learned"] == LEARNED
    assert without["lm.figure5_6.eq44.predicted.without"] == dynamic["lm.figure5_5.eq44.predicted"] == PREDICTED


def test_every_perplexity_has_its_spread() -> None:
    for sweep in ("step_size", "samples", "mc_dropout_rate", "dynamic_step", "ablation", "signals", "confounds"):
        for identity, (_, std, n) in numbers(f"lm.{sweep}").items():
            assert identity.endswith(".slowdown") or (std is not None and n == 4), identity


# figure 5.6b: perplexity of the baseline with each recoder, beside 126.60 without
ADDED = {
    "eq44": {"fixed": 125.95, "learned": 126.55, "predicted": 126.59},
    "mc_dropout": {"fixed": 126.78, "learned": 127.04, "predicted": 127.11},
    "ensemble": {"fixed": 126.72, "learned": 126.72, "predicted": 126.72},
}


@pytest.mark.parametrize("kind", ADDED)
@pytest.mark.parametrize("step", ["fixed", "learned", "predicted"])
def test_a_recoder_added_to_the_baseline_is_claimed_in_the_direction_of_figure_5_6b(kind: str, step: str) -> None:
    """Section 5.3.5: a small drop in performance with MC dropout and ensembles, lower perplexities with surprisal."""
    place = added_place(kind, step)
    without = perplexity("baseline") if step == "fixed" else perplexity(f"{kind},{step}", "baseline")
    claim = statements("lm.ablation")[place, without]
    assert claim.relation == ("above" if ADDED[kind][step] > 126.60 else "below") and claim.margin == 0
    assert numbers("lm.ablation")[f"lm.figure5_6.{kind}.{step}.added"][0] == ADDED[kind][step]
    sweep = find_sweep("lm.ablation")
    (evaluation,) = [
        one for one in sweep.config(sweep.condition(place.condition), 1).evaluations if one.name == place.evaluation
    ]
    assert (evaluation.weights == "baseline") == (step != "fixed")


# printed gain of removing the recoder, figure 5.6a
GAINS = {
    "eq44": {"fixed": -0.78, "learned": 0, "predicted": 0},
    "mc_dropout": {"fixed": 0.01, "learned": -5.24, "predicted": -5.12},
    "ensemble": {"fixed": 0, "learned": -0.16, "predicted": -0.96},
}


@pytest.mark.parametrize("kind", GAINS)
@pytest.mark.parametrize("step", ["fixed", "learned", "predicted"])
def test_without_its_recoder_a_model_is_worse_or_the_same_as_figure_5_6a_prints(kind: str, step: str) -> None:
    condition = f"{kind},{step}"
    found = statements("lm.ablation")
    relation = found[perplexity(condition, "without"), perplexity(condition)].relation
    assert relation == ("above" if GAINS[kind][step] < -0.1 else "same")
    beside = (perplexity(condition, "without"), perplexity("baseline"))
    assert (beside in found) == (kind != "eq44")
    assert kind == "eq44" or found[beside].relation == "above"


@pytest.mark.parametrize(("size", "std"), [(0.1, 1.12), (1, 0.86), (5, 1.32)])
def test_no_step_size_outperforms_the_baseline_significantly(size: float, std: float) -> None:
    """Section 5.3.1, by a one-sided t-test: two groups of 4, pooled, 6 degrees of freedom, t(.95) = 1.943."""
    claim = statements("lm.step_size")[perplexity(f"eq44,step={size:g}"), perplexity("baseline")]
    assert claim.relation == "above" and "does not outperform the baseline significantly" in claim.text
    pooled = math.sqrt((std**2 * 4 / 3 + 4.06**2 * 4 / 3) / 2)
    assert claim.margin == pytest.approx(1.943 * pooled * math.sqrt(2 / 4))
    assert all("lower perplexity than the baseline" not in one.text for one in statements("lm.step_size").values())


@pytest.mark.parametrize("kind", GAINS)
@pytest.mark.parametrize("step", ["learned_released", "predicted"])
def test_dynamic_steps_are_claimed_to_be_worse_than_a_fixed_one(kind: str, step: str) -> None:
    claim = statements("lm.dynamic_step")[perplexity(f"{kind},{step}"), perplexity(f"{kind},fixed")]
    assert claim.relation == "above"


def test_the_lower_the_rate_of_dropout_the_higher_the_uncertainty() -> None:
    """Section 5.3.3 and figure 5.4b: at rates .1 to .6."""
    (trend,) = (claim for claim in claims_of(find_sweep("lm.mc_dropout_rate")) if isinstance(claim, TrendClaim))
    assert [place.condition for place in trend.places] == [f"rate={rate}" for rate in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
    assert {place.column for place in trend.places} == {"delta_before@test"} and trend.relation == "falls"
