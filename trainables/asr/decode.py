"""CTC decoding without a language model: greedy, and prefix beam search in log-sum arithmetic."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from trainables.asr.ctc_loss import ctc_losses

Labels = tuple[int, ...]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ROOT, _NOWHERE = np.uint64(1), np.uint64(0)


def greedy(log_probs: Float[Tensor, "B T L"], num_frames: Int[Tensor, " B"]) -> list[Labels]:
    """The labels of the most probable alignment; the blank is the last of the L symbols."""
    blank = log_probs.shape[-1] - 1
    decoded = []
    for best, length in zip(log_probs.argmax(-1), num_frames.tolist(), strict=True):
        merged = torch.unique_consecutive(best[:length]).tolist()
        decoded.append(tuple(label for label in merged if label != blank))
    return decoded


@dataclass
class _Beams:
    """The W best prefixes of each of B utterances.

    A prefix is named by a 64-bit hash of its labels, so that equal prefixes reached in two ways are found to be one;
    `_NOWHERE` names the parent of places that hold no prefix.
    """

    ends_blank: Float[NDArray[np.float64], "B W"]
    ends_label: Float[NDArray[np.float64], "B W"]
    last: Int[NDArray[np.int64], "B W"]
    name: NDArray[np.uint64]
    parent: NDArray[np.uint64]


def beam_search(log_probs: Float[Tensor, "B T L"], num_frames: Int[Tensor, " B"], width: int = 10) -> list[Labels]:
    """The most probable label sequence among the prefixes that a beam search of `width` ends with and the greedy one.

    The search sums the probabilities of all alignments of a prefix that it has kept (Graves 2012, section 7.5.3; Hannun
    et al. 2014, arXiv:1408.2873, algorithm 1), which a narrow beam underestimates; so the last choice is by exact CTC
    scores.
    """
    kept, first = prefixes(log_probs, num_frames, width), greedy(log_probs, num_frames)
    candidates = [list(dict.fromkeys([label, *others])) for label, others in zip(first, kept, strict=True)]
    owners = torch.tensor([row for row, some in enumerate(candidates) for _ in some])
    flat = [labels for some in candidates for labels in some]
    scores = -ctc_losses(log_probs[owners].detach().double(), num_frames[owners], flat).cpu()
    ranked = torch.split(scores, [len(some) for some in candidates])
    return [some[int(score.argmax())] for some, score in zip(candidates, ranked, strict=True)]


def prefixes(log_probs: Float[Tensor, "B T L"], num_frames: Int[Tensor, " B"], width: int) -> list[list[Labels]]:
    """The prefixes that a beam search of `width` ends with, for each utterance, the most probable first.

    All utterances advance together.
    """
    probabilities = log_probs.detach().double().cpu().numpy()
    lengths = num_frames.numpy()
    shape = (len(probabilities), width)
    beams = _Beams(
        ends_blank=np.full(shape, -np.inf),
        ends_label=np.full(shape, -np.inf),
        last=np.full(shape, -1),
        name=np.full(shape, _NOWHERE),
        parent=np.full(shape, _NOWHERE),
    )
    beams.ends_blank[:, 0], beams.name[:, 0] = 0.0, _ROOT  # the empty prefix
    sources, symbols = [], []
    for t in range(probabilities.shape[1]):
        grown, source, symbol = _advance(beams, probabilities[:, t])
        active = (t < lengths)[:, None]
        beams = _Beams(**{name: np.where(active, new, getattr(beams, name)) for name, new in vars(grown).items()})
        sources.append(np.where(active, source, np.arange(width)))
        symbols.append(np.where(active, symbol, -1))
    total = np.logaddexp(beams.ends_blank, beams.ends_label)
    order = np.argsort(-total, axis=1, kind="stable")
    return [
        [_trace(b, int(beam), sources, symbols) for beam in ranked if np.isfinite(total[b, beam])]
        for b, ranked in enumerate(order)
    ]


def _advance(
    beams: _Beams, scores: Float[NDArray[np.float64], "B L"]
) -> tuple[_Beams, NDArray[np.int64], NDArray[np.int64]]:
    """One frame: every prefix stays or grows by a label; the W best are kept, with where they came from and by what."""
    (num_utterances, width), num_labels = beams.last.shape, scores.shape[1] - 1
    rows = np.arange(num_utterances)[:, None]
    total = np.logaddexp(beams.ends_blank, beams.ends_label)
    last = np.maximum(beams.last, 0)
    stay_blank = total + scores[:, -1:]
    stay_label = np.where(beams.last >= 0, beams.ends_label + scores[rows, last], -np.inf)
    grow = total[:, :, None] + scores[:, None, :-1]
    repeated = np.where(beams.last >= 0, beams.ends_blank + scores[rows, last], grow[rows, np.arange(width), last])
    grow[rows, np.arange(width), last] = repeated
    stay_label = _merge(beams, grow, stay_label)

    candidates = np.concatenate([np.logaddexp(stay_blank, stay_label), grow.reshape(num_utterances, -1)], axis=1)
    kept = np.argpartition(-candidates, width - 1, axis=1)[:, :width]
    grows = kept >= width
    source = np.where(grows, (kept - width) // num_labels, kept)
    symbol = np.where(grows, (kept - width) % num_labels, -1)
    value = np.take_along_axis(candidates, kept, axis=1)
    came_from = beams.name[rows, source]
    grown = _Beams(
        ends_blank=np.where(grows, -np.inf, stay_blank[rows, source]),
        ends_label=np.where(grows, value, stay_label[rows, source]),
        last=np.where(grows, symbol, beams.last[rows, source]),
        name=np.where(grows, came_from * _MULTIPLIER + (symbol + 2).astype(np.uint64), came_from),
        parent=np.where(grows, came_from, beams.parent[rows, source]),
    )
    dead = np.isneginf(value)
    grown.name[dead], grown.parent[dead] = _NOWHERE, _NOWHERE
    return grown, source, symbol


def _merge(beams: _Beams, grow: NDArray[np.float64], stay_label: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adds to each prefix that stays what its parent would grow into it, and takes that growth out of `grow`."""
    is_parent = (beams.name[:, :, None] == beams.parent[:, None, :]) & (beams.parent != _NOWHERE)[:, None, :]
    utterance, parent, child = is_parent.nonzero()
    label = beams.last[utterance, child]
    merged = stay_label.copy()
    merged[utterance, child] = np.logaddexp(stay_label[utterance, child], grow[utterance, parent, label])
    grow[utterance, parent, label] = -np.inf
    return merged


def _trace(utterance: int, beam: int, sources: list[NDArray[np.int64]], symbols: list[NDArray[np.int64]]) -> Labels:
    labels = []
    for source, symbol in zip(reversed(sources), reversed(symbols), strict=True):
        if symbol[utterance, beam] >= 0:
            labels.append(int(symbol[utterance, beam]))
        beam = int(source[utterance, beam])
    return tuple(reversed(labels))
