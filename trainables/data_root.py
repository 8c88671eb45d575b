"""The folder with the user's data, and what lies in it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from trainables.errors import InputError


def data_root(root: Path | None, setting: str) -> Path:
    """`root`, or what PONDERAY_DATA says.

    Args:
        setting: the config's field that gives `root`, for messages.

    Raises:
        InputError: if neither is given, or the folder is not there.
    """
    base = root or (Path(os.environ["PONDERAY_DATA"]) if os.environ.get("PONDERAY_DATA") else None)
    remedy = f"give `--set {setting}=PATH` or set PONDERAY_DATA"
    if base is None:
        raise InputError(f"No data folder is set; {remedy}.")
    if not base.is_dir():
        raise InputError(f"The data folder {base} does not exist; {remedy}.")
    return base


def find_folder(base: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """The first folder that `is_wanted`: `base` itself, one in it, or one in those; closed ones are passed over."""
    for pattern in ("", "*", "*/*"):
        for folder in sorted(base.glob(pattern)) if pattern else [base]:
            with contextlib.suppress(PermissionError):
                if folder.is_dir() and is_wanted(folder):
                    return folder
    return None
