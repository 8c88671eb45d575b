"""Dynamic evaluation: after each segment of a text the weights move by its gradient (Krause et al. 2018).

Of a segment's mean loss L, trained weights theta_g and the statistics MS_g of the training text

    theta <- theta - eta dL / (sqrt(MS_g) + epsilon) + min(lambda RMS_norm, 1) (theta_g - theta)

with RMS_norm = sqrt(MS_g) over its mean (arXiv:1709.07432: the RMS rule with a global prior). A segment's
probabilities come from weights that have seen earlier segments alone.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from trainables import distributed
from trainables.lm.adaptation_config import DynamicEvaluation
from trainables.lm.evaluation import Score, count_not_finite, count_recoded, num_mine, share_recoded, windows_with_noise
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise
from trainables.lm.streams import NO_TARGET, Streams, Window


@dataclass(frozen=True, eq=False)
class Adapted:
    """A model with a recoder or none, and what moves in it.

    Attributes:
        parameters: that move.
        rms: of each, sqrt(MS_g) in nats: the root of the mean of its squared gradients over the training text.
        share_recoded: of the tokens of the training text; None where nothing is recoded.
    """

    network: Network
    attached: AttachedRecoder | None
    config: DynamicEvaluation
    parameters: list[nn.Parameter]
    rms: list[Tensor]
    seed: int
    share_recoded: float | None

    @property
    def num_weights(self) -> int:
        """How many weights move."""
        return sum(parameter.numel() for parameter in self.parameters)


def moving(network: Network, attached: AttachedRecoder | None, config: DynamicEvaluation) -> list[nn.Parameter]:
    """The parameters that a dynamic evaluation moves; step sizes only where the recoder uses them."""
    if config.weights != "all":
        both = [network.decoder_bias, network.decoder_weight]
        return both[:1] if config.weights == "bias" else both
    idle = set(network.steps.parameters()) if network.steps else set()
    if attached is not None and attached.steps is network.steps:
        idle = set()
    return [parameter for parameter in network.parameters() if parameter not in idle]


def prepare(
    network: Network,
    attached: AttachedRecoder | None,
    config: DynamicEvaluation,
    tokens: Int[Tensor, " N"],
    seed: int,
) -> Adapted:
    """Reads the training text `tokens` once: as many streams as in training, cut in segments, without dropout.

    A gradient is of the mean loss of the segments of all streams, which the processes share.
    """
    parameters = moving(network, attached, config)
    batch_size = network.config.training.batch_size
    streams = Streams(tokens, batch_size, config.segment)
    state = network.zeros(num_mine(batch_size), attached.recoder if attached else None)
    squares, recoded = [torch.zeros_like(parameter) for parameter in parameters], 0.0
    with _learning(network, parameters):
        windows = windows_with_noise(network.config, streams, attached, network.vocabulary_size, seed)
        for index, (window, drawn) in enumerate(windows):
            num_targets = int((streams.window(index).targets != NO_TARGET).sum())
            run = network(window, state, drawn, attached)
            state = run.state
            recoded += count_recoded(run)
            (run.loss.sum() / num_targets).backward()
            distributed.sum_gradients(parameters)
            for square, gradient in zip(squares, taken(parameters), strict=True):
                square.addcmul_(gradient, gradient)
    (recoded,) = distributed.sum_over_processes(recoded)
    share = share_recoded(recoded / (len(tokens) - 1), attached)
    rms = [(total / streams.num_windows).sqrt() for total in squares]
    return Adapted(network, attached, config, parameters, rms, seed, share)


def taken(parameters: list[nn.Parameter]) -> list[Tensor]:
    """The gradients of parameters, which are no longer theirs; zeros where a loss did not reach one."""
    gradients = [torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in parameters]
    for parameter in parameters:
        parameter.grad = None
    return gradients


def score(adapted: Adapted, tokens: Int[Tensor, " N"], rate: float, decay: float) -> Score:
    """Reads `tokens` as one stream while the weights move, and puts the trained weights back.

    Args:
        adapted: of `prepare`.
        tokens: the text.
        rate: eta.
        decay: lambda.
    """
    streams, started = Streams(tokens, 1, adapted.config.segment), time.perf_counter()
    nats, bad, recoded = 0.0, 0, 0.0
    for _, _, run in runs(adapted, streams, rate, decay):
        nats += run.nats.double().sum().item()
        bad += count_not_finite(run)
        recoded += count_recoded(run)
    duration_s = time.perf_counter() - started
    nats, total_bad, recoded = distributed.sum_over_processes(nats, bad, recoded)
    num_tokens = len(tokens) - 1
    share = share_recoded(recoded / num_tokens, adapted.attached)
    return Score(nats / num_tokens, num_tokens / duration_s, int(total_bad), share_recoded=share)


def runs(adapted: Adapted, streams: Streams, rate: float, decay: float) -> Iterator[tuple[Window, Noise, Run]]:
    """What comes of each segment, before the weights move by it; of the first that is not finite, and then of no more.

    The trained weights are put back behind the last.
    """
    network, attached, parameters = adapted.network, adapted.attached, adapted.parameters
    state = network.zeros(num_mine(1), attached.recoder if attached else None)
    with _learning(network, parameters), _moved_back(parameters) as trained:
        scales = [rate / (rms + adapted.config.epsilon) for rms in adapted.rms]
        pulls = [(decay * norm).clamp_max(1) for norm in _rms_norms(adapted.rms)]
        windows = windows_with_noise(network.config, streams, attached, network.vocabulary_size, adapted.seed)
        for window, drawn in windows if distributed.rank() == 0 else ():
            run = network(window, state, drawn, attached)
            state = run.state
            yield window, drawn, run
            if not math.isfinite(run.nats.double().sum().item()):
                break
            run.loss.mean().backward()
            with torch.no_grad():
                for parts in zip(parameters, trained, pulls, taken(parameters), scales, strict=True):
                    move(*parts)


def move(weight: Tensor, trained: Tensor, pull: Tensor, gradient: Tensor, scale: Tensor) -> None:
    """theta - scale g + pull (theta_g - theta), in place: three operations of each weight."""
    weight.lerp_(trained, pull).addcmul_(gradient, scale, value=-1)


def _rms_norms(rms: list[Tensor]) -> list[Tensor]:
    """Each sqrt(MS_g) over the mean of all; the released code takes the mean of the means of the tensors."""
    mean = sum(float(norm.double().sum()) for norm in rms) / sum(norm.numel() for norm in rms)
    return [norm / max(mean, torch.finfo(norm.dtype).tiny) for norm in rms]


@contextmanager
def _learning(network: Network, parameters: list[nn.Parameter]) -> Iterator[None]:
    """Gradients of `parameters` alone. cuDNN's have to be in training mode, which changes nothing else here."""
    network.train().requires_grad_(False)
    for parameter in parameters:
        parameter.requires_grad_()
    with torch.enable_grad():
        yield
    network.eval().requires_grad_()


@contextmanager
def _moved_back(parameters: list[nn.Parameter]) -> Iterator[list[Tensor]]:
    """The values of parameters now, which they have again afterwards."""
    trained = [parameter.detach().clone() for parameter in parameters]
    yield trained
    with torch.no_grad():
        for parameter, value in zip(parameters, trained, strict=True):
            parameter.copy_(value)
