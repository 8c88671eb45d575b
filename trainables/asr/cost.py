"""What a recogniser computes: multiply-accumulates that run, and the paper's parameter count."""

from collections.abc import Mapping

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
    per_frame = parts.pre + parts.post
    if uses_surprisal(controller):
        per_frame += parts.regressor
    if isinstance(controller, Learned):
        per_frame += parts.gate
    num_steps = num_frames + 1 if config.inputs == "ar_features" else num_frames
    encoder = encoder_macs(config.ar, num_steps) if runs_ar(config, controller) else 0
    routed = (num_frames - num_big) * parts.small + num_big * parts.big
    return encoder + num_frames * per_frame + routed


def budget_mu(config: AsrConfig, budget: Budget, num_labels: int, lengths: list[int]) -> float:
    """The mean of p_big at which utterances of these `lengths` cost the budget on average.

    Raises:
        InputError: if no mean in (0, 1) does.
    """
    parts, num_frames = part_macs(config, num_labels), sum(lengths)
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
