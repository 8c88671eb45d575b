"""Reading a text with a model: what it made of every token, from which the metrics follow."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from trainables import distributed, rng
from trainables.lm import noise
from trainables.lm.config import LmConfig
from trainables.lm.cuda_graph import CudaGraph
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise
from trainables.lm.streams import NO_TARGET, Streams, Window


@dataclass(frozen=True)
class Score:
    """Of a text.

    Attributes:
        loss_nats: mean of -log p.
        tokens_per_s: read, from inputs to losses, in all processes together.
        num_not_finite: recoding gradients that were not finite, of one activation in one row.
        before, after: mean delta over the same tokens; None without a recoder, or where it was not asked for.
    """

    loss_nats: float
    tokens_per_s: float
    num_not_finite: int
    before: float | None
    after: float | None

    @property
    def perplexity(self) -> float:
        """exp of the mean; infinite above what a float holds."""
        return math.exp(self.loss_nats) if self.loss_nats < 700 else math.inf


def mine(window: Window, drawn: Noise) -> tuple[Window, Noise]:
    """This process's share of a window and its noise: every n-th stream."""
    if distributed.world_size() == 1:
        return window, drawn
    share, batch_size = distributed.share(), window.inputs.shape[1]
    rows = torch.arange(batch_size, device=window.inputs.device)[share]
    return window.rows(share), drawn.streams(rows, batch_size)


def num_mine(batch_size: int) -> int:
    """Streams of this process."""
    return len(range(batch_size)[distributed.share()])


def windows_with_noise(
    config: LmConfig,
    streams: Streams,
    attached: AttachedRecoder | None,
    vocabulary_size: int,
    seed: int,
) -> Iterator[tuple[Window, Noise]]:
    """The windows of a text, each with the noise of a test, on this process's device."""
    device = distributed.device()
    for index in range(streams.num_windows):
        window = streams.window(index).to(device)
        generator = torch.Generator(device).manual_seed(rng.derive(seed, "test", index))
        shape = (window.inputs.shape[0], window.inputs.shape[1])
        recoder = attached.recoder if attached else None
        yield mine(window, noise.draw(config, recoder, shape, vocabulary_size, generator, is_training=False))


@torch.no_grad()
def score(
    network: Network,
    tokens: Int[Tensor, " N"],
    attached: AttachedRecoder | None,
    batch_size: int,
    seed: int,
    measures_delta: bool = False,
) -> Score:
    """Reads `tokens` in parallel streams, with masks drawn from `seed`; the processes share the streams.

    Delta is measured by reading them once more, which the speed leaves out.
    """
    network.eval()
    config = network.config
    streams = Streams(tokens, batch_size, config.training.window)
    arguments = (config, streams, attached, network.vocabulary_size, seed)
    recoder = attached.recoder if attached else None
    state = network.zeros(num_mine(batch_size), recoder)
    nats, num_not_finite, started = 0.0, 0, time.perf_counter()
    read = CudaGraph(lambda window, state, drawn: network(window, state, drawn, attached), [])
    for window, drawn in windows_with_noise(*arguments):
        run = read(window, state, drawn)
        state = run.state
        nats += run.nats.double().sum().item()
        num_not_finite += count_not_finite(run, window)
    duration_s = time.perf_counter() - started
    sums = distributed.sum_over_processes(nats, num_not_finite, 0.0, 0.0, 0.0)
    if recoder and measures_delta:
        sums[2:] = distributed.sum_over_processes(
            *_deltas(network, windows_with_noise(*arguments), attached, batch_size)
        )
    num_tokens = len(tokens) - 1
    before, after = (sums[i] / sums[4] if sums[4] else None for i in (2, 3))
    return Score(sums[0] / num_tokens, num_tokens / duration_s, int(sums[1]), before, after)


def _deltas(
    network: Network, windows: Iterator[tuple[Window, Noise]], attached: AttachedRecoder | None, batch_size: int
) -> tuple[float, float, float]:
    """Sums of delta before and after recoding, and of how many tokens."""
    state = network.zeros(num_mine(batch_size), attached.recoder if attached else None)
    before = after = count = 0.0
    read = CudaGraph(lambda window, state, drawn: network(window, state, drawn, attached, measures_after=True), [])
    for window, drawn in windows:
        run = read(window, state, drawn)
        state = run.state
        if run.trace is None:
            break
        is_asked = window.targets != NO_TARGET
        before += torch.stack(run.trace.before)[is_asked].double().sum().item()
        after += torch.stack(run.trace.after)[is_asked].double().sum().item()
        count += float(is_asked.sum())
    return before, after, count


def count_not_finite(run: Run, window: Window) -> int:
    """Only where something is asked."""
    if run.trace is None:
        return 0
    norms = torch.stack(run.trace.norms)
    is_asked = (window.targets != NO_TARGET).repeat(1, norms.shape[2] // max(1, window.targets.shape[1]))
    return int((~norms.isfinite() & is_asked[:, None]).sum())
