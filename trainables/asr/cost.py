"""What a recogniser computes: multiply-accumulates that run, and the paper's parameter count."""

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Budget,
    Controller,
    Learned,
    Random,
)
from trainables.asr.controller import uses_surprisal
from trainables.asr.macs import PartCosts, encoder_macs, part_macs
from trainables.asr.network import RoutedNetwork
from trainables.errors import InputError


def runs_ar(config: AsrConfig, controller: Controller) -> bool:
    """Whether the autoregressive model must run to recognise under `controller`."""
    return config.inputs == "ar_features" or uses_surprisal(controller)


def utterance_macs(config: AsrConfig, controller: Controller, parts: PartCosts, num_frames: int, num_big: int) -> int:
    """Multiply-accumulates to recognise one utterance of `num_frames`, of which `num_big` take the big network.

    Args:
        controller: the one in use, which may differ from the one of training.
    """
    ar = _ar_macs(config, parts, num_frames, uses_surprisal(controller))
    return ar + _network_macs(controller, parts, num_frames, num_frames - num_big, num_big)


def training_macs(config: AsrConfig, parts: PartCosts, lengths: Sequence[int], num_big: int) -> int:
    """Multiply-accumulates of the forward pass in training over utterances of these `lengths`.

    To train a gate both networks run on every frame (`trainables.conditional.route.mix`). The autoregressive model is
    counted where it is trained on or drops out: another can be read once for all epochs, if there is room or not to
    keep that.

    Args:
        num_big: frames that took the big network.
    """
    num_frames, trains_ar = sum(lengths), config.ar_loss_weight is not None
    is_learned = isinstance(config.controller, Learned)
    num_small, num_big = (num_frames, num_frames) if is_learned else (num_frames - num_big, num_big)
    needs_surprisal = trains_ar or uses_surprisal(config.controller)
    ar = 0
    if trains_ar or config.ar_dropout == "released":
        ar = sum(_ar_macs(config, parts, length, needs_surprisal) for length in lengths)
    return ar + _network_macs(config.controller, parts, num_frames, num_small, num_big)


def _network_macs(controller: Controller, parts: PartCosts, num_frames: int, num_small: int, num_big: int) -> int:
    """Behind the autoregressive model, with so many frames through the small network and through the big one."""
    per_frame = parts.pre + parts.post + (parts.gate if isinstance(controller, Learned) else 0)
    return num_frames * per_frame + num_small * parts.small + num_big * parts.big


def _ar_macs(config: AsrConfig, parts: PartCosts, num_frames: int, needs_surprisal: bool) -> int:
    """Multiply-accumulates of the autoregressive model over one utterance: its regressor runs for surprisal alone."""
    reads_features = config.inputs == "ar_features"
    if not reads_features and not needs_surprisal:
        return 0
    encoder = encoder_macs(config.ar, num_frames + 1 if reads_features else num_frames)
    return encoder + (num_frames * parts.regressor if needs_surprisal else 0)


def budget_mu(config: AsrConfig, budget: Budget, num_labels: int, lengths: list[int]) -> float:
    """The mean of p_big at which utterances of these `lengths` cost the budget on average.

    Raises:
        InputError: if no mean in (0, 1) does, or the big network costs no more than the small one.
    """
    parts, num_frames = part_macs(config, num_labels), sum(lengths)
    if parts.big <= parts.small:
        raise InputError(
            f"`controller.macs_per_frame` needs a big network that costs more than the small one, but they cost "
            f"{parts.big:,} and {parts.small:,} multiply-accumulates a frame; widen the big one."
        )
    cheapest = sum(utterance_macs(config, budget, parts, length, 0) for length in lengths) / num_frames
    mu = (budget.macs_per_frame - cheapest) / (parts.big - parts.small)
    if not 0 < mu < 1:
        raise InputError(
            f"`controller.macs_per_frame` must be between {cheapest:.0f} and "
            f"{cheapest + parts.big - parts.small:.0f}, the costs of this model, but got {budget.macs_per_frame:g}."
        )
    return mu


def part_parameters(config: AsrConfig, num_labels: int) -> Mapping[str, int]:
    """Parameters with biases of each part, as they are in the modules; both small and big, whichever is used."""
    both = config if isinstance(config.controller, Learned) else config.model_copy(update={"controller": Random()})
    with torch.device("meta"):
        ar, model = AutoregressiveModel(config.ar), RoutedNetwork(both, num_labels)
    parts = {name: _num_parameters(module) for name, module in model.named_children()}
    regressor = _num_parameters(ar.regressor)
    return {"gate": 0} | parts | {"regressor": regressor, "ar_encoder": _num_parameters(ar) - regressor}


def _num_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def paper_flops_per_frame(config: AsrConfig, controller: Controller, num_labels: int, routing_rate: float) -> float:
    """The paper's convention: all parameters of what is there, with the networks weighted by their use.

    The learned controller's gate is counted in place of the regressor.
    """
    parts = part_parameters(config, num_labels)
    p = {AlwaysSmall: 0.0, AlwaysBig: 1.0}.get(type(controller), routing_rate)
    fixed = parts["pre"] + parts["post"]
    if runs_ar(config, controller):
        fixed += parts["ar_encoder"]
    if isinstance(controller, Learned):
        fixed += parts["gate"]
    elif runs_ar(config, controller):
        fixed += parts["regressor"]
    return fixed + p * parts["big"] + (1 - p) * parts["small"]
