"""Frames on disk, named by what they are made of: the audio's bytes and the front end's settings.

An entry is `KEY.npy`, all frames one after the other, and `KEY.json`, how many each utterance has and the checksum.
Frames are mapped into memory, so that a corpus may be larger than the memory, and processes share it. One process at a
time makes an entry, while others that want it wait.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torchaudio
from jaxtyping import Float
from numpy.lib.format import open_memmap
from torch import Tensor

from trainables.asr.data.config import Features
from trainables.asr.data.corpus import Utterance
from trainables.asr.data.features import FIXED_SETTINGS, num_frames
from trainables.asr.data.features import __file__ as front_end
from trainables.config import content_hash
from trainables.errors import DataWarning

Make = Callable[[Utterance], Float[Tensor, "T F"]]


def folder() -> Path | None:
    """What PONDERAY_CACHE says; None: nothing is kept."""
    place = os.environ.get("PONDERAY_CACHE")
    return Path(place) / "features" if place else None


def frames(utterances: Sequence[Utterance], features: Features, make: Make) -> list[Tensor]:
    """The frames of each utterance, shape (T, F): from the cache where they are whole, else from `make`, and kept."""
    place = folder()
    if place is None or not utterances or any(utterance.audio is None for utterance in utterances):
        return [make(utterance) for utterance in utterances]
    lengths = [num_frames(utterance.num_samples, features) for utterance in utterances]
    key = _key(utterances, features)
    if not _is_whole(place, key, lengths):
        with _one_at_a_time(place, key):
            if not _is_whole(place, key, lengths):
                _write(place, key, lengths, features.num_mel_bins, (make(utterance) for utterance in utterances))
    mapped = torch.from_numpy(np.load(place / f"{key}.npy", mmap_mode="c", allow_pickle=False))
    return list(mapped.split(lengths))


@contextlib.contextmanager
def _one_at_a_time(place: Path, key: str) -> Iterator[None]:
    """Holds the entry's lock; without locks on the file system several may make the entry, which is the same."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{key}.lock").open("w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _key(utterances: Sequence[Utterance], features: Features) -> str:
    content = [[u.identity, u.num_samples, _digest(u.audio)] for u in utterances]
    return content_hash(features, FIXED_SETTINGS, torchaudio.__version__, _digest(Path(front_end)), content)


def _digest(path: Path | None) -> str:
    assert path is not None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(place: Path, key: str, lengths: list[int]) -> bool:
    frames_file, index_file = place / f"{key}.npy", place / f"{key}.json"
    if not index_file.exists():
        return False
    try:
        index = json.loads(index_file.read_text())
        whole = bool(index == {"lengths": lengths, "sha256": _digest(frames_file)})
    except (OSError, ValueError):
        whole = False
    if not whole:
        warnings.warn(f"The cached frames {frames_file} are damaged and are computed again.", DataWarning, stacklevel=5)
    return whole


def _write(place: Path, key: str, lengths: list[int], num_bins: int, made: Iterator[Tensor]) -> None:
    """Both files appear whole or not at all; the index comes last."""
    for left_behind in place.glob(f"{key}.*.partial"):
        left_behind.unlink(missing_ok=True)
    partial = place / f"{key}.{uuid.uuid4().hex[:8]}.partial"
    rows = open_memmap(partial, mode="w+", dtype=np.float32, shape=(sum(lengths), num_bins))
    start = 0
    for length, one in zip(lengths, made, strict=True):
        rows[start : start + length] = one.numpy()
        start += length
    rows.flush()
    index = json.dumps({"lengths": lengths, "sha256": _digest(partial)})
    partial.rename(place / f"{key}.npy")
    partial.write_text(index)
    partial.rename(place / f"{key}.json")
