"""An archive of replicates: one zip file with their lines of the study file, their curves and their folders.

`archive.json` says what it is of, and the SHA-256 of every other entry. Nothing in it is executed when it is read, and
no name leads out of the folder that it is restored to: whoever opens it has all names and checksums checked first.
"""

import contextlib
import hashlib
import json
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from orchestrator.journal.curve_file import CURVE_FILE
from orchestrator.journal.file_names import CHECKPOINT, is_artifact, is_plain
from orchestrator.journal.study_file import STUDY_FILE
from orchestrator.machine.durable_files import make_folder, written_durably
from trainables.errors import InputError, shown

ABOUT: Final = "archive.json"
SEARCHES: Final = "searches.json"
"""What Optuna's database has of the sweep, where the archive is of the whole sweep."""

REPLICATES: Final = "replicates/"
KEY: Final = re.compile(r"[0-9a-f]{16}")
FORMAT: Final = 1
BLOCK: Final = 1 << 20
MOST_ABOUT: Final = 1 << 28
"""Bytes of the table of checksums."""


def write_archive(file: Path, about: Mapping[str, Any], entries: Iterable[tuple[str, bytes | Path]]) -> None:
    """Writes an archive, whole or not at all; checkpoints are stored as they are.

    Args:
        about: goes into `archive.json`, beside the checksums.
        entries: names, each with its content or the file that holds it.
    """
    make_folder(file.parent)
    digests: dict[str, str] = {}
    with written_durably(file) as opened, ZipFile(opened, "w") as archive:
        for name, content in entries:
            info, digest = ZipInfo(name), hashlib.sha256()
            info.compress_type = ZIP_STORED if CHECKPOINT.fullmatch(name.rpartition("/")[2]) else ZIP_DEFLATED
            with contextlib.ExitStack() as stack:
                target = stack.enter_context(archive.open(info, "w", force_zip64=True))
                blocks = _blocks(stack.enter_context(content.open("rb"))) if isinstance(content, Path) else [content]
                for block in blocks:
                    digest.update(block)
                    target.write(block)
            digests[name] = digest.hexdigest()
        archive.writestr(ABOUT, json.dumps({"format": FORMAT, **about, "sha256": digests}), ZIP_DEFLATED)


@dataclass(frozen=True)
class Archive:
    """An open archive, all of which was checked.

    Attributes:
        about: what `write_archive` was given.
        files: by key of a replicate, the names of its files.
    """

    about: Mapping[str, Any]
    files: Mapping[str, tuple[str, ...]]
    _zip: ZipFile

    def read(self, name: str) -> bytes:
        """The content of an entry; nothing where there is none."""
        return self._zip.read(name) if name in self._zip.namelist() else b""

    def write_to(self, into: Path, key: str) -> None:
        """Writes the folder of a replicate, which must not be there."""
        into.mkdir()
        for name in self.files[key]:
            path = into / name
            path.parent.mkdir(exist_ok=True)
            with self._zip.open(f"{REPLICATES}{key}/{name}") as source, path.open("xb") as target:
                shutil.copyfileobj(source, target, BLOCK)


@contextlib.contextmanager
def opened_archive(file: Path) -> Iterator[Archive]:
    """The archive in a file, for as long as the block lasts.

    Raises:
        InputError: if it is none, a name leads elsewhere, or a content is not what was written.
    """
    try:
        archive = ZipFile(file)
    except FileNotFoundError:
        raise InputError(f"There is no file {shown(str(file))}.") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} must be an archive of `ponderay archive`, but: {error}.") from None
    with archive:
        try:
            found = _checked(archive)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{file} must be an archive of `ponderay archive`, but: {error}.") from None
        yield found


def _checked(archive: ZipFile) -> Archive:
    """Raises ValueError, or what damage makes a reader raise."""
    infos = {info.filename: info for info in archive.infolist()}
    if ABOUT not in infos or infos[ABOUT].file_size > MOST_ABOUT:
        raise ValueError(f"it holds no {ABOUT}")
    about = json.loads(archive.read(ABOUT))
    if about["format"] != FORMAT:
        raise ValueError(f"its format is {about['format']}, of a later version; this one reads {FORMAT}")
    digests, files = about.pop("sha256"), dict[str, list[str]]()
    if set(infos) != {ABOUT, *digests}:  # earlier versions wrote some names twice; the last of each is read
        raise ValueError("its entries are not those that it lists")
    for name, expected in digests.items():
        key, _, rest = name.removeprefix(REPLICATES).partition("/")
        is_of_replicate = name.startswith(REPLICATES) and KEY.fullmatch(key) and (is_plain(rest) or is_artifact(rest))
        is_link = stat.S_ISLNK(infos[name].external_attr >> 16)
        if is_link or not (is_of_replicate or name in (STUDY_FILE, CURVE_FILE, SEARCHES)):
            raise ValueError(f"the name {shown(name)} leads elsewhere")
        with archive.open(name) as content:
            digest = hashlib.sha256()
            for block in _blocks(content):
                digest.update(block)
        if digest.hexdigest() != expected:
            raise ValueError(f"{name} is damaged")
        if is_of_replicate:
            files.setdefault(key, []).append(rest)
    return Archive(about, {key: tuple(names) for key, names in files.items()}, archive)


def _blocks(file: "BinaryIO | Any") -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block
