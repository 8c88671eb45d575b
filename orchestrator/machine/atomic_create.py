"""A file that several processes may want to make at once, and that is made by one of them."""

import os
import tempfile
from pathlib import Path


def create_atomically(file: Path, text: str, mode: int) -> None:
    """Writes a file, whole or not there, and never over one that another process makes meanwhile.

    Args:
        mode: of the file, who may read it.
    """
    handle, part = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        Path(part).chmod(mode)
        _name(part, file)
    finally:
        Path(part).unlink(missing_ok=True)


def _name(part: str, file: Path) -> None:
    try:
        os.link(part, file)
    except FileExistsError:
        return
    except OSError:  # a disk without hard links, such as exFAT, where two that write at once may both do
        if not file.exists():
            Path(part).replace(file)
