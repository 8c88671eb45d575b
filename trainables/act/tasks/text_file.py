"""The bytes of the text task, in three parts."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainables.act.config import Text
from trainables.errors import InputError
from trainables.texts import documentation, unreadable

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Parts:
    """The text in three: training first, then validation, then test."""

    train: Bytes
    validation: Bytes
    test: Bytes


def read(path: Path | None) -> bytes:
    """The content of a file; of no file: Python's own language reference in alphabetical order of its topics.

    Raises:
        InputError: if there is no such file, or this Python comes without its documentation.
    """
    if path is None:
        return documentation("data.path").encode()
    try:
        status = path.stat()
        return _read(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise unreadable(path, "set `data.path`", error) from None


@lru_cache(maxsize=2)
def _read(path: Path, modified_ns: int, size: int) -> bytes:
    """The content, read again where the file has changed."""
    return path.read_bytes()


def fingerprint(config: Text) -> str:
    """The hash of the bytes.

    Raises:
        InputError: if the text cannot be read or is too short.
    """
    split(config)
    return hashlib.sha256(read(config.path)).hexdigest()[:16]


def split(config: Text) -> Parts:
    """The parts of the text.

    Raises:
        InputError: if a part is too short for its use.
    """
    content = np.frombuffer(read(config.path), np.uint8)
    num_test = int(len(content) * config.test_share)
    num_train = len(content) - num_test - int(len(content) * config.validation_share)
    parts = Parts(content[:num_train], content[num_train : len(content) - num_test], content[len(content) - num_test :])
    if len(parts.train) <= config.num_steps or min(len(parts.validation), len(parts.test)) < 2:
        raise InputError(
            f"The text must be longer: of its {len(content)} bytes {len(parts.train)} are for training, which must be "
            f"more than `data.num_steps` = {config.num_steps}, {len(parts.validation)} for validation and "
            f"{len(parts.test)} for test, which must be at least 2."
        )
    return parts
