"""Whether a folder is the driver's own on another machine, too, and not one of the same name on a disk of its own."""

import secrets
from pathlib import Path
from typing import Final

from orchestrator.machine.atomic_create import write_once

MARK: Final = ".mark"
FOR_ALL: Final = 0o644
"""Others may run sweeps in the same folder, and workers as another user."""


def marked(place: Path) -> str:
    """The mark of a folder, which is made where it is not there; drivers that make it at once agree on one."""
    place.mkdir(parents=True, exist_ok=True)
    if not mark_of(place):
        write_once(place / MARK, secrets.token_hex(8), FOR_ALL)
    return mark_of(place)


def mark_of(place: Path) -> str:
    """The same; empty where there is none, or no folder."""
    try:
        return (place / MARK).read_text(encoding="utf-8")
    except OSError:
        return ""
