"""Whether a folder is the driver's own on another machine, too, and not one of the same name on a disk of its own."""

import secrets
from pathlib import Path
from typing import Final

from orchestrator.machine.durable_files import create_atomically, make_folder
from trainables.errors import InputError

MARK: Final = ".mark"
FOR_ALL: Final = 0o644
"""Others may run sweeps in the same folder, and workers as another user."""


def ensure_mark(place: Path) -> str:
    """The mark of a folder, which is made where it is not there; drivers that make it at once agree on one."""
    make_folder(place)
    if not read_mark(place):
        create_atomically(place / MARK, secrets.token_hex(8), FOR_ALL)
    mark = read_mark(place)
    if not mark:
        raise InputError(f"{place / MARK} tells whether all machines see this folder, but cannot be read; remove it.")
    return mark


def read_mark(place: Path) -> str:
    """The mark of a folder; empty where there is none, or no folder."""
    try:
        return (place / MARK).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
