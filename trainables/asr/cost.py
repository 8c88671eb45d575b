"""What a recogniser computes per frame: multiply-accumulates that run, and the paper's parameter count."""

from dataclasses import dataclass

from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig, Surprisal
from trainables.cost import gru_macs, linear_macs


@dataclass(frozen=True)
class PartCosts:
    """Cost of one frame through each part.

    `regressor` is separate because it runs only where surprisal is needed.
    """

    ar_encoder: int
    regressor: int
    pre: int
    small: int
    big: int
    post: int


def part_macs(config: AsrConfig, num_labels: int) -> PartCosts:
    """Multiply-accumulates of one frame in each part."""
    ar, network = config.ar, config.network
    num_bins, hidden_size, width = ar.features.num_mel_bins, ar.hidden_size, 2 * network.pre_hidden_size
    blocks = (
        gru_macs(num_bins, hidden_size) + gru_macs(hidden_size, hidden_size) + 2 * linear_macs(hidden_size, hidden_size)
    )
    return PartCosts(
        ar_encoder=blocks,
        regressor=linear_macs(hidden_size, num_bins),
        pre=gru_macs(hidden_size, network.pre_hidden_size, num_directions=2),
        small=linear_macs(width, width),
        big=2 * linear_macs(width, network.big_hidden_size),
        post=gru_macs(width, network.post_hidden_size, num_directions=2)
        + linear_macs(2 * network.post_hidden_size, num_labels + 1),
    )


def part_parameters(config: AsrConfig, num_labels: int) -> PartCosts:
    """Parameters with biases of each part; the normaliser counts with the encoder."""
    macs, ar, network = part_macs(config, num_labels), config.ar, config.network
    num_bins, hidden_size, width = ar.features.num_mel_bins, ar.hidden_size, 2 * network.pre_hidden_size
    gru_biases = 2 * 3
    return PartCosts(
        ar_encoder=macs.ar_encoder + 2 * gru_biases * hidden_size + 2 * hidden_size + 2 * num_bins,
        regressor=macs.regressor + num_bins,
        pre=macs.pre + gru_biases * width,
        small=macs.small + width,
        big=macs.big + network.big_hidden_size + width,
        post=macs.post + gru_biases * 2 * network.post_hidden_size + num_labels + 1,
    )


def utterance_macs(config: AsrConfig, parts: PartCosts, num_frames: int, num_big: int) -> int:
    """Multiply-accumulates to recognise one utterance of `num_frames`, of which `num_big` take the big network.

    The encoder makes one step more than there are frames: the zero frame before the first. The regressor runs only
    under the surprisal controller.
    """
    per_frame = parts.pre + parts.post
    if isinstance(config.controller, Surprisal):
        per_frame += parts.regressor
    routed = (num_frames - num_big) * parts.small + num_big * parts.big
    return (num_frames + 1) * parts.ar_encoder + num_frames * per_frame + routed


def paper_flops_per_frame(config: AsrConfig, num_labels: int, routing_rate: float) -> float:
    """The paper's convention: all parameters of what is there, with the networks weighted by their use."""
    parts = part_parameters(config, num_labels)
    p = {AlwaysSmall: 0.0, AlwaysBig: 1.0}.get(type(config.controller), routing_rate)
    fixed = parts.ar_encoder + parts.regressor + parts.pre + parts.post
    return fixed + p * parts.big + (1 - p) * parts.small
