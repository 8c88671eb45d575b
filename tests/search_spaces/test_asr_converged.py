"""The speech sweeps that train to their end: the paper's sizes, equal costs by hand, a rule in place of a number."""

import pytest

from orchestrator.worker.trainable import load
from search_spaces.find import find_sweep
from trainables.asr.config import AlwaysBig, AsrConfig, Convolutional, Random, Surprisal
from trainables.config import content_hash

RECOGNISERS = ("asr.table2_converged", "asr.model3_converged")


@pytest.mark.parametrize("name", RECOGNISERS)
def test_networks_are_those_of_the_paper_at_the_mean_of_its_mini_librispeech(name):
    sweep = find_sweep(name)
    paper = AsrConfig() if name.startswith("asr.table2") else AsrConfig(network=Convolutional(kind="model3"))
    for condition in ("surprisal", "always_small", "always_big"):
        config = sweep.config(sweep.condition(condition), 1)
        assert config.network == paper.network and config.inputs == paper.inputs
        assert (config.ar.hidden_size, config.ar.features) == (512, paper.ar.features)
        assert (config.training.learning_rate, config.training.batch_size, config.training.num_epochs) == (3e-4, 32, 50)
    assert sweep.config(sweep.condition("surprisal"), 1).controller == Surprisal(mu=0.65)


def test_random_routing_has_the_rate_of_surprisal_in_table_2_and_its_cost_in_model_3():
    """By hand, of 11 frames with 512 features, 512 units and 42 outputs; the regressor has 80."""
    table2, model3 = (find_sweep(name) for name in RECOGNISERS)
    assert table2.config(table2.condition("random_p0.65"), 1).controller == Random(p_big=0.65)
    small, big, regressor = 11 * 512 * 42, 11 * 512 * 512 + 512 * 42, 512 * 80
    rate = model3.config(model3.condition("random"), 1).controller.p_big
    assert small + rate * (big - small) == pytest.approx(small + 0.65 * (big - small) + regressor, rel=1e-4)


def test_a_plain_network_costs_what_surprisal_does():
    """By hand: of table 2 two layers behind 512 units, of model 3 as above."""
    table2, model3 = (find_sweep(name) for name in RECOGNISERS)
    rivals = [sweep.config(sweep.condition("surprisal,plain"), 1) for sweep in (table2, model3)]
    assert all(isinstance(one.controller, AlwaysBig) for one in rivals)
    width = rivals[0].network.big_hidden_size
    routed = 0.35 * 512 * 512 + 0.65 * 2 * 512 * 2048 + 512 * 80
    assert 2 * 512 * width == pytest.approx(routed, rel=1e-3)
    width = rivals[1].network.width
    routed = 0.35 * 11 * 512 * 42 + 0.65 * (11 * 512 * 512 + 512 * 42) + 512 * 80
    assert (11 * 512 + 42) * width == pytest.approx(routed, rel=2e-3)


@pytest.mark.parametrize("size", ["", ".smoke"])
@pytest.mark.parametrize("name", [*RECOGNISERS, "asr.ar_converged", "lm.converged"])
def test_every_condition_ends_by_the_rule_of_one_metric(name, size):
    sweep = find_sweep(name + size)
    trainable = load(sweep.trainable)
    for condition in sweep.conditions:
        config = sweep.config(condition, 1)
        assert config.training.patience and trainable.num_steps(config) is None
        assert len({best.metric for best in trainable.selection(config).values()}) == 1
    (most,) = {sweep.config(condition, 1).training.num_epochs for condition in sweep.conditions}
    assert most > sweep.base.training.patience


def test_both_recognisers_hear_with_the_same_model_of_each_seed_which_ends_by_the_rule():
    sweeps = [find_sweep(name) for name in RECOGNISERS]
    found = {content_hash(sweep.config(c, 1).pretraining) for sweep in sweeps for c in sweep.conditions}
    assert len(found) == 1
    for sweep in sweeps:
        (ar,) = sweep.prerequisites
        assert ar.each_seed and load(ar.trainable).num_steps(sweep.base.pretraining) is None


def test_the_model_that_they_hear_with_is_one_of_those_tried():
    tried, recogniser = find_sweep("asr.ar_converged"), find_sweep("asr.table2_converged").base
    settings = {content_hash(tried.config(condition, 1)) for condition in tried.conditions}
    assert len(settings) == 5 and content_hash(recogniser.pretraining) in settings
