"""What cannot be set, and what does not change what is learnt."""

import pytest
from pydantic import ValidationError

from tests.trainables.lm.small_runs import ENSEMBLE, config_for
from trainables import config
from trainables.errors import InputError
from trainables.lm.config import (
    AnchoredEnsemble,
    Evaluation,
    LmConfig,
    McDropout,
    Recoder,
    Surprisal,
)


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
            {"signal": {"kind": "weak_supervision"}, "step": {"kind": "predicted", "source": "output"}},
            "step.source must be activation with a probe, which has no output, but got output.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision", "layer": 3}},
            "signal.layer must be at most num_layers = 2, but got 3.",
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


def test_what_does_not_change_what_is_learnt_is_not_in_the_key(text):
    base = config_for(text)
    same = [base.with_value("seed", 2), base.with_value("evaluations", (Evaluation(recoder="none"),))]
    same.append(base.with_value("data.text.path", "elsewhere.txt"))
    other = [base.with_value("recoder", Recoder()), base.with_value("training.num_plain_epochs", 1)]
    assert {config.content_hash(one) for one in same} == {config.content_hash(base)}
    assert len({config.content_hash(one) for one in [base, *other]}) == 3
