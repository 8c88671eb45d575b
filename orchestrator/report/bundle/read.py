"""Reads a bundle that anybody may have made: into memory, named members only, none larger than a report writes.

Nothing is unpacked into a folder, and nothing of it is executed.
"""

import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orchestrator.report.bundle.records import parse, validated
from orchestrator.report.bundle.write import (
    FORMAT,
    LIMITS,
    MANIFEST,
    MOST_MEMBERS,
    NAME,
    SEARCH,
    TOTAL_LIMIT,
    Manifest,
    size_limit,
)
from trainables.errors import InputError

COMPRESSION: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED: Final = 0x1
BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError)
"""What `zipfile` raises at an archive that is cut short, damaged or made up."""


def read_bundle(file: Path) -> tuple[Manifest, Mapping[str, bytes]]:
    """The manifest of a bundle and the content of its other members, which are those that the manifest lists.

    Whether they are what it says of them is not checked.

    Raises:
        InputError: if it is no bundle, or none that this version reads.
    """
    if not file.is_file():
        raise InputError(f"{file} must be a bundle that `ponderay report SWEEP --bundle FILE` wrote, but is no file.")
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(file, entries)
            members = {entry.filename: _read(archive, entry) for entry in entries}
    except InputError:
        raise
    except BROKEN as error:
        raise _refused(file, f"cannot be read as a zip archive: {error}") from None
    parsed = parse(members.pop(MANIFEST), MANIFEST)
    written = parsed.get("format") if isinstance(parsed, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise InputError(
            f"{file} must be a bundle of format {FORMAT} at most, but has format {written}: a newer Ponderay wrote it; "
            "install that version."
        )
    manifest = validated(Manifest, parsed, MANIFEST)
    if not manifest.format >= 1:
        raise _refused(file, f"has format {manifest.format}, which no version wrote")
    if missing := sorted(set(manifest.members) - set(members)):
        raise _refused(file, f"has no {missing[0]!r}, which its manifest lists")
    if extra := sorted(set(members) - set(manifest.members)):
        raise _refused(file, f"has a member {extra[0]} that its manifest does not list")
    return manifest, members


def _check_entries(file: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Raises InputError at the first member that no bundle has; nothing is decompressed before."""
    if len(entries) > MOST_MEMBERS:
        raise _refused(file, f"has {len(entries):,} members, more than {MOST_MEMBERS:,}")
    names = Counter(entry.filename for entry in entries)
    for entry in entries:
        name = entry.orig_filename
        if name not in LIMITS and name != SEARCH and not NAME.fullmatch(name):
            raise _refused(file, f"has a member {name[:120]!r}, which is no name in a bundle")
        if names[entry.filename] > 1:
            raise _refused(file, f"has {names[entry.filename]} members named {name}")
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise _refused(file, f"has a member {name} that is a link or no plain file")
        if entry.flag_bits & ENCRYPTED or entry.compress_type not in COMPRESSION:
            raise _refused(file, f"has a member {name} that is encrypted or compressed in another way than deflate")
        if entry.file_size > size_limit(name):
            raise _refused(file, f"has {entry.file_size:,} bytes of {name}, more than {size_limit(name):,}")
    if (total := sum(entry.file_size for entry in entries)) > TOTAL_LIMIT:
        raise _refused(file, f"has {total:,} bytes, more than {TOTAL_LIMIT:,}")
    if missing := [name for name in LIMITS if name not in names]:
        raise _refused(file, f"has no {missing[0]}")


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """All of a member, but no more than it is said to have."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise zipfile.BadZipFile(f"{entry.filename} has another size than the archive says")
    return content


def _refused(file: Path, reason: str) -> InputError:
    return InputError(f"{file} is no bundle that `ponderay report SWEEP --bundle FILE` wrote: it {reason}.")
