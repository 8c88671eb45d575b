"""Where a corpus lies: a folder at, or at most two folders below, the data root."""

import os
from collections.abc import Callable
from pathlib import Path

from trainables.errors import InputError


def data_root(root: Path | None) -> Path:
    """`root`, or what PONDERAY_DATA says.

    Raises:
        InputError: if neither is given, or the folder is not there.
    """
    base = root or (Path(os.environ["PONDERAY_DATA"]) if os.environ.get("PONDERAY_DATA") else None)
    if base is None:
        raise InputError("No data folder is set; give `--set data.root=PATH` or set PONDERAY_DATA.")
    if not base.is_dir():
        raise InputError(f"The data folder {base} does not exist; give `--set data.root=PATH` or set PONDERAY_DATA.")
    return base


def find_folder(base: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """The first folder that `is_wanted`: `base` itself, one in it, or one in those."""
    for pattern in ("", "*", "*/*"):
        for folder in sorted(base.glob(pattern)) if pattern else [base]:
            if folder.is_dir() and is_wanted(folder):
                return folder
    return None
