"""The controls with known answers: equal costs, the probability with which onsets are read big, and both verdicts."""

import math

import numpy as np
import pytest
from rich.console import Console
from scipy.special import expit, stdtrit

from orchestrator.environment.settings import read_settings
from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.run import run_here
from orchestrator.tracking.client import Tracking
from ponderay.notebook import compare
from search_spaces import asr_controls
from search_spaces.find import find_sweep
from trainables.asr import cost
from trainables.asr.config import Random, Surprisal
from trainables.asr.controller_fit import fit_surprisal
from trainables.asr.data import onsets


def test_both_see_the_bands_as_the_corpus_makes_them():
    assert asr_controls.FEATURES == onsets.FEATURES


@pytest.mark.parametrize("name", ["asr.control_positive", "asr.demo"])
def test_surprisal_and_its_random_rival_cost_the_same(name):
    """To half a percent, by the counter, the autoregressive model included; the rival never costs less."""
    sweep = find_sweep(name)
    macs = {}
    for condition in sweep.conditions:
        config = sweep.config(condition, 1)
        rate = {Surprisal: asr_controls.RATE}.get(
            type(config.controller), getattr(config.controller, "p_big", math.nan)
        )
        if not math.isnan(rate):
            num_big = round(1000 * rate * 16)
            parts = cost.part_macs(config, num_labels=8)
            whole = [cost.utterance_macs(config, config.controller, parts, 16, n) for n in (0, 16)]
            macs[condition.name] = np.interp(num_big / 16_000, (0, 1), whole) / 16
    assert 1 <= macs["random"] / macs["surprisal"] < 1.005


def test_the_controller_sends_onsets_to_the_big_network_as_derived():
    """Its fit on the surprisal of a model that knows all that can be known: 1 nat at onsets, 0 elsewhere."""
    found = fit_surprisal(np.tile([1.0, 0, 0, 0], 1000), asr_controls.RATE, asr_controls.VARIANCE)
    r, s2 = asr_controls.RATE, asr_controls.VARIANCE
    q = r + (1 - r) * math.sqrt(s2 / (r * (1 - r)))
    assert q == pytest.approx(0.985, abs=5e-4)
    assert expit(found.w + found.b) == pytest.approx(q, abs=1e-3)


def means(study: Study, metric: str = "per") -> dict[str, float]:
    names = {one.condition for one in study.replicates}
    return {name: study.summary(name, f"{metric}@stochastic").mean for name in names}


def paired_interval(study: Study) -> tuple[float, float]:
    """95 %, by Student's t, of the difference in error from surprisal to random over the same seeds."""
    seeds = [[one.seed for one in study.of(name)] for name in ("surprisal", "random")]
    assert seeds[0] == seeds[1]
    surprisal, random = (np.array(study.values(name, "per@stochastic")) for name in ("surprisal", "random"))
    differences = surprisal - random
    half = stdtrit(len(differences) - 1, 0.975) * differences.std(ddof=1) / math.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)


def run(name: str, *conditions: str) -> tuple[Study, Question]:
    """The replicates of a sweep, all or those of some conditions, one after the other, and its question."""
    sweep = find_sweep(name)
    sweep = sweep.of_conditions(conditions) if conditions else sweep
    outcome = run_here(sweep, read_settings(), Console(quiet=True), accept_code=False)
    assert {one.state for one in outcome.replicates} == {"complete"} and len(sweep.seeds) == 5
    return Tracking(read_settings()).read_study(name), Question.of(sweep)


@pytest.mark.slow
@pytest.mark.long  # trains 20 replicates
def test_where_only_onsets_surprise_routing_by_surprisal_wins_at_equal_cost(workplace):
    study, question = run("asr.control_positive", "surprisal", "random", "always_small", "always_big")
    assert [one.finding for one in judge(study, question)] == [Finding.reproduced] * 3
    per, _ = compare(study, "surprisal", "random", question.objectives)
    assert per.answer == "better"
    low, high = paired_interval(study)
    assert low < high < 0
    found = means(study)
    small = found["always_small"]
    assert 0.22 < small < 0.65 and found["always_big"] < 0.01 and found["surprisal"] < 0.03
    assert (1 - 0.55) * 0.22 < found["random"] < (1 - 0.55) * 0.65


@pytest.mark.slow
@pytest.mark.long  # trains 10 replicates
def test_where_every_frame_surprises_routing_by_surprisal_does_not_win(workplace):
    study, question = run("asr.control_negative", "surprisal", "random")
    (verdict,) = judge(study, question)
    assert verdict.finding is Finding.reproduced
    per, _ = compare(study, "surprisal", "random", question.objectives)
    assert per.answer != "better"
    assert paired_interval(study)[1] > -verdict.claim.margin
    assert means(study)["surprisal"] > (1 - asr_controls.RATE) * 0.22


def test_random_is_at_the_rate_of_surprisal_in_the_negative_control():
    sweep = find_sweep("asr.control_negative")
    controllers = {one.name: sweep.config(one, 1).controller for one in sweep.conditions}
    assert controllers["random"] == Random(p_big=controllers["surprisal"].mu)
