"""Which frames take the big network under each controller of the config, and what the learned one's usage costs."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    Budget,
    Controller,
    Learned,
    Random,
    Routing,
    Surprisal,
)
from trainables.asr.data.batches import valid_frames
from trainables.conditional import straight_through, surprisal_controller
from trainables.conditional.surprisal_controller import SurprisalFit


@dataclass(frozen=True)
class Control:
    """A controller at work: with its fit, where it needs one, and how p_big becomes a choice."""

    controller: Controller
    routing: Routing = "stochastic"
    fit: SurprisalFit | None = None


def uses_surprisal(controller: Controller) -> bool:
    """Whether the regressor of the autoregressive model must run."""
    return isinstance(controller, Surprisal | Budget)


def p_big(control: Control, surprisals: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The probability that a frame takes the big network.

    The learned controller has none before its gate has run.
    """
    match control.controller:
        case Surprisal() | Budget():
            if control.fit is None:
                raise ValueError("A surprisal controller needs its fit, but got None.")
            return surprisal_controller.p_big(control.fit, surprisals)
        case Random(p_big=probability):
            return torch.full_like(surprisals, probability)
        case AlwaysSmall():
            return torch.zeros_like(surprisals)
        case AlwaysBig():
            return torch.ones_like(surprisals)
        case Learned():
            raise ValueError("The learned controller decides by its gate; it has no probability of its own.")


def choose(control: Control, p: Float[Tensor, "B T"], uniform: Float[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """Which frames take the big network; `uniform` numbers in [0, 1) are used where routing is stochastic."""
    return surprisal_controller.choose(p, None if control.routing == "deterministic" else uniform)


def penalty(
    learned: Learned, used_big: Float[Tensor, "B T"], num_frames: Int[Tensor, " B"], batch_size: int
) -> Float[Tensor, ""]:
    """What the learned controller's usage adds to the summed loss of a batch, which is then divided by `batch_size`.

    Args:
        used_big: 1 where a frame took the big network, else 0; with the gate's straight-through gradient.
        num_frames: valid ones of each utterance, on the CPU.
        batch_size: utterances of the whole batch, of which these may be a part.
    """
    valid = valid_frames(num_frames, used_big.shape[1]).to(used_big.device)
    if learned.penalty == "corrected":
        return learned.weight * straight_through.squared_excess(used_big, valid, learned.target)
    deviations = straight_through.squared_deviation(used_big, valid)
    return learned.weight * deviations * (batch_size if learned.penalty == "released" else 1)
