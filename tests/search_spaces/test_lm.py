"""The sweeps of recoding language models hold what the thesis says."""

import math

import numpy as np
import pytest
from scipy import stats

from search_spaces import lm
from search_spaces.distributions import Exponential
from search_spaces.find import find_sweep
from search_spaces.lm_sizes import base
from trainables.lm.config import AnchoredEnsemble, McDropout


def recoders(name):
    sweep = find_sweep(name)
    return {one.name: sweep.config(one, 1).recoder for one in sweep.conditions}


def test_the_thesis_sizes():
    config = base("thesis")
    assert (config.embedding_size, config.hidden_size, config.num_layers) == (650, 650, 2)
    training = config.training
    assert (training.learning_rate, training.max_gradient_norm, training.batch_size) == (20.0, 0.25, 64)
    assert (training.window, training.num_epochs, training.schedule.factor) == (35, 8, 0.5)
    mc_dropout, ensemble = McDropout(), AnchoredEnsemble()
    assert (mc_dropout.num_samples, mc_dropout.rate) == (15, 0.42)
    assert (ensemble.num_members, ensemble.prior_std, ensemble.pull) == (15, 0.29, 4.82e-5)


def test_table_5_1_has_eight_steps_for_each_signal():
    found = recoders("lm.step_size")
    assert len(found) == 1 + 8 * 4 and found["baseline"] is None
    sizes = [found[f"mc_dropout,step={size:g}"].step.size for size in lm.STEP_SIZES]
    assert sizes == [1e-4, 1e-3, 1e-2, 0.1, 1, 5, 10, 25]


def test_table_5_2_has_five_counts_for_samples_and_members():
    found = recoders("lm.samples")
    counts = (1, 5, 10, 25, 50)
    assert [found[f"mc_dropout,K={k}"].signal.num_samples for k in counts] == list(counts)
    assert [found[f"ensemble,K={k}"].signal.num_members for k in counts] == list(counts)


def test_the_ablation_tests_without_the_recoder_and_the_baseline_with_each():
    sweep = find_sweep("lm.ablation")
    evaluations = {one.name: sweep.config(one, 1).evaluations for one in sweep.conditions}
    assert [one.name for one in evaluations["surprisal,learned"]] == ["test", "without"]
    assert evaluations["surprisal,learned"][1].recoder == "none"
    assert {f"{s}_{k}" for s in lm.RECODERS for k in ("fixed", "learned", "predicted")} < {
        one.name for one in evaluations["baseline"]
    }


def test_every_confound_is_a_condition_without_its_recoder():
    sweep = find_sweep("lm.confounds")
    configs = {one.name: sweep.config(one, 1) for one in sweep.conditions}
    as_released = configs["as_mc_dropout_without"]
    assert as_released.recoder is None and as_released.decoder_std == 0.534
    assert (as_released.training.weight_decay, as_released.dropout.rate) == (4.8e-5, 0.155)
    assert configs["mc_dropout"].model_copy(update={"recoder": None}) == as_released
    assert (configs["baseline"].dropout.rate, configs["dropout_of_surprisal"].dropout.rate) == (0.2, 0.169)


def test_the_searches_of_appendix_b_3():
    search = find_sweep("lm.search").search
    assert (search.num_trials, search.sampler) == (64, "random")
    assert search.space["recoder.step.size"] == Exponential(0.5, 75.0)
    assert find_sweep("lm.search").base.training.num_epochs == 4
    assert find_sweep("lm.search_ensemble").search.space["recoder.signal.pull"] == Exponential(1e-4, 1e-2)


def test_exponential_quantiles_are_those_of_the_distribution_cut_at_both_ends():
    low, high = 0.5, 75.0
    found = [Exponential(low, high).quantile(share) for share in np.linspace(0, 1, 11)]
    expected = stats.truncexpon(b=4, loc=low, scale=(high - low) / 4).ppf(np.linspace(0, 1, 11))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[0] == low and math.isclose(found[-1], high)
    with pytest.raises(ValueError, match="`low` must be below `high`, but got 2 and 1"):
        Exponential(2, 1)
