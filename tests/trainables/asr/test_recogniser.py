"""Which network a frame takes is decided by what has been heard until then."""

import pytest
import torch

from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Convolutional, Learned, Pretraining, Random, Recurrent, Surprisal
from trainables.asr.controller import Control
from trainables.asr.data.config import Features
from trainables.asr.recogniser import Output, Recogniser
from trainables.conditional.surprisal_controller import SurprisalFit

CONFIG = AsrConfig(
    ar=Pretraining(hidden_size=6, features=Features(num_mel_bins=8)),
    network=Recurrent(pre_hidden_size=4, big_hidden_size=17, post_hidden_size=5),
)
FIT = SurprisalFit(w=0.5, b=-2.0, mean_p=0.5, var_p=0.04)
LENGTH, CHANGED = 30, 12


@torch.no_grad()
def heard(config: AsrConfig, frames: torch.Tensor, routing: str) -> tuple[Output, torch.Tensor]:
    """What one recogniser, always the same, makes of `frames`, and what it decides by: p_big, or a gate's logits."""
    torch.manual_seed(1)
    recogniser = Recogniser(config, 9, AutoregressiveModel(config.ar)).double().eval()
    logits: list[torch.Tensor] = []
    if recogniser.network.gate is not None:
        recogniser.network.gate.register_forward_hook(lambda gate, inputs, output: logits.append(output.reshape(1, -1)))
    uniform = torch.linspace(0, 0.99, LENGTH, dtype=torch.float64)[None]
    output = recogniser(frames, torch.tensor([LENGTH]), Control(config.controller, routing, FIT), uniform)
    return output, logits[0] if logits else output.p_big


def before_and_after(
    config: AsrConfig, routing: str = "stochastic"
) -> tuple[tuple[Output, torch.Tensor], tuple[Output, torch.Tensor]]:
    frames = torch.randn(1, LENGTH, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    changed = frames.clone()
    changed[:, CHANGED:] *= -3
    return heard(config, frames, routing), heard(config, changed, routing)


@pytest.mark.parametrize("routing", ["stochastic", "deterministic"])
@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("controller", [Surprisal(), Random(), Learned()], ids=lambda one: one.kind)
@pytest.mark.parametrize("network", [CONFIG.network, Convolutional(kind="model3", width=5)], ids=lambda one: one.kind)
def test_a_choice_depends_on_no_later_frame(network, controller, inputs, routing):
    values = {"network": network, "controller": controller, "inputs": inputs}
    config = CONFIG.model_copy(update=values)
    (first, by), (second, then_by) = before_and_after(config, routing)
    assert torch.equal(first.used_big[:, :CHANGED], second.used_big[:, :CHANGED])
    torch.testing.assert_close(by[:, :CHANGED], then_by[:, :CHANGED])
    assert torch.equal(by[:, CHANGED:], then_by[:, CHANGED:]) == (controller.kind == "random")


def test_a_gate_behind_the_bidirectional_pre_net_also_hears_later_frames():
    """As in the released code; the documentation says so."""
    (_, by), (_, then_by) = before_and_after(CONFIG.with_value("controller", Learned(gate_input="pre_net")))
    assert (by - then_by)[:, :CHANGED].abs().max() > 1e-6


@pytest.mark.parametrize("ar_dropout", ["none", "released"])
def test_a_frozen_autoregressive_model_drops_out_in_training_only_as_the_released_code_lets_it(ar_dropout):
    """What the recogniser takes for surprisal is that of the model itself, in the mode that it should be in."""
    config = CONFIG.model_copy(update={"ar_dropout": ar_dropout})
    recogniser = Recogniser(config, 9, AutoregressiveModel(config.ar))
    frames = torch.randn(2, LENGTH, 8, generator=torch.Generator().manual_seed(2))
    for training in (True, False):
        recogniser.train(training)
        torch.manual_seed(3)
        output = recogniser(
            frames, torch.tensor([LENGTH, LENGTH]), Control(config.controller, "stochastic", FIT), frames[..., 0]
        )
        torch.manual_seed(3)
        expected = surprisal(frames, recogniser.ar.train(training and ar_dropout == "released")(frames)[1])
        assert torch.equal(output.surprisals, expected.detach())
        torch.manual_seed(4)
        again = surprisal(frames, recogniser.ar(frames)[1])
        assert torch.equal(again, expected) != (training and ar_dropout == "released")
    assert not any(parameter.requires_grad for parameter in recogniser.ar.parameters())
