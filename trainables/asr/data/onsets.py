"""A corpus with a known answer: a label is told by one onset frame, which a linear network cannot read.

**What is said.** An utterance has `NUM_SLOTS` slots of `1 + num_fillers` frames: an onset and its fillers. Slot i says
one of K = `num_choices` labels of its own, uniformly drawn. Band by band, the log-mel frames are: which slot this is
(one band each, 1 or 0), whether this is an onset (1 or 0), `CONTENT_BANDS` bands of content, and a hum. The content of
an onset is +u or -u, with equal chances, of one of `num_prototypes` random sign vectors u; the prototype tells the
label (its number modulo K). No other frame depends on the label.

**Small.** A linear network reads one frame. A label and its sign are independent, so its cross-entropy under weights A
of the content is the mean over +-u, and log-sum-exp is convex: A = 0 is at least as good (Jensen). The best small
network knows the slot and nothing else, and is wrong with probability 1 - 1/K. **Big.** A wide network with one hidden
layer can be even in u: it can know each prototype, and is never wrong.

**The error rate.** The labels of slots differ, so a symbol of a hypothesis can match one place of the reference only. With N
slots, a hypothesis of M symbols has an edit distance of at least max(M, N) less its matches. A symbol for an
onset that no big network has read matches with probability 1/K at most, so the distance is least, in expectation, with one
symbol in each slot: an unread onset costs 1 - 1/K, a read one nothing. Where onsets take the big network with
probability q the best error rate is therefore

    error(q) = (1 - q) (1 - 1/K).

Always small has q = 0, always big q = 1, random routing at rate r has q = r.

**Surprisal** under a model that knows all that can be known of the next frame: its prediction is the frame's mean given the
frames before, so slot, onset and silence cost nothing, and unknown content costs u^2 / 2 = CONTENT_BANDS / 2 nats.

- `surprising="onsets"`: fillers have no content, and nothing hums. Then only onsets surprise, they are a share
  r = 1 / (1 + num_fillers) of the frames, and a controller with the mean rate r and a variance s2 below r (1 - r) takes
  them with q = r + (1 - r) sqrt(s2 / (r (1 - r))): two probabilities, q and p, have r q + (1 - r) p = r and
  r (1 - r) (q - p)^2 = s2. As s2 grows to r (1 - r), q goes to 1. Routing by surprisal must win.
- `surprising="all"`: a filler has the content of a prototype too, independent of all labels, and each frame has a hum
  uniform in +-`HUM`. Content then costs the same everywhere, and what varies is the hum alone, which is
  independent of everything: q = r. Routing by surprisal is random routing, and cannot beat it at its rate.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from trainables import rng
from trainables.asr.data.config import Features, Onsets
from trainables.asr.data.corpus import SAMPLE_RATE_HZ, Splits, Utterance

if TYPE_CHECKING:
    from torch import Tensor

NUM_SLOTS: Final = 4
CONTENT_BANDS: Final = 10
NUM_BANDS: Final = NUM_SLOTS + 1 + CONTENT_BANDS + 1
FRAME_SAMPLES: Final = 400
HUM: Final = 3.0
"""Largest loudness of the hum, in nats of log energy."""
FEATURES: Final = Features(num_mel_bins=NUM_BANDS, window_ms=25, hop_ms=25, keep_every=1)
"""With which the recogniser sees the bands as they are made: windows that do not overlap."""


@cache
def make_splits(config: Onsets) -> Splits:
    """Utterances of equal lengths; no speaker is in two splits."""
    return Splits(
        train=_utterances(config, config.num_train_utterances, "train"),
        validation=_utterances(config, config.num_validation_utterances, "validation"),
        test=_utterances(config, config.num_test_utterances, "test"),
        labels=tuple(f"{slot + 1}{chr(ord('a') + choice)}" for slot in range(NUM_SLOTS) for choice in range(config.num_choices)),
    )


def _utterances(config: Onsets, number: int, split: str) -> tuple[Utterance, ...]:
    slot_s = (1 + config.num_fillers) * FRAME_SAMPLES / SAMPLE_RATE_HZ
    times_s = tuple((slot * slot_s, (slot + 1) * slot_s) for slot in range(NUM_SLOTS))
    num_samples = NUM_SLOTS * (1 + config.num_fillers) * FRAME_SAMPLES
    made = []
    for identity in (f"{split}-{i:05d}" for i in range(number)):
        choices = _prototypes_of(config, identity)[:, 0] % config.num_choices
        labels = tuple((np.arange(NUM_SLOTS) * config.num_choices + choices).tolist())
        made.append(Utterance(identity, split, labels, num_samples, None, times_s))
    return tuple(made)


def _prototypes_of(config: Onsets, identity: str) -> NDArray[np.int64]:
    """The prototype of each frame, shape (slots, frames of a slot); whether fillers show theirs is another matter."""
    shape = (NUM_SLOTS, 1 + config.num_fillers)
    return rng.numpy_generator(config.seed, "prototypes of", identity).integers(config.num_prototypes, size=shape)


@cache
def prototypes(config: Onsets) -> NDArray[np.float64]:
    """Different sign vectors, none another's negative: shape (num_prototypes, CONTENT_BANDS)."""
    numbers = rng.numpy_generator(config.seed, "prototypes").permutation(2 ** (CONTENT_BANDS - 1))
    bits = numbers[: config.num_prototypes, None] >> np.arange(CONTENT_BANDS) & 1
    return 2.0 * bits - 1


def log_energies(config: Onsets, identity: str) -> Float[NDArray[np.float64], "T F"]:
    """What each band of each frame shall have, in nats."""
    draw = rng.numpy_generator(config.seed, "signs and hum of", identity)
    shape = (NUM_SLOTS, 1 + config.num_fillers)
    frames = np.zeros((*shape, NUM_BANDS))
    frames[..., :NUM_SLOTS] = np.eye(NUM_SLOTS)[:, None]
    frames[:, 0, NUM_SLOTS] = 1
    content = prototypes(config)[_prototypes_of(config, identity)] * draw.choice((-1.0, 1.0), size=(*shape, 1))
    if config.surprising == "all":
        frames[..., -1] = draw.uniform(-HUM, HUM, size=shape)
    else:
        content[:, 1:] = 0
    frames[..., NUM_SLOTS + 1 : -1] = content
    return frames.reshape(-1, NUM_BANDS)


def waveform(config: Onsets, identity: str) -> "Float[Tensor, ' N']":
    """Audio at 16 kHz whose log-mel frames are `log_energies`: in each frame one tone for each band.

    A tone lies on the Fourier bin nearest to its band's middle, three bins from the next or more. Under a Hamming window
    it leaks into the two bins beside it alone, so that tones do not meet and the powers of bands are linear in theirs.
    """
    import torch

    bins, powers_of_tones = _tones()
    amplitudes = np.sqrt(np.exp(log_energies(config, identity)) @ powers_of_tones.T)
    phases = 2 * np.pi * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES
    return torch.from_numpy((amplitudes @ np.sin(np.outer(bins, phases))).reshape(-1).astype(np.float32))


@cache
def _tones() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The Fourier bin of each band's tone, and the tones' squared amplitudes that give each band alone unit energy."""
    import torch
    from torchaudio.compliance import kaldi

    from trainables.asr.data.features import fbank

    banks = kaldi.get_mel_banks(NUM_BANDS, FRAME_SAMPLES, float(SAMPLE_RATE_HZ), 20.0, 0.0, 100.0, -500.0, 1.0)[0]
    bins = banks.argmax(1).numpy()
    times = 2 * np.pi * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES
    energies = [fbank(torch.from_numpy(np.sin(times * one).astype(np.float32)), FEATURES)[0].exp() for one in bins]
    return bins, np.linalg.inv(torch.stack(energies).double().numpy().T)
