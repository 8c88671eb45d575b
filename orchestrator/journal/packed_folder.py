"""A checkpoint that is a folder, as one file: a zip archive without compression, equal for equal contents."""

import contextlib
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZipFile, ZipInfo

from orchestrator.machine.durable_files import new_file, replace_durably

UNPACKED: Final = "unpacked."
"""How the folders of checkpoints in use begin, beside a replicate's journal."""


def pack(folder: Path, into: Path) -> None:
    """Writes all files and folders below `folder` into the archive `into`.

    Raises:
        ValueError: if there is something else in it, such as a link to another folder.
    """
    with new_file(into) as file, ZipFile(file, "w") as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_dir() and not path.is_symlink():
                archive.writestr(ZipInfo(f"{name}/"), b"")
            elif path.is_file():
                # ZipInfo says 1980, and how long a file is must not decide how it is written
                with path.open("rb") as source, archive.open(ZipInfo(name), "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target)
            else:
                raise ValueError(f"A checkpoint may be a folder of files and folders, but {name} in it is neither.")


@contextlib.contextmanager
def opened(checkpoint: Path, beside: Path) -> Iterator[Path]:
    """The checkpoint as it was reported: a file; or a folder, which is there for as long as the block lasts.

    Args:
        beside: the folder in which it is unpacked, for this process alone.
    """
    if checkpoint.suffix != ".zip":
        yield checkpoint
        return
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=UNPACKED, dir=beside) as folder:
        _unpack(checkpoint, Path(folder))
        yield Path(folder)


def kept_open(checkpoint: Path) -> Path:
    """The checkpoint as it was reported; a folder is unpacked beside its archive and stays there."""
    folder = checkpoint.with_suffix("")
    if checkpoint.suffix != ".zip":
        return checkpoint
    if folder.is_symlink():
        folder.unlink()  # of whoever may write here; a checkpoint is what its archive holds
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(prefix=UNPACKED, dir=checkpoint.parent) as made:
            _unpack(checkpoint, Path(made) / "whole")
            replace_durably(Path(made) / "whole", folder)
    return folder


def remove_unpacked(folder: Path) -> None:
    """Removes what processes that were killed have left unpacked in a replicate's folder."""
    for path in folder.glob(f"{UNPACKED}*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _unpack(archive_file: Path, into: Path) -> None:
    into.mkdir(exist_ok=True)
    with ZipFile(archive_file) as archive:
        for info in archive.infolist():
            name, is_link = PurePosixPath(info.filename), stat.S_ISLNK(info.external_attr >> 16)
            if name.is_absolute() or ".." in name.parts or "\\" in info.filename or is_link:
                raise ValueError(f"{archive_file.name} holds {info.filename!r}, which leads out of its folder.")
            path = into / info.filename
            if info.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, path.open("xb") as target:
                shutil.copyfileobj(source, target)
