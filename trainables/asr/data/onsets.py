"""A corpus with a known answer: a label is told by one onset frame, which a linear network cannot read.

**What is said.** An utterance has `NUM_SLOTS` slots of `1 + num_fillers` frames: an onset and its fillers. Slot i says
one of two labels of its own, `a` or `b`. In nats of log-mel energy, an onset shows which slot it is (+1 in one of
`NUM_SLOTS` bands, -1 in the others), that it is an onset (+1), and two signs x and y, in a band each: all four pairs
are equally likely, `a` has x = y and `b` has x = -y. A filler has `QUIET` where an onset has its marks. The last band
hums. No frame but the onset depends on the label.

**The networks** read single frames: appendix A's model 3 with a kernel of one frame. Where a *linear* one says a
label, of all that it may say, is a convex set. If it read all four pairs, the middle of (1, 1) and (-1, -1) would be
`a`, and the middle of (1, -1) and (-1, 1), the same point, `b`. So it reads three at most, and errs in 1/4 or more.
(Both signs turned, an onset says the same, and cross-entropy is convex in the weights: it is least where those of x and
y are zero, and then the error is 1/2. A checkpoint chosen by its validation error lies between.) A *wide* one with a
hidden layer can know x y, and never err. With e in [1/4, 1/2], a recogniser that sends onsets through the big network
with probability q has at best the error rate

    error(q) = (1 - q) e.

The edit distance allows no less, since the labels of slots differ: a symbol can match one place of the reference only.
M symbols against N have an edit distance of at least max(M, N) less the matches. Of an unread onset one symbol matches
with probability 3/4 at most, two surely: to leave one out loses more than it saves, and so does a second one, so one
for each slot is best. Always small has q = 0, always big q = 1, random routing at rate r has q = r.

**Surprisal** under a model that knows all that can be known of the next frame is 1/2 the squared distance to its mean
given the frames before. Marks and silence can be foreseen. x and y cannot: they cost 1 nat, whatever the label.

- `surprising="onsets"`: fillers are silent (x = y = 0) and nothing hums. Only onsets surprise, a share
  r = 1 / (1 + num_fillers) of the frames. A controller that gives p_big the mean r and a variance s2 sends them to the
  big network with q = r + (1 - r) sqrt(s2 / (r (1 - r))): p_big has two values, so r q + (1 - r) p = r and
  r (1 - r) (q - p)^2 = s2. As s2 grows to r (1 - r), q goes to 1. Routing by surprisal must win.
- `surprising="all"`: fillers have signs too, drawn as those of onsets are, and each frame hums, uniformly within
  `HUM`. The signs cost the same in all frames. What varies is the hum alone, which is independent of everything, so
  q = r. Routing by surprisal is random routing, and cannot beat it at its rate.
"""

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from trainables import rng
from trainables.asr.data.config import SAMPLE_RATE_HZ, Features, Onsets
from trainables.asr.data.corpus import Splits, Utterance

if TYPE_CHECKING:
    from torch import Tensor

NUM_SLOTS: Final = 4
NUM_BANDS: Final = NUM_SLOTS + 1 + 2 + 1
FRAME_SAMPLES: Final = 400
QUIET: Final = {"onsets": -4.0, "all": -1.0}
"""Nats of log energy of the marks in a filler: among silent frames CTC finds the onsets sooner."""
HUM: Final = 2.5
"""Nats of log energy of the last band at its loudest and, negative, softest."""
FEATURES: Final = Features(num_mel_bins=NUM_BANDS, window_ms=25, hop_ms=25, keep_every=1)
"""The front end that shows the bands as they are made: windows that do not overlap."""


@cache
def make_splits(config: Onsets) -> Splits:
    """Utterances of equal lengths; each split has a speaker of its own."""
    return Splits(
        train=_utterances(config, config.num_train_utterances, "train"),
        validation=_utterances(config, config.num_validation_utterances, "validation"),
        test=_utterances(config, config.num_test_utterances, "test"),
        labels=tuple(f"{letter}{slot + 1}" for slot in range(NUM_SLOTS) for letter in "ab"),
    )


def _utterances(config: Onsets, number: int, split: str) -> tuple[Utterance, ...]:
    slot_samples = (1 + config.num_fillers) * FRAME_SAMPLES
    ends = [slot * slot_samples / SAMPLE_RATE_HZ for slot in range(NUM_SLOTS + 1)]
    made = []
    for identity in (f"{split}-{i:05d}" for i in range(number)):
        x, y = _signs(config, identity)[:, :, 0]
        labels = tuple((2 * np.arange(NUM_SLOTS) + (x != y)).tolist())
        made.append(Utterance(identity, split, labels, NUM_SLOTS * slot_samples, None, tuple(pairwise(ends))))
    return tuple(made)


def _signs(config: Onsets, identity: str) -> Float[NDArray[np.float64], "2 S N"]:
    """x and y of each frame of each slot, the onset first; fillers may keep silent about theirs."""
    shape = (2, NUM_SLOTS, 1 + config.num_fillers)
    return rng.numpy_generator(config.seed, "signs", identity).choice((-1.0, 1.0), size=shape)


def log_energies(config: Onsets, identity: str) -> Float[NDArray[np.float64], "T F"]:
    """What the front end shall see, in nats."""
    signs = _signs(config, identity)
    frames = np.full((*signs.shape[1:], NUM_BANDS), QUIET[config.surprising])
    hum = np.zeros(signs.shape[1:])
    if config.surprising == "all":
        draw = rng.numpy_generator(config.seed, "hum", identity)
        hum = draw.uniform(-HUM, HUM, size=hum.shape)
    else:
        signs[:, :, 1:] = 0
    frames[:, 0, : NUM_SLOTS + 1] = np.eye(NUM_SLOTS, NUM_SLOTS + 1) * 2 - 1
    frames[:, 0, NUM_SLOTS] = 1
    frames[..., -3:-1], frames[..., -1] = np.moveaxis(signs, 0, -1), hum
    return frames.reshape(-1, NUM_BANDS)


def waveform(config: Onsets, identity: str) -> "Float[Tensor, ' N']":
    """Audio at 16 kHz whose log-mel frames are `log_energies`: in each frame one tone for each band.

    A tone has a whole number of periods in a frame. Under a Hamming window it leaks into the two Fourier bins beside
    its own alone, and the tones are further apart, so that the energies of bands are linear in those of tones.
    """
    import torch

    waves, energies_of_tones = _tones()
    energies = np.exp(log_energies(config, identity)) @ energies_of_tones
    return torch.from_numpy((np.sqrt(energies) @ waves).reshape(-1).astype(np.float32))


@cache
def _tones() -> tuple[Float[NDArray[np.float64], "F N"], Float[NDArray[np.float64], "F F"]]:
    """A frame of each band's tone, and the squared amplitudes of all tones (columns) that give one band unit energy."""
    import torch
    from torchaudio.compliance import kaldi

    from trainables.asr.data.features import fbank

    banks = kaldi.get_mel_banks(NUM_BANDS, FRAME_SAMPLES, float(SAMPLE_RATE_HZ), 20.0, 0.0, 100.0, -500.0, 1.0)[0]
    periods = banks.argmax(1).double().numpy()
    waves = np.sin(2 * np.pi * np.outer(periods, np.arange(FRAME_SAMPLES)) / FRAME_SAMPLES)
    seen = [fbank(torch.from_numpy(wave.astype(np.float32)), FEATURES)[0].double().exp().numpy() for wave in waves]
    return waves, np.linalg.inv(np.stack(seen))
