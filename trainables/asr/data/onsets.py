"""A corpus with a known answer: a label is told by one onset frame, which a linear network cannot read.

**What is said.** An utterance has `NUM_SLOTS` slots of `1 + num_fillers` frames: an onset and its fillers. Slot i says
one of two labels of its own, `a` with probability 2/3, `b` with 1/3, independently. Its onset shows, band by band in
nats of log-mel energy: which slot it is (1 in one of `NUM_SLOTS` bands); x in `VOICE_BANDS` bands and y in as many
others, both +1 or -1, with x = y for `a`, x = -y for `b`, and either sign equally likely. The last band hums. No other
frame depends on the label.

**The networks** read single frames. A *linear* one (appendix A's model 3 with a kernel of one frame) cannot read an onset:

- (x, y) and (-x, -y) tell the same label and are equally likely, and the loss is convex in the weights of the onsets' content: the
  mean over both signs is least where these weights are zero (Jensen). The network that minimises the loss knows the
  slot, says the likelier label, and errs in 1/3 of the slots.
- No linear network errs in less than 1/6: where an output is largest is convex, so of the four points `b` cannot have
  both of its own unless it has the centre, and then it has one half or more of what is symmetric about it, of `a` 1/3.
  With one of its points it errs in 1/6.

A *wide* one with a hidden layer can know x y, and never err. With e = 1/3 (or any other from 1/6), the best error rate of
a recogniser that sends onsets through the big network with probability q is

    error(q) = (1 - q) e,

since the labels of slots differ: a symbol of a hypothesis can match one place of the reference only. The edit distance of M symbols to N is
at least max(M, N) less the matches. Of an onset that was not read one symbol matches with probability 2/3 at most, two
match surely, so to leave one out costs more than it saves, and so does a second one: one for each slot is best.
Always small has q = 0, always big q = 1, random routing at rate r has q = r.

**Surprisal** under a model that knows all that can be known of the next frame is 1/2 the squared distance to its mean
given the frames before. Slot, onset and silence can be foreseen, x and y cannot: they cost `VOICE_BANDS` nats, whatever the label.

- `surprising="onsets"`: fillers are silent and nothing hums. Only onsets surprise, a share r = 1 / (1 + num_fillers) of
  the frames. A controller that gives p_big the mean r and a variance s2 takes them with
  q = r + (1 - r) sqrt(s2 / (r (1 - r))), because p_big has two values: r q + (1 - r) p = r and r (1 - r) (q - p)^2 = s2. As s2
  grows to r (1 - r), q goes to 1. Routing by surprisal must win.
- `surprising="all"`: fillers have an x and a y too, drawn as those of onsets are, and each frame hums, uniformly within
  `HUM`. The content costs the same in all frames. What varies is the hum alone, which is independent of everything, so q = r.
  Routing by surprisal is random routing, and cannot beat it at its rate.
"""

from functools import cache
from itertools import pairwise
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
VOICE_BANDS: Final = 4
NUM_BANDS: Final = NUM_SLOTS + 2 * VOICE_BANDS + 1
FRAME_SAMPLES: Final = 400
HUM: Final = 2.5
"""Of the last band at its loudest and, negative, softest: nats of log energy."""
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
        x, y = _voices(config, identity)[:, :, 0]
        labels = tuple((2 * np.arange(NUM_SLOTS) + (x != y)).tolist())
        made.append(Utterance(identity, split, labels, NUM_SLOTS * slot_samples, None, tuple(pairwise(ends))))
    return tuple(made)


def _voices(config: Onsets, identity: str) -> Float[NDArray[np.float64], "2 S N"]:
    """x and y of each frame of each slot, the onset first; whether fillers show theirs is another matter."""
    draw, shape = rng.numpy_generator(config.seed, "voices", identity), (NUM_SLOTS, 1 + config.num_fillers)
    x = draw.choice((-1.0, 1.0), size=shape)
    return np.stack([x, np.where(draw.random(shape) < 2 / 3, x, -x)])


def log_energies(config: Onsets, identity: str) -> Float[NDArray[np.float64], "T F"]:
    """What the front end shall see, in nats."""
    voices = _voices(config, identity)
    frames = np.zeros((*voices.shape[1:], NUM_BANDS))
    if config.surprising == "all":
        draw = rng.numpy_generator(config.seed, "hum", identity)
        frames[..., -1] = draw.uniform(-HUM, HUM, size=frames.shape[:2])
    else:
        voices[:, :, 1:] = 0
    frames[:, 0, :NUM_SLOTS] = np.eye(NUM_SLOTS)
    frames[..., NUM_SLOTS:-1] = np.repeat(np.moveaxis(voices, 0, -1), VOICE_BANDS, axis=-1)
    return frames.reshape(-1, NUM_BANDS)


def waveform(config: Onsets, identity: str) -> "Float[Tensor, ' N']":
    """Audio at 16 kHz whose log-mel frames are `log_energies`: in each frame one tone for each band.

    A tone has a whole number of periods in a frame. Under a Hamming window it leaks into the two Fourier bins beside its
    own alone, and the tones are further apart, so that the energies of bands are linear in those of tones.
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
