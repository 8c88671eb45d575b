"""The cost that a recogniser reports is what really runs: counted on whole forward passes, routed and unrolled."""

import pytest
import torch

from trainables.asr import cost
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    CausalConvolution,
    Convolutional,
    Learned,
    MaskedSelfAttention,
    Pretraining,
    Random,
    Recurrent,
    Surprisal,
)
from trainables.asr.controller import Control
from trainables.asr.data.config import Features
from trainables.asr.recogniser import Recogniser
from trainables.conditional.macs import count_macs
from trainables.conditional.surprisal_controller import SurprisalFit

RECURRENT = AsrConfig(
    ar=Pretraining(hidden_size=6, features=Features(num_mel_bins=8)),
    network=Recurrent(pre_hidden_size=4, big_hidden_size=17, post_hidden_size=5),
)
CONFIGS = {
    "recurrent": RECURRENT,
    "convolutional_encoder": RECURRENT.with_value("ar.encoder", CausalConvolution(kernel_frames=3)),
    **{
        kind: RECURRENT.with_value("network", Convolutional(kind=kind, width=5, kernel_frames=3, big_hidden_size=7))
        for kind in ("model1", "model2", "model3")
    },
}
CONTROLLERS = [Surprisal(), Random(), Learned(), Learned(gate_input="pre_net"), AlwaysSmall(), AlwaysBig()]
FIT = SurprisalFit(w=0.5, b=-2.0, mean_p=0.5, var_p=0.04)


def counted_and_reported(config: AsrConfig, lengths: list[int]) -> tuple[int, int]:
    """Multiply-accumulates that ran and that are reported, of utterances one after the other, in testing."""
    ar = AutoregressiveModel(config.ar)
    recogniser, ran, reported = Recogniser(config, 9, ar).eval(), 0, 0
    parts = cost.part_macs(config, 9)
    for length in lengths:
        frames, uniform = torch.randn(1, length, 8), torch.rand(1, length)
        with torch.no_grad(), count_macs() as macs:
            output = recogniser(frames, torch.tensor([length]), Control(config.controller, fit=FIT), uniform)
        ran += macs.total
        reported += cost.utterance_macs(config, config.controller, parts, length, int(output.used_big.sum()))
    return ran, reported


@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda one: one.kind)
@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_reported_has_run(name, controller, inputs):
    """Every network on the frames that it gets, the autoregressive model only where it is needed."""
    config = CONFIGS[name].with_value("controller", controller).with_value("inputs", inputs)
    ran, reported = counted_and_reported(config, [1, 4, 23])
    assert ran == reported > 0


@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda one: one.kind)
@pytest.mark.parametrize("name", CONFIGS)
def test_what_training_reports_has_run(name, controller, inputs):
    """The autoregressive model included, which is trained on; both networks on all frames where a gate is learned."""
    config = CONFIGS[name].with_value("controller", controller).with_value("inputs", inputs)
    config = config.with_value("ar_loss_weight", 0.1)
    recogniser = Recogniser(config, 9, AutoregressiveModel(config.ar)).train()
    frames, uniform, lengths = torch.randn(2, 23, 8), torch.rand(2, 23), torch.tensor([23, 23])
    with count_macs() as macs:
        output = recogniser(frames, lengths, Control(config.controller, fit=FIT), uniform)
    num_big = int(output.used_big.sum())
    reported = cost.training_macs(config, cost.part_macs(config, 9), lengths.tolist(), num_big)
    assert macs.total == reported > 0


@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda one: one.kind)
def test_training_on_what_was_kept_runs_no_autoregressive_model(controller, inputs):
    config = RECURRENT.with_value("controller", controller).with_value("inputs", inputs)
    recogniser = Recogniser(config, 9, AutoregressiveModel(config.ar)).train()
    kept = torch.randn(2, 23, 1 + (config.ar.hidden_size if inputs == "ar_features" else 0))
    with count_macs() as macs:
        working = Control(config.controller, fit=FIT)
        output = recogniser(torch.randn(2, 23, 8), torch.tensor([23, 23]), working, torch.rand(2, 23), kept)
    parts, num_big = cost.part_macs(config, 9), int(output.used_big.sum())
    assert macs.total == cost.training_macs(config, parts, [23, 23], num_big) > 0


@pytest.mark.parametrize("context_frames", [4, 50])
def test_attention_costs_what_its_streaming_form_runs(context_frames):
    """Over whole utterances the full square is computed and masked; a frame must look at those alone that it sees."""
    ar = Pretraining(
        features=RECURRENT.ar.features,
        hidden_size=8,
        encoder=MaskedSelfAttention(num_heads=2, context_frames=context_frames),
    )
    model = AutoregressiveModel(ar).eval()
    with torch.no_grad(), count_macs() as macs:
        stream = model.begin(1)  # reads a zero frame
        for _ in range(22):
            stream = model.step(torch.randn(1, 8), stream)
    assert macs.total == cost.encoder_macs(ar, 23)
