"""Rows on disk, one for each frame, named by what they are made of; such as frames, by audio and front end.

An entry is `KEY.npy`, all rows one after the other, and `KEY.json`, how many each utterance has and the checksum.
Rows are mapped into memory, so that a corpus may be larger than the memory, and processes share it. One process at a
time makes an entry, while others that want it wait.
"""

import contextlib
import fcntl
import hashlib
import itertools
import json
import operator
import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import soundfile
import torch
import torchaudio
from jaxtyping import Float
from numpy.lib.format import open_memmap
from torch import Tensor

from trainables.asr.data.audio import __file__ as reader
from trainables.asr.data.config import Features
from trainables.asr.data.corpus import Utterance
from trainables.asr.data.features import FIXED_SETTINGS, num_frames
from trainables.asr.data.features import __file__ as front_end
from trainables.config import content_hash
from trainables.errors import DataWarning

Make = Callable[[Utterance], Float[Tensor, "T F"]]
Made = Callable[[], Iterable[tuple[int, Float[Tensor, "T W"]]]]
"""Makes the rows of each utterance, in any order, with the utterance's number."""

ROOM: Final = 2
"""An entry is kept where the disk has so many times its bytes free."""


def folder(kind: str) -> Path | None:
    """The folder of rows of this kind in PONDERAY_CACHE; None: nothing is kept."""
    place = os.environ.get("PONDERAY_CACHE")
    return Path(place) / kind if place else None


def frames(utterances: Sequence[Utterance], features: Features, make: Make) -> list[Tensor]:
    """The frames of each utterance, shape (T, F): from the cache where they are whole, else from `make`, and kept."""
    place = folder("features")
    if place is None or not utterances or any(utterance.audio is None for utterance in utterances):
        return [make(utterance) for utterance in utterances]
    lengths = [num_frames(utterance.num_samples, features) for utterance in utterances]
    content = [[u.identity, u.num_samples, digest(u.audio)] for u in utterances]
    versions = torchaudio.__version__, soundfile.__libsndfile_version__, digest(Path(front_end)), digest(Path(reader))
    key = content_hash(features, FIXED_SETTINGS, versions, content)
    return rows(place, key, lengths, features.num_mel_bins, lambda: enumerate(map(make, utterances)))


def rows(place: Path | None, key: str, lengths: list[int], width: int, made: Made) -> list[Tensor]:
    """The rows of each utterance, shape (T, W): from `place` where they are whole, else as `made`, and kept there.

    Without a place, or without room there, they are made for this process alone.
    """
    if place is None:
        return _in_order(made())
    if not _is_whole(place, key, lengths):
        if not has_room(place, key, lengths, width):
            return _in_order(made())
        with _one_at_a_time(place, key):
            if not _is_whole(place, key, lengths):
                _write(place, key, lengths, width, made())
    mapped = torch.from_numpy(np.load(place / f"{key}.npy", mmap_mode="c", allow_pickle=False))
    return list(mapped.split(lengths))


def _in_order(made: Iterable[tuple[int, Tensor]]) -> list[Tensor]:
    return [row for _, row in sorted(made, key=operator.itemgetter(0))]


def has_room(place: Path, key: str, lengths: list[int], width: int) -> bool:
    """Whether an entry is there or has room; if not, a warning says so."""
    place.mkdir(parents=True, exist_ok=True)
    free, wanted = shutil.disk_usage(place).free, 4 * width * sum(lengths)
    if free >= ROOM * wanted or (place / f"{key}.json").exists():
        return True
    warnings.warn(
        f"{place} has {free / 1e9:.1f} GB free, and {ROOM * wanted / 1e9:.1f} GB are wanted to keep rows of "
        f"{wanted / 1e9:.1f} GB: they are not kept; free the disk, or set PONDERAY_CACHE to a larger one.",
        DataWarning,
        stacklevel=4,
    )
    return False


@contextlib.contextmanager
def _one_at_a_time(place: Path, key: str) -> Iterator[None]:
    """Holds the entry's lock; without locks on the file system several may make the entry, which is the same."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{key}.lock").open("w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(path: Path | None) -> str:
    """The hash of a file's bytes."""
    assert path is not None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(place: Path, key: str, lengths: list[int]) -> bool:
    frames_file, index_file = place / f"{key}.npy", place / f"{key}.json"
    if not index_file.exists():
        return False
    try:
        index = json.loads(index_file.read_text())
        whole = bool(index == {"lengths": lengths, "sha256": digest(frames_file)})
    except (OSError, ValueError):
        whole = False
    if not whole:
        warnings.warn(f"The cached frames {frames_file} are damaged and are computed again.", DataWarning, stacklevel=5)
    return whole


def _write(place: Path, key: str, lengths: list[int], width: int, made: Iterable[tuple[int, Tensor]]) -> None:
    """Both files appear whole or not at all; the index comes last."""
    for left_behind in place.glob(f"{key}.*.partial"):
        left_behind.unlink(missing_ok=True)
    partial = place / f"{key}.{uuid.uuid4().hex[:8]}.partial"
    mapped = open_memmap(partial, mode="w+", dtype=np.float32, shape=(sum(lengths), width))
    if hasattr(os, "posix_fallocate"):  # a disk that fills up later would end the process by a signal
        with partial.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, partial.stat().st_size)
    starts = [0, *itertools.accumulate(lengths)]
    for number, row in made:
        mapped[starts[number] : starts[number + 1]] = row.numpy()
    mapped.flush()
    index = json.dumps({"lengths": lengths, "sha256": digest(partial)})
    partial.rename(place / f"{key}.npy")
    partial.write_text(index)
    partial.rename(place / f"{key}.json")
