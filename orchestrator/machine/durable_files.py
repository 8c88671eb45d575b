"""Files that are on disk, contents and names, before a function returns, so that a loss of power takes none of them.

A file's name is on disk only when its folder was synced, too. For results, and what they cannot be reached without. A
cache that is looked at before it is used needs none of it, nor does what says who runs now.

Where others may write into the folder, a link may stand in a file's place. Nothing is written or removed through one.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

UNSYNCABLE: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EACCES)
"""Errors of a folder on a file system that syncs none, such as CIFS, or that this user may write to and not read."""


class LinkError(OSError):
    """A link stands where a file or folder of our own has to be."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is a link, and nothing is written or removed through one: remove it, or put there what it leads to"
        )


def check_is_no_link(path: Path) -> None:
    """Raises LinkError where a link has the name, wherever it leads."""
    if path.is_symlink():
        raise LinkError(path)


def open_itself(path: str, flags: int, mode: int = 0o666) -> int:
    """An `opener` for files that stay and are changed in place.

    Raises:
        LinkError: if the name is that of a link.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW, mode)
    except OSError:
        check_is_no_link(Path(path))
        raise


def new_file(path: Path) -> BinaryIO:
    """An empty file in place of the file or link that may have the name; what a link leads to stays as it is."""
    path.unlink(missing_ok=True)
    return path.open("xb")


def sync(path: Path) -> None:
    """Has the content of a file, or the names in a folder, on disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in UNSYNCABLE or not path.is_dir():
            raise


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, as far as they are not there."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def replace_durably(partial: Path, path: Path) -> None:
    """Gives a file, or a folder with all in it, the name `path`, in place of the file that may have it."""
    for written in (partial, *partial.rglob("*")):
        sync(written)
    partial.replace(path)
    sync(path.parent)


@contextlib.contextmanager
def written_durably(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which then is whole, or as it was before where writing failed; in a folder that is there."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with new_file(partial) as file:
            yield file
        replace_durably(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_durably(path: Path, content: bytes) -> None:
    """Writes a file, whole or as it was before, in a folder that is there."""
    with written_durably(path) as file:
        file.write(content)


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
        sync(Path(part))
        try:
            os.link(part, file)
        except FileExistsError:
            return
        except OSError:  # a disk without hard links, such as exFAT, where two that write at once may both do
            if not file.exists():
                Path(part).replace(file)
        sync(file.parent)
    finally:
        Path(part).unlink(missing_ok=True)
