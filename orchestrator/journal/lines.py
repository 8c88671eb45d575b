"""A journal: its lines as far as they are whole, and the file that they are appended to.

It is only ever appended to, so all that stands before a damaged line is what was written there; what follows one is not
trusted. A last line without its end is none that a crash has not torn off, and no damage.

A line is a JSON object. Its first field, `crc32`, is the CRC-32 in hexadecimal digits of the line's bytes without that
field, `{"kind": ...}`; so no flipped bit changes a record. Lines of earlier versions begin with `kind` and have none.
"""

import errno
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from orchestrator.machine.durable_files import check_is_no_link, new_file, open_itself, replace_durably, sync
from trainables.errors import InputError

Record = dict[str, Any]
"""What a line says: its kind, its time, and what `NEEDED` and `OPTIONAL` name."""

DAMAGED: Final = "journal.damaged-{}.jsonl"
CHECKSUM: Final = re.compile(rb'\{"crc32": "([0-9a-f]{8})", ')
WITHOUT_CHECKSUM: Final = b'{"kind": '
"""How every line of earlier versions begins: no bit alone makes a line of today one of them."""

NOT_A_FILE: Final = (errno.EISDIR, errno.ELOOP)
"""Why what stands in a journal's place can be none."""

NOT_OURS: Final = (errno.EACCES, errno.EPERM)
"""Why a journal cannot be read that may be whole."""

ACCESS: Final = "Let this user read and write it (`ls -l` shows whose it is), or name a folder by PONDERAY_RUNS."

STATES: Final = ("complete", "failed")
NEEDED: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    "started": {"attempt": str, "code_version": str, "host": str, "device": str},
    "metrics": {"step": int, "metrics": dict},
    "evaluation": {"step": int, "metrics": dict},
    "system": {"step": int, "values": dict},
    "state": {"state": str},
    "trained": {},
    "set_aside": {"said": str},
    "peer_lost": {"error": str},
}
"""What is read of each kind of record, beside its time; of kinds that later versions may have, the time alone."""

OPTIONAL: Final[dict[str, type | tuple[type, ...]]] = {
    "id": str,
    "error": str,
    "evaluation": str,
    "traceback": str,
    "attempt": str,
    "code_version": str,
    "products": dict,
    "selected_by": dict,
    "config": dict,
    "evaluations": list,
    "sweep": str,
    "condition": str,
    "seed": int,
    "settings": dict,
    "fingerprint": str,
    "resources": dict,
    "size_bytes": int,
    "peak_host_bytes": int,
    "peak_gpu_bytes": int,
}


@dataclass(frozen=True)
class Lines:
    """The lines of a journal.

    Attributes:
        records: one for each whole line before the first damaged one.
        num_bytes: what these lines take.
        fault: what is wrong behind them; empty where nothing is.
        error: what the system says of a file that cannot be read.
    """

    records: list[Record]
    num_bytes: int
    fault: str = ""
    error: OSError | None = None

    @property
    def number(self) -> int:
        """The number of the damaged line, where the journal was read from its beginning."""
        return len(self.records) + 1

    @property
    def is_refused(self) -> bool:
        """Whether this user may not read the file."""
        return self.error is not None and self.error.errno in NOT_OURS

    @property
    def is_unanswered(self) -> bool:
        """Whether the file may be read when the system is asked again."""
        return self.error is not None and self.error.errno not in (*NOT_OURS, *NOT_A_FILE)

    def damage(self, place: object) -> str:
        """The fault as the beginning of a sentence about the journal at `place`."""
        if self.error:
            by = " by this user" if self.is_refused else ""
            return f"The journal {place} cannot be read{by} ({self.fault})"
        return f"The journal {place} is damaged: its line {self.number} {self.fault}"


def line_of(record: Mapping[str, Any]) -> bytes:
    """The line that says `record`, with its checksum and its end."""
    body = json.dumps(record).encode()
    return b'{"crc32": "%08x", ' % zlib.crc32(body) + body[1:] + b"\n"


def parse(content: bytes) -> Lines:
    """The records that stand in `content`, which begins with a line."""
    records: list[Record] = []
    end = 0
    while (stop := content.find(b"\n", end)) >= 0:
        fault, record = _record(content[end:stop])
        if fault:
            return Lines(records, end, fault)
        records.append(record)
        end = stop + 1
    rest = content[end:]
    if rest[:1] not in (b"", b"{"):
        return Lines(records, end, "is no JSON")
    is_torn = not (CHECKSUM.match(rest) and not _record(rest[:-1])[0])
    return Lines(records, end, "" if is_torn else "has no line break at its end")


def read(journal: Path) -> Lines:
    """The records of a file; none where there is no file."""
    try:
        return parse(journal.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Lines([], 0)
    except OSError as error:
        return unreadable(error)


def unreadable(error: OSError) -> Lines:
    """The lines of a file that cannot be read: none."""
    return Lines([], 0, error.strerror or str(error), error)


def mend(journal: Path) -> str:
    """Sets a damaged journal aside, and leaves its whole lines before the damage in its place; says so.

    So it does with a link, through which nothing is written. Empty where it is whole. Only for whoever writes the
    journal.

    Raises:
        InputError: if this user may not read it.
        OSError: if it cannot be read for a reason that may pass.
    """
    lines = read(journal)
    if not lines.fault and not journal.is_symlink():
        return ""
    if lines.is_refused:
        raise InputError(f"{lines.damage(journal)}. {ACCESS}")
    if lines.error and lines.is_unanswered:
        raise lines.error
    kept = b"" if lines.error else journal.read_bytes()[: lines.num_bytes]
    aside = journal.with_name(free_name(lambda name: os.path.lexists(journal.with_name(name))))
    partial = journal.with_name("journal.partial")
    with new_file(partial) as file:
        file.write(kept)
    try:  # at no moment there is neither: a crash leaves the journal as it was, or both
        os.link(journal, aside, follow_symlinks=False)
    except OSError:  # a folder, or a disk without hard links
        journal.rename(aside)
    replace_durably(partial, journal)
    return told(lines, journal, aside.name)


def told(lines: Lines, place: object, aside: str) -> str:
    """A sentence: that a damaged journal, or a link in its place, was set aside."""
    if not lines.fault:
        return f"The journal {place} is a link. It is set aside as {aside}; its {len(lines.records)} lines are kept"
    kept = f"; the {len(lines.records)} lines before it are kept" if lines.records else ""
    return f"{lines.damage(place)}. It is set aside as {aside}{kept}"


def free_name(is_taken: Callable[[str], bool]) -> str:
    """The first name of a damaged journal that no earlier one has."""
    names: Iterator[str] = (DAMAGED.format(number) for number in count(1))
    return next(name for name in names if not is_taken(name))


def _record(line: bytes) -> tuple[str, Record]:
    """What is wrong with a line, and the record in it."""
    checksum = CHECKSUM.match(line)
    body = b"{" + line[checksum.end() :] if checksum else line
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return "is no JSON", {}
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return "is no record with a `kind`", {}
    if (zlib.crc32(body) != int(checksum[1], 16)) if checksum else not line.startswith(WITHOUT_CHECKSUM):
        return "does not match its checksum", {}
    if isinstance(step := found.get("step"), float) and step.is_integer():  # journals of earlier versions have these
        found["step"] = int(step)
    return _fault(found), found


def _fault(record: Record) -> str:
    kind = record["kind"]
    for name, type_ in (NEEDED.get(kind, {}) | {"time_ms": int}).items():
        if not _is(record.get(name), type_):
            return f"has no right `{name}`"
    if kind not in NEEDED:
        return ""
    for name, type_ in OPTIONAL.items():
        if name in record and not _is(record[name], type_):
            return f"has no right `{name}`"
    if kind == "state" and record["state"] not in STATES:
        return "has no right `state`"
    numbers = record.get("metrics") or record.get("values") or {}
    if not all(_is(value, (int, float)) for value in numbers.values()):
        return "has a metric that is no number"
    return ""


def _is(value: object, type_: type | tuple[type, ...]) -> bool:
    return isinstance(value, type_) and not isinstance(value, bool)


class LostLinesError(OSError):
    """A journal no longer has what its writer wrote, so nothing may be decided by what is left."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"The journal {path} was changed while it was written: {fault}. No checkpoint was removed")


class JournalFile:
    """The journal at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end, self._last = 0, b""

    def mend(self) -> str:
        """Sets a damaged journal aside as `lines.mend` does, says so, and holds what is left of it."""
        said = mend(self.path)
        self.hold()
        return said

    def hold(self) -> None:
        """From now on this process writes the journal: what stands in it must stay there."""
        content = self.path.read_bytes() if self.path.exists() else b""
        self._end = content.rfind(b"\n") + 1
        self._last = content[content.rfind(b"\n", 0, max(0, self._end - 1)) + 1 : self._end]

    def append(self, record: Record) -> None:
        """Adds a line, in place of what a crash has left of a last one; on disk before this returns.

        Raises:
            LostLinesError: if what this process has written is not there any more, or a link leads to it.
            LinkError: if the folder, or the journal that this process has not written yet, is a link.
        """
        self._check()
        check_is_no_link(self.path.parent)
        line = line_of(record)
        with open(self.path, "a+b", opener=open_itself) as file:
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
                end = file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if not end:
            sync(self.path.parent)
        self._end, self._last = end + len(line), line

    def lines(self, offset: int) -> tuple[Lines, int]:
        """What stands behind an offset, and where that begins: at 0 if no line ends at `offset`.

        Raises:
            LostLinesError: if what this process has written is not there any more, or is damaged.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, offset - 1))
                content = file.read()
        except FileNotFoundError:
            content = b""
        except OSError as error:
            if self._end:
                raise
            return unreadable(error), 0
        if offset and not content.startswith(b"\n"):
            return self.lines(0)
        lines = parse(content[1:] if offset else content)
        self._check()
        if self._end and lines.fault:
            raise LostLinesError(self.path, f"its line {lines.number} {lines.fault}")
        return lines, offset

    def _check(self) -> None:
        """By its last line at its place: an inode may change with the mount, and a copy that is equal does no harm."""
        if not self._end:
            return
        for path, what in ((self.path.parent, "its folder"), (self.path, "it")):
            if path.is_symlink():
                raise LostLinesError(self.path, f"{what} is a link now")
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                last = os.pread(file.fileno(), len(self._last), self._end - len(self._last))
        except FileNotFoundError:
            raise LostLinesError(self.path, "it is gone") from None
        if last != self._last:
            fault = f"it has {size} bytes of {self._end}" if size < self._end else "its lines are others"
            raise LostLinesError(self.path, fault)
