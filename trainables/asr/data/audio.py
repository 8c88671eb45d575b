"""Audio files: FLAC, RIFF and NIST SPHERE, as libsndfile reads them."""

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import soundfile
from jaxtyping import Float

from trainables.asr.data.config import SAMPLE_RATE_HZ
from trainables.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

LOUDEST: Final = 2.0**15
"""The largest size of a sample: of floating-point files on the scale of 16-bit integers."""

_UNKNOWN_LENGTH: Final = 2**63 - 1
"""What libsndfile gives where a FLAC header does not say how many samples there are."""

_FLAC_MD5: Final = slice(26, 42)
"""Its place in a FLAC file, whose first block is STREAMINFO; zeros where it was not computed."""

_BLOCK_SAMPLES: Final = 2**20
"""Read at once, since a header may promise more than the memory holds."""


class _Stream(soundfile.SoundFile):  # type: ignore[misc]
    """A file that is read to its end, to which libsndfile cannot seek where its header does not say where it is."""

    def seekable(self) -> bool:
        """Never, so that nothing is sought behind a block."""
        return False


def checksum(path: Path) -> str:
    """That of the samples, which the header of a FLAC file has; of a file without one, that of its bytes."""
    with path.open("rb") as file:
        header = file.read(_FLAC_MD5.stop)
        if header[:5] in (b"fLaC\x00", b"fLaC\x80") and any(header[_FLAC_MD5]):
            return header[_FLAC_MD5].hex()
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def num_samples(path: Path) -> int:
    """What the header promises; where it promises nothing, how many there are.

    Raises:
        InputError: if it is no audio, not 16 kHz with one channel, empty, or shorter than its header says.
    """
    try:
        header = soundfile.info(str(path))
        number = len(_samples(path)) if header.frames == _UNKNOWN_LENGTH else int(header.frames)
    except soundfile.LibsndfileError as error:
        raise _unreadable(path, error) from None
    if header.samplerate != SAMPLE_RATE_HZ or header.channels != 1:
        raise InputError(
            f"{path} must be {SAMPLE_RATE_HZ} Hz with one channel, "
            f"but is {header.samplerate} Hz with {header.channels}; resample it first."
        )
    size, end = path.stat().st_size, _promised_end(path)
    if end > size:
        raise InputError(
            f"{path} is broken: its header promises sound up to byte {end:,}, but it has {size:,} bytes; "
            "fetch it again, or write its header anew."
        )
    if not number:
        raise InputError(f"{path} must hold sound, but has no sample; remove it.")
    return number


def read_waveform(path: Path) -> "Float[Tensor, ' N']":
    """The samples, in [-1, 1] but for floating-point files.

    Raises:
        InputError: if the file breaks off or is damaged, or a sample is no finite number or beyond `LOUDEST`.
    """
    import torch

    try:
        samples, expected = _samples(path), soundfile.info(str(path)).frames
    except soundfile.LibsndfileError as error:
        raise _unreadable(path, error) from None
    if len(samples) != expected and expected != _UNKNOWN_LENGTH:
        raise InputError(f"{path} is broken: its header promises {expected} samples, but it holds {len(samples)}.")
    if (wrong := np.flatnonzero(~(np.abs(samples) <= LOUDEST))).size:
        raise InputError(
            f"{path} must have samples between -{LOUDEST:.0f} and {LOUDEST:.0f}, but sample {wrong[0]:,} is "
            f"{samples[wrong[0]]}; write it anew, or remove it."
        )
    return torch.from_numpy(samples)


def _samples(path: Path) -> Any:
    """Every sample, as float32."""
    with _Stream(str(path)) as file:
        blocks = [np.empty(0, np.float32)]
        while len(block := file.read(_BLOCK_SAMPLES, dtype="float32")):
            blocks.append(block)
    return np.concatenate(blocks)


def _promised_end(path: Path) -> int:
    """The byte at which the samples end by the header of RIFF or SPHERE; 0 for other files.

    libsndfile reads what there is, and says nothing of what is missing.
    """
    with path.open("rb") as file:
        start = file.read(12)
        if start.startswith(b"NIST_1A"):
            header = start + file.read(1012)
            fields = dict(re.findall(rb"(?m)^(\w+) -i (\d{1,18})", header))
            wanted = (fields.get(name, b"0") for name in (b"sample_count", b"sample_n_bytes", b"channel_count"))
            count, width, channels = map(int, wanted)
            size = re.match(rb"NIST_1A\r?\n *(\d{1,18})", header)
            return int(size[1]) + count * width * channels if size else 0
        if start.startswith(b"RIFF") and start.endswith(b"WAVE"):
            while len(chunk := file.read(8)) == 8:
                size_bytes = int.from_bytes(chunk[4:], "little")
                if chunk.startswith(b"data"):
                    return file.tell() + size_bytes
                file.seek(size_bytes + size_bytes % 2, 1)
    return 0


def _unreadable(path: Path, error: soundfile.LibsndfileError) -> InputError:
    reason = error.error_string.strip() or "it is damaged"
    return InputError(f"{path} cannot be read as audio: {reason}")
