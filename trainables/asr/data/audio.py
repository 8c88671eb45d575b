"""Audio files: FLAC, RIFF and NIST SPHERE, as libsndfile reads them."""

from pathlib import Path
from typing import TYPE_CHECKING

import soundfile
from jaxtyping import Float

from trainables.asr.data.config import SAMPLE_RATE_HZ
from trainables.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def num_samples(path: Path) -> int:
    """What the header promises.

    Raises:
        InputError: if it is no audio, or not 16 kHz with one channel.
    """
    try:
        header = soundfile.info(str(path))
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path} cannot be read as audio: {error.error_string}") from None
    if header.samplerate != SAMPLE_RATE_HZ or header.channels != 1:
        raise InputError(
            f"{path} must be {SAMPLE_RATE_HZ} Hz with one channel, "
            f"but is {header.samplerate} Hz with {header.channels}; resample it first."
        )
    return int(header.frames)


def read_waveform(path: Path) -> "Float[Tensor, ' N']":
    """The samples in [-1, 1].

    Raises:
        InputError: if the file breaks off or is damaged.
    """
    import torch

    try:
        samples, _ = soundfile.read(str(path), dtype="float32")
        expected = soundfile.info(str(path)).frames
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path} cannot be read as audio: {error.error_string}") from None
    if len(samples) != expected:
        raise InputError(f"{path} is broken: its header promises {expected} samples, but it holds {len(samples)}.")
    return torch.from_numpy(samples)
