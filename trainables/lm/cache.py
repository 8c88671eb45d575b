"""The continuous cache: words that came behind similar states (Grave et al. 2017, arXiv:1612.04426).

With the last N states h_i and the words x_{i + 1} behind them,

    p_cache(w) ~ sum over i of [x_{i + 1} = w] exp(theta h_t . h_i)    p = (1 - lambda) p_model + lambda p_cache

A state is the one that the output is decoded from: of surprisal before recoding, of other signals, whose output is
computed again, after it. Where the cache is empty, p is the model's.
"""

import math
import time
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables import distributed
from trainables.lm.adaptation_config import Cache
from trainables.lm.evaluation import Score, count_not_finite, count_recoded, num_mine, share_recoded, windows_with_noise
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.streams import NO_TARGET, Streams


@torch.no_grad()
def scores(
    network: Network,
    attached: AttachedRecoder | None,
    config: Cache,
    tokens: Int[Tensor, " N"],
    seed: int,
    settings: Sequence[tuple[float, float]],
) -> list[Score]:
    """Reads `tokens` as one stream, for all `settings` (theta, lambda) at once."""
    network.eval()
    streams = Streams(tokens, 1, network.config.training.window)
    state = network.zeros(num_mine(1), attached.recoder if attached else None)
    keys = state.new_zeros(config.size, network.config.hidden_size)
    words = torch.full((config.size,), NO_TARGET, device=state.device)
    thetas, shares = (state.new_tensor(values) for values in zip(*settings, strict=True))
    nats = torch.zeros(len(settings), dtype=torch.float64)
    bad, recoded, started = 0, 0.0, time.perf_counter()
    windows = windows_with_noise(network.config, streams, attached, network.vocabulary_size, seed)
    for window, drawn in windows if distributed.rank() == 0 else ():
        run = network(window, state, drawn, attached)
        state, queries, targets = run.state, decoded(run), window.targets[:, 0]
        keys, words = torch.cat([keys, queries]), torch.cat([words, targets])
        is_seen = in_cache(words, len(queries), config.size)
        matches = is_seen & (words == targets[:, None])
        nats += mixed(run.nats[:, 0], queries @ keys.t(), is_seen, matches, thetas, shares).double().sum(1).cpu()
        keys, words = keys[-config.size :], words[-config.size :]
        bad += count_not_finite(run)
        recoded += count_recoded(run)
    duration_s = time.perf_counter() - started
    *totals, total_bad, recoded = distributed.sum_over_processes(*nats.tolist(), bad, recoded)
    num_tokens = len(tokens) - 1
    share = share_recoded(recoded / num_tokens, attached)
    return [Score(total / num_tokens, num_tokens / duration_s, int(total_bad), share_recoded=share) for total in totals]


def decoded(run: Run) -> Float[Tensor, "T H"]:
    """The top states of one stream that its outputs are decoded from."""
    if run.trace is None:
        assert run.tops is not None
        return run.tops[:, 0]
    return torch.stack(run.trace.tops if run.trace.losses else run.trace.recoded_tops)[:, 0]


def in_cache(words: Int[Tensor, " K"], num_steps: int, size: int) -> Bool[Tensor, "T K"]:
    """Which of K = `size` + T entries each of the last T steps may see: the `size` before its own, where there are."""
    entries = torch.arange(len(words), device=words.device)
    first = torch.arange(num_steps, device=words.device)[:, None]
    return (entries >= first) & (entries < first + size) & (words != NO_TARGET)


def mixed(
    nats: Float[Tensor, " T"],
    products: Float[Tensor, "T K"],
    is_seen: Bool[Tensor, "T K"],
    matches: Bool[Tensor, "T K"],
    thetas: Float[Tensor, " S"],
    shares: Float[Tensor, " S"],
) -> Float[Tensor, "S T"]:
    """-log of the mixture's probability of the word that came, for S settings.

    Args:
        nats: of the model.
        products: h_t . h_i.
        is_seen: which entries are in the cache at t.
        matches: those of them whose word came at t.
        thetas: theta.
        shares: lambda.
    """
    mixtures = []
    for theta, share in zip(thetas, shares, strict=True):
        weights = theta * products
        of_all = weights.masked_fill(~is_seen, -math.inf).logsumexp(1)
        cached = weights.masked_fill(~matches, -math.inf).logsumexp(1) - of_all
        together = -torch.logaddexp((1 - share).log() - nats, share.log() + cached)
        mixtures.append(torch.where(is_seen.any(1), together, nats))
    return torch.stack(mixtures)
