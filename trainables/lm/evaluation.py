"""Reading a text with a model: what it made of every token, from which the metrics follow."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from trainables import checkpoint, distributed, rng
from trainables.lm import noise
from trainables.lm.config import Evaluation, LmConfig, WeakSupervision
from trainables.lm.cuda_graph import CudaGraph
from trainables.lm.network import AttachedRecoder, Network, Run, attach_recoder, members_around
from trainables.lm.noise import Noise
from trainables.lm.shapes import num_copies
from trainables.lm.signals.error_signal import is_raised
from trainables.lm.streams import NO_TARGET, Streams, Window


@dataclass(frozen=True)
class Score:
    """How well a model reads a text, and how fast.

    Attributes:
        loss_nats: mean of -log p.
        tokens_per_s: read, from inputs to losses, in all processes together.
        num_not_finite: recoding gradients that were not finite, of one activation in one row.
        before, after: mean delta over the same tokens; None without a recoder, or where it was not asked for.
        raised: the share of them whose delta recoding raised.
        share_recoded: of the tokens; None without a recoder, and with a probe, which running text has no labels for.
        streams: of each part of the text that was read in parallel, -log p of its tokens together, and how many it has.
    """

    loss_nats: float
    tokens_per_s: float
    num_not_finite: int
    before: float | None = None
    after: float | None = None
    raised: float | None = None
    share_recoded: float | None = None
    streams: tuple[tuple[float, int], ...] = ()

    @property
    def perplexity(self) -> float:
        """exp of the mean; infinite above what a float holds."""
        return math.exp(self.loss_nats) if self.loss_nats < 700 else math.inf


def valid_metrics(network: Network, valid: Score) -> dict[str, float]:
    """The metrics of the validation text, and of an ensemble the spread of its members."""
    spread = network.member_spread()
    metrics = {"valid_loss_nats": valid.loss_nats, "valid_perplexity": valid.perplexity}
    return metrics if spread is None else metrics | {"member_spread": spread}


def recoder_of(network: Network, evaluation: Evaluation) -> AttachedRecoder | None:
    """The recoder of an evaluation: the model's own, none, or one that the model was trained without."""
    if evaluation.recoder == "none":
        return None
    if evaluation.recoder == "own":
        return network.own
    return attach_recoder(network, evaluation.recoder, test_seed(network, evaluation))


def on_baseline(
    network: Network, attached: AttachedRecoder | None, checkpoint_path: Path, evaluation: Evaluation
) -> tuple[Network, AttachedRecoder | None]:
    """The baseline in a checkpoint, with the recoder and the trained step sizes of `network` (thesis section 5.3.5)."""
    baseline = Network(network.config.baseline, network.vocabulary_size).to(distributed.device())
    baseline.load_state_dict(checkpoint.load(checkpoint_path)["network"])
    if attached is None:
        return baseline, None
    members = members_around(baseline, attached.recoder, test_seed(network, evaluation))
    return baseline, replace(attached, members=members)


def test_seed(network: Network, evaluation: Evaluation) -> int:
    """The seed of what an evaluation draws; replicates draw each their own."""
    return rng.derive(network.config.seed, "evaluation", evaluation.seed)


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
    by_stream = torch.zeros(2, num_mine(batch_size), dtype=torch.float64, device=state.device)
    nats, num_not_finite, num_recoded, started = 0.0, 0, 0.0, time.perf_counter()
    is_fixed = not (recoder and recoder.skips_shut_rows)
    read = CudaGraph(lambda window, state, drawn: network(window, state, drawn, attached), [], is_fixed)
    for window, drawn in windows_with_noise(*arguments):
        run = read(window, state, drawn)
        state = run.state
        nats += run.nats.double().sum().item()
        by_stream += torch.stack([run.nats.double().sum(0), (window.targets != NO_TARGET).double().sum(0)])
        num_not_finite += count_not_finite(run)
        num_recoded += count_recoded(run)
    duration_s = time.perf_counter() - started
    sums = distributed.sum_over_processes(nats, num_not_finite, 0.0, 0.0, 0.0, 0.0, num_recoded)
    if recoder and measures_delta:
        sums[2:6] = distributed.sum_over_processes(
            *_deltas(network, windows_with_noise(*arguments), attached, batch_size)
        )
    num_tokens = len(tokens) - 1
    before, after, raised = (total / sums[5] if sums[5] else None for total in sums[2:5])
    share = share_recoded(sums[6] / num_tokens, attached)
    parts = _streams_of_all(by_stream.T.tolist(), batch_size)
    return Score(sums[0] / num_tokens, num_tokens / duration_s, int(sums[1]), before, after, raised, share, parts)


def _streams_of_all(mine: list[list[float]], batch_size: int) -> tuple[tuple[float, int], ...]:
    """The streams that have a target, in the order of the text; each process has every n-th."""
    whole: list[list[float]] = [[]] * batch_size
    parts = distributed.gather(mine)
    for rank, part in enumerate(parts):
        whole[rank :: len(parts)] = part
    return tuple((nats, int(count)) for nats, count in whole if count)


def _deltas(
    network: Network, windows: Iterator[tuple[Window, Noise]], attached: AttachedRecoder | None, batch_size: int
) -> tuple[float, float, float, float]:
    """Sums of delta before and after recoding, of tokens where it rose, and of tokens."""
    state = network.zeros(num_mine(batch_size), attached.recoder if attached else None)
    before = after = raised = count = 0.0
    is_fixed = not (attached and attached.recoder.skips_shut_rows)
    read = CudaGraph(
        lambda window, state, drawn: network(window, state, drawn, attached, measures_after=True), [], is_fixed
    )
    for window, drawn in windows:
        run = read(window, state, drawn)
        state = run.state
        if run.trace is None:
            break
        is_target = window.targets != NO_TARGET
        deltas = [torch.stack(part)[is_target].double() for part in (run.trace.before, run.trace.after)]
        before += deltas[0].sum().item()
        after += deltas[1].sum().item()
        raised += float(is_raised(*deltas).sum())
        count += float(is_target.sum())
    return before, after, raised, count


def count_recoded(run: Run) -> float:
    """Rows that were recoded."""
    return run.trace.num_recoded() if run.trace else 0.0


def share_recoded(rows_per_token: float, attached: AttachedRecoder | None) -> float | None:
    """The share of the tokens; each has a row for every copy of the state. None where text is not recoded."""
    if attached is None or isinstance(attached.recoder.signal, WeakSupervision):
        return None
    return rows_per_token / num_copies(attached.recoder)


def count_not_finite(run: Run) -> int:
    """Gradients that are not finite, of recoded rows; a row without an open gate or a target does not count."""
    if run.trace is None:
        return 0
    norms = torch.stack(run.trace.norms)
    is_recoded = torch.stack(run.trace.gates) > 0
    return int((~norms.isfinite() & is_recoded[:, None]).sum())
