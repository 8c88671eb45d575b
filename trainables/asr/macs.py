"""Multiply-accumulates of one frame in each part of a recogniser, and the plain network that costs as much as routing.

Loads no torch, so that sweeps can be declared with what it finds.
"""

from dataclasses import dataclass
from typing import Final

from trainables.asr.config import (
    AsrConfig,
    CausalConvolution,
    Gru,
    Learned,
    MaskedSelfAttention,
    Network,
    Pretraining,
    Random,
    Recurrent,
    Surprisal,
)
from trainables.cost import causal_attention_macs, gru_macs, linear_macs
from trainables.errors import InputError

NUM_BLOCKS: Final = 2
"""Blocks of the autoregressive model's encoder."""

NUM_FRAMES: Final = 150
"""Frames of an utterance whose cost stands for all, three seconds; it matters to masked self-attention alone."""


def num_inputs(config: AsrConfig) -> int:
    """Width of what the recogniser reads."""
    return config.ar.hidden_size if config.inputs == "ar_features" else config.ar.features.num_mel_bins


def pre_width(config: AsrConfig) -> int:
    """Width of what the small and big networks read."""
    if isinstance(config.network, Recurrent):
        return 2 * config.network.pre_hidden_size
    return num_inputs(config) if config.network.kind == "model3" else config.network.width


@dataclass(frozen=True)
class PartCosts:
    """Cost of one frame through each part behind the autoregressive model's encoder.

    `regressor` is separate because it runs only where surprisal is needed, `gate` only under the learned controller.
    """

    regressor: int
    pre: int
    gate: int
    small: int
    big: int
    post: int


def part_macs(config: AsrConfig, num_labels: int) -> PartCosts:
    """Multiply-accumulates of one frame in each part."""
    inputs, width, outputs = num_inputs(config), pre_width(config), num_labels + 1
    regressor, gate = linear_macs(config.ar.hidden_size, config.ar.features.num_mel_bins), 0
    if isinstance(config.controller, Learned):
        read = inputs if config.controller.gate_input == "features" else width
        gate = linear_macs(read, config.controller.hidden_size) + config.controller.hidden_size
    network = config.network
    if isinstance(network, Recurrent):
        return PartCosts(
            regressor=regressor,
            pre=gru_macs(inputs, network.pre_hidden_size, num_directions=2),
            gate=gate,
            small=linear_macs(width, width),
            big=2 * linear_macs(width, network.big_hidden_size),
            post=gru_macs(width, network.post_hidden_size, num_directions=2)
            + linear_macs(2 * network.post_hidden_size, outputs),
        )
    window = network.kernel_frames * inputs
    if network.kind == "model3":
        big = linear_macs(window, network.width) + linear_macs(network.width, outputs)
        return PartCosts(regressor, 0, gate, linear_macs(window, outputs), big, 0)
    big = linear_macs(width, network.big_hidden_size) + linear_macs(network.big_hidden_size, outputs)
    return PartCosts(regressor, linear_macs(window, width), gate, linear_macs(width, outputs), big, 0)


def encoder_macs(ar: Pretraining, num_steps: int) -> int:
    """Multiply-accumulates of the encoder over so many frames, the zero frame before the first included."""
    size, total = ar.hidden_size, 0
    for width in [ar.features.num_mel_bins] + [size] * (NUM_BLOCKS - 1):
        match ar.encoder:
            case Gru():
                total += num_steps * gru_macs(width, size)
            case CausalConvolution(kernel_frames=kernel_frames):
                total += num_steps * linear_macs(kernel_frames * width, size)
            case MaskedSelfAttention(context_frames=context_frames):
                total += causal_attention_macs(width, size, num_steps, context_frames)
                total += num_steps * linear_macs(width, size)
        total += num_steps * linear_macs(size, size)
    return total


def width_of_big(network: Network) -> str:
    """The field of `network` to which the big network's cost is in proportion."""
    return "width" if network.kind == "model3" else "big_hidden_size"


def plain_width(config: AsrConfig, num_labels: int | None = None) -> int:
    """The `width_of_big` with which a plain network, always big, costs what `config` costs while it routes.

    A frame of routing at rate r costs (1 - r) small + r big, and surprisal's regressor; without AR features, surprisal
    alone needs the whole autoregressive model. The big network's cost is in proportion to its width, and all else is
    the same in both.

    Args:
        config: with random routing, or with surprisal routing, whose rate is taken to be its target `mu`.
        num_labels: that are told apart, without the blank. Appendix A's models need it: their small and big networks
            give the outputs themselves, so what else routing costs is worth another width.

    Raises:
        InputError: for another controller, and for appendix A's models without `num_labels`.
    """
    controller, network = config.controller, config.network
    if not isinstance(controller, Surprisal | Random):
        rule = "A plain network of equal cost needs random or surprisal routing"
        raise InputError(f"{rule}, but got {controller.kind}; choose another.")
    if num_labels is None and not isinstance(network, Recurrent):
        raise InputError(f"A plain network of {network.kind}'s cost depends on its outputs; give `num_labels`.")
    parts = part_macs(config, num_labels or 1)  # without any a recurrent network's small and big ones are the same
    rate, extra = (controller.p_big, 0.0) if isinstance(controller, Random) else (controller.mu, parts.regressor)
    if isinstance(controller, Surprisal) and config.inputs == "frames":
        extra += encoder_macs(config.ar, NUM_FRAMES) / NUM_FRAMES
    routed = (1 - rate) * parts.small + rate * parts.big + extra
    width: int = getattr(network, width_of_big(network))
    return round(routed * width / parts.big)
