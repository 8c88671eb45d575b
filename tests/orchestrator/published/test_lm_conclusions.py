"""Studies in which the thesis's conclusions in words hold, and in which they fail."""

from collections.abc import Mapping

import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import replicate

OTHERS = ("baseline", "surprisal,eq44,gold", "mc_dropout,weights", "ensemble,shared_anchor")
"""What lm.signals has beside variational dropout of the variants that the thesis considers."""
WOBBLE = (-0.02, -0.01, 0.0, 0.01, 0.02)


def finding(claim: str, means: Mapping[str, Mapping[str, float]]) -> Finding:
    """Of five seeds each, whose numbers spread by up to half a percent, each metric in its own way."""
    runs = []
    for place, (condition, metrics) in enumerate(means.items()):
        for seed in range(1, 6):
            values = {
                name: mean * (1 + WOBBLE[(seed * (place + number + 1)) % 5] / 4)
                for number, (name, mean) in enumerate(metrics.items())
            }
            runs.append(replicate(condition, seed, metrics=values))
    sweep = ".".join(claim.split(".")[:2])
    verdicts = judge(Study(sweep, tuple(runs)), Question.of(find_sweep(sweep)))
    return {verdict.claim.id: verdict.finding for verdict in verdicts}[claim]


def perplexities(by_condition: Mapping[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"perplexity@test": mean} for name, mean in by_condition.items()}


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((141.32, 140.37, 145.51, 139.14, 143.95, 143.25), Finding.reproduced),  # figure 5.4a
        ((141.32, 140.37, 145.51, 139.14, 143.95, 163.25), Finding.worse),
    ],
)
def test_the_dropout_rate_makes_no_significant_difference(means: tuple[float, ...], expected: Finding) -> None:
    study = {f"rate=0.{i + 1}": mean for i, mean in enumerate(means)}
    assert finding("lm.mc_dropout_rate.rates.same.perplexity", perplexities(study)) is expected


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((145.77, 138.02, 140.81, 143.88, 143.85), Finding.reproduced),  # table 5.2
        ((145.77, 138.02, 136.0, 135.0, 134.5), Finding.reproduced),  # still better, but by less
        ((145.77, 138.02, 130.0, 120.0, 110.0), Finding.worse),
        ((138.02, 145.77, 146.0, 146.5, 147.0), Finding.worse),
    ],
)
def test_more_samples_of_mc_dropout_have_diminishing_returns_after_five(
    means: tuple[float, ...], expected: Finding
) -> None:
    study = {f"mc_dropout,K={count}": mean for count, mean in zip((1, 5, 10, 25, 50), means, strict=True)}
    assert finding("lm.samples.mc_dropout.diminishing.after.K=5", perplexities(study)) is expected


@pytest.mark.parametrize(("ours", "expected"), [(2600.0, Finding.reproduced), (190.0, Finding.worse)])
def test_variational_dropout_is_magnitudes_worse(ours: float, expected: Finding) -> None:
    study = {"variational": ours} | dict.fromkeys(OTHERS, 140.0)
    assert finding("lm.signals.variational.magnitudes.above", perplexities(study)) is expected


@pytest.mark.parametrize(("sweep", "condition"), [("lm.step_size", "eq44,step=5"), ("lm.error_signal", "eq44,recoded")])
@pytest.mark.parametrize(("share", "expected"), [(0.0, Finding.reproduced), (0.02, Finding.worse)])
def test_recoding_never_raises_delta(sweep: str, condition: str, share: float, expected: Finding) -> None:
    study = {condition: {"raised_share@test": share}}
    assert finding(f"{sweep}.{condition}.never.raises.delta", study) is expected


@pytest.mark.parametrize("kind", ["eq44", "mc_dropout"])
@pytest.mark.parametrize(("after", "expected"), [(0.2, Finding.reproduced), (0.4, Finding.worse)])
def test_recoding_lowers_delta_of_the_same_model(kind: str, after: float, expected: Finding) -> None:
    study = {f"{kind},recoded": {"delta_after@test": after, "delta_before@measured": 0.3}}
    assert finding(f"lm.error_signal.{kind},recoded.lowers.delta", study) is expected
