"""Where Ray keeps the files of a cluster that is made on this machine, its sockets among them."""

import os
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 107
"""Of a socket's path, on Linux."""

SOCKET: Final = "/ray/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store.10"
"""The longest path of a socket below a temporary folder."""

PLACES: Final = ("/tmp", "/var/tmp", "/dev/shm")
"""What has a short name on every machine."""


def session_folder() -> str | None:
    """A folder for a cluster's files, where Ray could not use that of RAY_TMPDIR or TMPDIR; None where it can.

    The temporary folders of batch systems are easily too long for sockets. Where no place will do, Ray says why.
    """
    named = os.environ.get("RAY_TMPDIR", os.environ.get("TMPDIR", PLACES[0]))
    if _is_short(named) and (_is_writable(named) or ("RAY_TMPDIR" in os.environ and not Path(named).exists())):
        return None
    return next((f"{place}/ray" for place in PLACES if _is_writable(place)), None)


def _is_short(place: str) -> bool:
    return Path(place).is_absolute() and len(os.fsencode(place + SOCKET)) <= MOST_BYTES


def _is_writable(place: str) -> bool:
    return Path(place).is_dir() and os.access(place, os.W_OK | os.X_OK)
