"""The folder with the user's data."""

import os
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
