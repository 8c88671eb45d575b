"""The lines of a journal, as far as they are whole: what follows a damaged line is not trusted.

A journal is only ever appended to, so all that stands before a damaged line is what was written there. A last line
without its end is none that a crash has not torn off, and no damage.

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

from orchestrator.machine.durable_files import new_file, replace_durably
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
    """Of a journal.

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
        """Of the damaged line, where the journal was read from its beginning."""
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
    """Of a file that cannot be read."""
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
    _name_again(journal, aside)
    replace_durably(partial, journal)
    return told(lines, journal, aside.name)


def told(lines: Lines, place: object, aside: str) -> str:
    """That a damaged journal, or a link in its place, was set aside."""
    if not lines.fault:
        return f"The journal {place} is a link. It is set aside as {aside}; its {len(lines.records)} lines are kept"
    kept = f"; the {len(lines.records)} lines before it are kept" if lines.records else ""
    return f"{lines.damage(place)}. It is set aside as {aside}{kept}"


def free_name(is_taken: Callable[[str], bool]) -> str:
    """The first name of a damaged journal that no earlier one has."""
    names: Iterator[str] = (DAMAGED.format(number) for number in count(1))
    return next(name for name in names if not is_taken(name))


def _name_again(journal: Path, aside: Path) -> None:
    """At no moment there is neither: a crash leaves the journal as it was, or both."""
    try:
        os.link(journal, aside, follow_symlinks=False)
    except OSError:  # a folder, or a disk without hard links
        journal.rename(aside)


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
