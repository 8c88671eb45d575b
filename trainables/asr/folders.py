"""Where a corpus lies: a folder at, or at most two folders below, the data root."""

from collections.abc import Callable
from pathlib import Path


def find_folder(base: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """The first folder that `is_wanted`: `base` itself, one in it, or one in those."""
    for pattern in ("", "*", "*/*"):
        for folder in sorted(base.glob(pattern)) if pattern else [base]:
            if folder.is_dir() and is_wanted(folder):
                return folder
    return None
