"""Folders and files that a user names: what they must be before anything is read from them or made in them.

A new folder is made with those above it, but none directly below `/`: only root could, and a misspelt path or a disk
that is not mounted would become a folder there.
"""

import contextlib
import os
import uuid
from pathlib import Path
from typing import Final

from trainables.errors import InputError, shown

OF_THE_SYSTEM: Final = (Path("/proc"), Path("/sys"))


def folder_at(given: str | Path, setting: str) -> Path:
    """The absolute path of the folder that the user names; nothing is made.

    Args:
        setting: what it was named by, for messages, such as "PONDERAY_RUNS".

    Raises:
        InputError: if no folder is there and none can be.
    """
    if str(given).startswith("~") and os.path.expanduser(given) == str(given):  # noqa: PTH111
        raise InputError(f"{setting} must name a folder, but {given} is below the home of nobody known.")
    place = absolute(given)
    if fault := folder_fault(place):
        raise InputError(
            f"{setting} must name a folder that is there, or a new one below a folder of / that is there, but {fault}."
        )
    return place


def file_at(given: Path, setting: str) -> Path:
    """The path of the file that the user names, in a folder as of `folder_at`; nothing is made.

    Raises:
        InputError: if no file is there and none can be.
    """
    folder_at(given.parent, setting)
    place = expanded(given)
    with contextlib.suppress(OSError):  # no folder has a name that is too long
        if place.is_dir():
            raise InputError(f"{setting} must be a file, but {given} is a folder; name a file in it.")
    return place


def expanded(given: str | Path) -> Path:
    """The path that a user means, whose home is `~`."""
    return Path(os.path.expanduser(given))  # noqa: PTH111  # never raises


def absolute(given: str | Path) -> Path:
    """The same from the root on."""
    return expanded(given).absolute()


def folder_fault(place: Path) -> str:
    """Why `place` cannot be a folder, as a clause that begins with it; empty where it can."""
    fault = _fault(place)
    return f"{shown(str(place))} {fault}" if fault else ""


def write_fault(folder: Path) -> str:
    """Why no file can be made in `folder` or, where it is not there, above it; empty where one can."""
    place = existing(folder)
    reason = refused_write(place)
    return f"{reason} ({place})" if reason else ""


def refused_write(folder: Path) -> str:
    """What the system says against a file in `folder`, which is there; empty where one can be made."""
    probe = folder / f".ponderay-{uuid.uuid4().hex}"
    try:
        probe.write_bytes(b"ponderay")
    except OSError as error:
        return error.strerror or str(error)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)  # a full disk takes the file, and not its content
    return ""


def existing(path: Path) -> Path:
    """`path`, or the nearest folder above it that is there."""
    return next(place for place in (path, *path.parents) if _is_there(place))


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # its name is too long, or nobody may look
        return False


def _fault(place: Path) -> str:
    """The end of a sentence that says why `place` cannot be a folder; empty where it can."""
    if not str(place).isprintable():
        return "has characters that cannot be printed"
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    if place.is_symlink() and not _is_there(place):
        return "is a link to what is not there"
    above = existing(place)
    place, above = place.resolve(), above.resolve()
    if not above.is_dir():
        return "is a file" if above == place else f"lies in {above}, which is a file"
    if any(place.is_relative_to(folder) for folder in OF_THE_SYSTEM):
        return "belongs to the system"
    if above == place:
        return "" if os.access(place, os.R_OK | os.X_OK) else "cannot be read by this user"
    if above == Path(above.anchor):
        return f"{Path(*place.parts[:2])} is not there, and folders are not made directly below /"
    return ""
