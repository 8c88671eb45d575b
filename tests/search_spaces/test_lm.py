"""The sweeps of recoding language models hold what the thesis says."""

import math

import numpy as np
import pytest
from scipy import stats

from search_spaces import lm
from search_spaces.distributions import Exponential, Integer, Real
from search_spaces.find import find_sweep
from search_spaces.lm_sizes import DECODER_STD, base
from trainables.config import content_hash
from trainables.lm.config import AnchoredEnsemble, McDropout, Recoder
from trainables.lm.step_config import FixedStep, LearnedStep


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
    assert (ensemble.num_members, ensemble.prior_variance, ensemble.pull) == (15, 0.29, 4.82e-5)


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
    for name in lm.RECODERS:
        own = {
            kind: {one.name: one for one in evaluations[f"{name},{kind}"]} for kind in ("fixed", "learned", "predicted")
        }
        assert list(own["fixed"]) == ["test", "without"]
        for kind in ("learned", "predicted"):
            assert list(own[kind]) == ["test", "without", "baseline", "added"]
            assert (own[kind]["added"].recoder, own[kind]["added"].weights) == ("own", "baseline")
            assert (own[kind]["baseline"].recoder, own[kind]["baseline"].weights) == ("none", "baseline")
            assert own[kind]["without"].recoder == "none"
    assert [one.name for one in evaluations["baseline"]] == ["test", *(f"{name}_fixed" for name in lm.RECODERS)]


@pytest.mark.parametrize("name", [f"lm.{name}" for name in lm.SWEEPS])
def test_no_recoder_is_added_with_step_sizes_that_no_one_trained(name):
    sweep = find_sweep(name)
    for condition in sweep.conditions:
        for evaluation in sweep.config(condition, 1).evaluations:
            recoder = evaluation.recoder
            assert isinstance(recoder, str) or recoder.step.kind in ("fixed", "lipschitz"), condition.name


def test_the_baseline_behind_every_condition_of_the_ablation_is_one_and_is_trained_as_it_is():
    sweep = find_sweep("lm.ablation")
    assert [one.config_path for one in sweep.prerequisites] == ["baseline"]
    keys = {content_hash(sweep.config(one, 1).baseline) for one in sweep.conditions}
    assert keys == {content_hash(sweep.config(sweep.condition("baseline"), 1))}


def test_only_conditions_that_read_the_baseline_of_the_ablation_wait_for_it():
    sweep = find_sweep("lm.ablation")
    waiting = [one.name for one in sweep.conditions if one.prerequisites != ()]
    assert waiting == [f"{name},{kind}" for name in lm.RECODERS for kind in ("learned", "predicted")]
    for one in sweep.conditions:
        reads = {evaluation.weights for evaluation in sweep.config(one, 1).evaluations} == {"own", "baseline"}
        assert one.prerequisites == (("baseline",) if reads else ())


def test_what_is_measured_alone_differs_from_what_is_recoded_by_its_step():
    sweep = find_sweep("lm.error_signal")
    for name, decay in (("eq44", 0.0), ("mc_dropout", 4.82e-5)):
        measured, recoded = (sweep.config(sweep.condition(f"{name},{kind}"), 1) for kind in ("measured", "recoded"))
        assert measured.training.weight_decay == decay
        alone = recoded.with_value("recoder.step.size", 0.0)
        assert content_hash(alone) == content_hash(measured)


def test_weight_decay_is_on_where_table_b_1b_has_it():
    """MC dropout and variational dropout, 4.82e-5 of table B.2b; no other."""
    for name in ("step_size", "samples", "mc_dropout_rate", "dynamic_step", "ablation", "signals"):
        sweep = find_sweep(f"lm.{name}")
        for condition in sweep.conditions:
            config = sweep.config(condition, 1)
            has_dropout = config.recoder is not None and config.recoder.signal.kind in ("mc_dropout", "variational")
            assert config.training.weight_decay == (4.82e-5 if has_dropout else 0), condition.name
    assert find_sweep("lm.search_pareto").base.training.weight_decay == 4.82e-5


def test_the_control_of_the_ensembles_starts_its_decoder_from_their_prior():
    sweep = find_sweep("lm.signals_laptop")
    alone, ensemble = (sweep.config(sweep.condition(name), 1) for name in ("decoder_start", "ensemble,K=5"))
    assert ensemble.recoder.signal.prior_variance == 0.29 == pytest.approx(alone.decoder_std**2)
    assert content_hash(alone) == content_hash(
        ensemble.with_value("recoder", None).with_value("decoder_std", 0.29**0.5)
    )


def test_the_corrected_surprisal_takes_a_step_of_1_and_that_of_the_thesis_5():
    """On a part of WikiText-2 -log p has 119.5 at 1 and 130.4 at 5 (docs/results/benchmarks.md)."""
    assert (lm.SURPRISAL.step.size, lm.EQ44.step.size) == (1, 5)
    assert (Recoder().step.size, LearnedStep().start) == (1, 1)
    assert recoders("lm.dynamic_step")["surprisal,learned"].step.start == 1
    found = recoders("lm.signals")
    assert [found[f"surprisal,{name},gold"].step.size for name in ("nll", "eq44", "sigmoid")] == [1, 5, 5]


def test_equations_4_7_and_3_37_are_there_as_printed_beside_the_corrected_ones():
    found = {name: recoder.signal for name, recoder in recoders("lm.signals").items() if recoder}
    assert (found["mc_dropout,printed"].masks, found["mc_dropout,printed"].scaling) == ("weights", "none")
    assert (found["mc_dropout,weights"].masks, found["mc_dropout,weights"].scaling) == ("weights", "inverted")
    assert (found["ensemble,printed_pull"].penalty, found["ensemble,corrected"].penalty) == ("norm", "squared")
    assert (found["ensemble,shared_anchor"].anchors, found["ensemble,corrected"].anchors) == ("shared", "own")


@pytest.mark.parametrize("name", ["lm.gated", "lm.gated_laptop"])
def test_every_gate_is_tested_on_the_one_model_trained_with_it_open(name):
    sweep = find_sweep(name)
    configs = {one.name: sweep.config(one, 1) for one in sweep.conditions}
    assert list(configs) == ["baseline", "always", "surprisal,min=4", "entropy,min=4", "random,rate=0.5"]
    assert configs["always"].recoder == lm.SURPRISAL and configs["baseline"].recoder is None
    tests = configs["always"].evaluations
    assert (tests[0].name, tests[0].recoder) == ("test", "own")
    gates = [one.recoder.gate for one in tests[1:]]
    assert [gate.kind for gate in gates] == ["threshold"] * 4 + ["entropy"] * 4 + ["chance"] * 4
    assert all(one.recoder.model_copy(update={"gate": lm.SURPRISAL.gate}) == lm.SURPRISAL for one in tests[1:])
    assert len({*sweep.seeds}) == 5 and [one.metric for one in sweep.objectives] == ["perplexity", "macs_per_token"]


def test_section_7_1_recodes_each_layer_and_activation_alone_and_with_smaller_steps():
    found = {name: recoder.step for name, recoder in recoders("lm.layers").items() if recoder}
    sizes = {name: step.sizes for name, step in found.items() if name != "all"}  # h 1, c 1, h 2, c 2
    assert found["all"] == FixedStep(size=1)
    assert (sizes["h"], sizes["c"]) == ((1, 0, 1, 0), (0, 1, 0, 1))
    assert (sizes["layer_1"], sizes["layer_2"]) == ((1, 1, 0, 0), (0, 0, 1, 1))
    assert [sizes[name].index(1) for name in ("h_1", "c_1", "h_2", "c_2")] == [0, 1, 2, 3]
    assert (sizes["layer_1=0.3"], sizes["h=0.3"]) == ((0.3, 0.3, 1, 1), (0.3, 1, 0.3, 1))


# hashes of the configs before gates of entropy and steps by layer came in
FINGERPRINTS = {
    ("lm.laptop", "surprisal,step=1"): "3a87513370773a05",
    ("lm.step_size", "mc_dropout,step=1"): "fcc8651bceaffd78",
    ("lm.ablation", "ensemble,learned"): "3393f651ef126a1a",
}


@pytest.mark.parametrize(("sweep", "condition"), FINGERPRINTS)
def test_what_ran_before_is_known_again(sweep, condition):
    found = find_sweep(sweep)
    assert content_hash(found.config(found.condition(condition), 1)) == FINGERPRINTS[sweep, condition]


def test_every_confound_is_a_condition_without_its_recoder():
    sweep = find_sweep("lm.confounds")
    configs = {one.name: sweep.config(one, 1) for one in sweep.conditions}
    as_released = configs["as_mc_dropout_without"]
    assert as_released.recoder is None and as_released.decoder_std == 0.534
    assert (as_released.training.weight_decay, as_released.dropout.rate) == (4.82e-5, 0.155)
    assert configs["mc_dropout"].model_copy(update={"recoder": None}) == as_released
    assert (configs["baseline"].dropout.rate, configs["dropout_of_surprisal"].dropout.rate) == (0.2, 0.169)


# of table B.2a, and of table B.1b which model has which
STEP, COUNT, RATE = Exponential(0.5, 75.0), Integer(2, 50), Real(0.1, 0.6)
SPACES = {
    "search": {"recoder.step.size": STEP, "dropout.rate": RATE},
    "search_mc_dropout": {
        "recoder.step.size": STEP,
        "recoder.signal.num_samples": COUNT,
        "recoder.signal.rate": RATE,
        "training.weight_decay": Exponential(1e-4, 1e-2),
        "decoder_std": Real(math.sqrt(0.1), math.sqrt(0.4)),
        "dropout.rate": RATE,
    },
    "search_variational": {
        "recoder.step.size": STEP,
        "recoder.signal.num_samples": COUNT,
        "recoder.signal.rate": RATE,
        "training.weight_decay": Exponential(1e-4, 1e-2),
        "decoder_std": Real(math.sqrt(0.1), math.sqrt(0.4)),
    },
    "search_ensemble": {
        "recoder.step.size": STEP,
        "recoder.signal.num_members": COUNT,
        "recoder.signal.prior_variance": Real(0.1, 0.4),
        "recoder.signal.pull": Exponential(1e-4, 1e-2),
        "dropout.rate": RATE,
    },
}


@pytest.mark.parametrize("name", SPACES)
def test_the_searches_of_appendix_b_3_have_all_its_dimensions(name):
    sweep = find_sweep(f"lm.{name}")
    assert (sweep.search.num_trials, sweep.search.sampler) == (64, "random")
    assert sweep.base.training.num_epochs == 4
    assert sweep.search.space == SPACES[name]
    kind = {"search": "surprisal", "search_ensemble": "anchored_ensemble"}.get(name, name.removeprefix("search_"))
    assert sweep.base.recoder.signal.kind == kind


def test_the_released_decoders_start_is_the_root_of_the_prior_scale():
    """So the thesis's .29, printed with two digits, is a variance."""
    assert round(DECODER_STD**2, 2) == 0.29


def test_exponential_quantiles_are_those_of_the_distribution_cut_at_both_ends():
    low, high = 0.5, 75.0
    found = [Exponential(low, high).quantile(share) for share in np.linspace(0, 1, 11)]
    expected = stats.truncexpon(b=4, loc=low, scale=(high - low) / 4).ppf(np.linspace(0, 1, 11))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[0] == low and math.isclose(found[-1], high)
    with pytest.raises(ValueError, match="`low` must be below `high`, but got 2 and 1"):
        Exponential(2, 1)
