"""What cannot be set, and what does not change what is learnt."""

import pytest
from pydantic import ValidationError

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.small_runs import ENSEMBLE, config_for
from trainables import config
from trainables.errors import InputError
from trainables.lm import train
from trainables.lm.config import (
    MOST_POWER,
    AnchoredEnsemble,
    Evaluation,
    FiniteDifference,
    LmConfig,
    McDropout,
    Recoder,
    Surprisal,
    Variational,
)
from trainables.lm.gate_config import EntropyThreshold, Threshold
from trainables.lm.optimisation import Optimisation
from trainables.lm.step_config import FixedByLayer, LipschitzStep


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "recoder",
            {"signal": {"kind": "mc_dropout", "estimator": "moments", "masks": "weights"}},
            "masks must be units where the estimator is moments, but got weights.",
        ),
        (
            "recoder",
            {"signal": {"kind": "mc_dropout", "estimator": "moments", "scaling": "none"}},
            "scaling must be inverted where the estimator is moments, but got none.",
        ),
        (
            "recoder",
            {"signal": {"kind": "surprisal", "variant": "eq44"}, "gate": {"kind": "threshold"}},
            "gate.min_delta must be below 0.4447, e^(1/e) - 1, the most that delta of eq44 can be, but got 5.",
        ),
        (
            "recoder",
            {"signal": {"kind": "surprisal", "variant": "sigmoid"}, "gate": {"kind": "threshold", "min_delta": 0.445}},
            "gate.min_delta must be below 0.4447, e^(1/e) - 1, the most that delta of sigmoid can be, but got 0.445.",
        ),
        (
            "evaluations",
            [{"recoder": {"step": {"kind": "predicted"}}}],
            "no one has trained its step sizes, but got predicted; train a model with it and test that with weights: "
            "baseline.",
        ),
        (
            "evaluations",
            [{"recoder": {"step": {"kind": "learned"}}}],
            "step.kind of a recoder that is added in a test must be fixed or lipschitz",
        ),
        (
            "evaluations",
            [{"recoder": {}, "weights": "baseline"}],
            "recoder must be own or none where weights is baseline, but got another one.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision"}, "step": {"kind": "predicted", "source": "output"}},
            "step.source must be activation with a probe, which has no output, but got output.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision", "layer": 3}},
            "signal.layer must be at most num_layers = 2, but got 3.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision"}, "step": {"kind": "fixed_by_layer", "h": (0, 1), "c": (0, 1)}},
            "step.h or step.c must be above 0 in one of the layers 1 to signal.layer = 1, because the probe's error "
            "depends on none above, but got h = (0.0, 1.0) and c = (0.0, 1.0).",
        ),
        (
            "evaluations",
            [{"recoder": {"signal": {"kind": "weak_supervision", "layer": 4}}}],
            "signal.layer must be at most num_layers = 2, but got 4.",
        ),
        (
            "evaluations",
            [{}, {}],
            "the names of evaluations must differ, but got test, test.",
        ),
        ("evaluations", [], "at least 1 item"),
        ("dropout.rate", 1.0, "`dropout.rate`: Input should be less than 1, but got 1.0."),
        ("recoder", {"gate": {"kind": "chance", "probability": 1.5}}, "less than or equal to 1, but got 1.5."),
        ("recoder", {"step": {"kind": "fixed", "size": -1}}, "greater than or equal to 0, but got -1."),
        ("training.schedule", {"kind": "plateau", "factor": 1}, "less than 1, but got 1."),
        ("recoder.step", 1, "`recoder.step` is not a config path: `recoder` has no fields of its own."),
    ],
)
def test_what_cannot_be_is_refused_with_rule_and_value(path, value, said):
    with pytest.raises(InputError) as raised:
        LmConfig().with_value(path, value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("signal", [Surprisal(), AnchoredEnsemble(num_members=3), McDropout(num_samples=2)])
def test_an_ensemble_is_tested_with_its_own_members_only(signal):
    with pytest.raises(ValidationError) as raised:
        LmConfig(recoder=ENSEMBLE, evaluations=(Evaluation(recoder=Recoder(signal=signal)),))
    assert config.explain(raised.value).endswith(
        f"a model with an ensemble can be tested with the recoder own, none or another one with its 2 members, "
        f"but got {signal.kind}."
    )
    other = AnchoredEnsemble(num_members=2, entropy="batch")
    assert LmConfig(recoder=ENSEMBLE, evaluations=(Evaluation(recoder=Recoder(signal=other)),))


@pytest.mark.parametrize("variant", ["eq44", "sigmoid"])
def test_a_gate_that_delta_can_open_is_accepted(variant):
    """p^-p - 1 is .4447 at p = 1/e, and less everywhere else."""
    powers = [(i / 1000) ** -(i / 1000) - 1 for i in range(1, 1001)]
    assert max(powers) == pytest.approx(MOST_POWER, abs=1e-6) and 0.4446 < MOST_POWER < 0.4447
    assert Recoder(signal=Surprisal(variant=variant), gate=Threshold(min_delta=0.44))
    assert Recoder(signal=Surprisal(), gate=Threshold(min_delta=50))


@pytest.mark.parametrize("signal", [McDropout(), AnchoredEnsemble(), Variational()], ids=lambda signal: signal.kind)
def test_an_entropy_stays_below_the_logarithm_of_the_vocabulary(text, signal):
    cfg = LmConfig(recoder=Recoder(signal=signal, gate=Threshold(min_delta=5)))
    with pytest.raises(InputError, match=r"below 4\.6052, the most that an entropy over 100 words can be, but got 5\."):
        cfg.with_value("data.vocabulary.max_size", 100)
    assert cfg.with_value("data.vocabulary.max_size", 200)
    small = config_for(text, cfg.recoder)  # 14 words, which its text alone tells
    with pytest.raises(InputError, match=r"an entropy over 14 words can be, but got 5\.$"):
        train.train(small, FolderTrial(text.parent / "never"))


def test_what_does_not_change_what_is_learnt_is_not_in_the_key(text):
    base = config_for(text)
    same = [base.with_value("seed", 2), base.with_value("evaluations", (Evaluation(recoder="none"),))]
    same.append(base.with_value("data.text.path", "elsewhere.txt"))
    other = [base.with_value("recoder", Recoder()), base.with_value("training.num_plain_epochs", 1)]
    assert {config.content_hash(one) for one in same} == {config.content_hash(base)}
    assert len({config.content_hash(one) for one in [base, *other]}) == 3


def test_a_gate_by_entropy_is_for_surprisal_and_below_the_logarithm_of_the_vocabulary():
    gate = EntropyThreshold(min_entropy=6.3)
    with pytest.raises(ValidationError, match="threshold, chance or always with signal mc_dropout, but got entropy"):
        Recoder(signal=McDropout(), gate=gate)
    config = LmConfig(recoder=Recoder(gate=gate))
    with pytest.raises(InputError, match=r"min_entropy must be below 6.2146.*500 words.*but got 6.3"):
        config.with_value("data.vocabulary.max_size", 500)
    assert config.with_value("data.vocabulary.max_size", 600)


def test_steps_by_layer_are_one_for_each_layer_and_not_all_0():
    assert FixedByLayer(h=(1, 2), c=(3, 4)).sizes == (1, 3, 2, 4)
    with pytest.raises(ValidationError, match="one size for each layer, but got 1 and 2"):
        FixedByLayer(h=(1,), c=(1, 1))
    with pytest.raises(ValidationError, match="at least one size must be above 0"):
        FixedByLayer(h=(0, 0), c=(0, 0))
    with pytest.raises(ValidationError, match="must have num_layers = 3 sizes each, but got 2"):
        LmConfig(num_layers=3, recoder=Recoder(step=FixedByLayer()))


@pytest.mark.parametrize(
    ("changes", "path"), [({"step": LipschitzStep()}, "step"), ({"gradient": FiniteDifference()}, "gradient")]
)
def test_differences_of_close_readings_are_not_taken_in_half_precision(changes, path):
    half = Optimisation(precision="bfloat16")
    assert LmConfig(recoder=Recoder(), training=half)
    with pytest.raises(ValidationError, match=rf"must be float32 where recoder\.{path}\.kind is .*but got bfloat16"):
        LmConfig(recoder=Recoder(**changes), training=half)
