"""The study file of a sweep: what its journals have come to, and what was asked of them.

`study.jsonl` stands beside the folders of the replicates. Its first line is a header; each line behind it says all that
is known of the sweep, of a condition or of a replicate, and the last line of a key counts. The
config stands once for each condition, and once for all replicates what they were begun with (`origin`). Lines have the
checksums of a journal's (`lines`). A last line that a crash has torn off is none.

The file is a cache of the journals: whoever runs the sweep again writes what it lacks, and one that is damaged is made
anew. So an append is not synced, and a loss of power costs no result.
"""

import contextlib
import errno
import os
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.lines import Record, line_of, parse
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import make_folder, open_itself, write_durably
from orchestrator.results.study import Origin, Replicate, Study

FORMAT: Final = 2
STUDY_FILE: Final = "study.jsonl"
KINDS: Final = ("sweep", "origin", "condition", "replicate", "mirror", "code")
OWN: Final = ("crc32", "kind", "name", "time_ms")
"""What every line has beside what it says."""

ORIGIN: Final = tuple(field.name for field in fields(Origin))
FIELDS: Final = tuple(field.name for field in fields(Replicate) if field.name not in ("condition", "seed"))


class DeposedError(OSError):
    """Another driver has taken the study file over."""


@dataclass(frozen=True)
class StudyContent:
    """The content of a study file.

    Attributes:
        study_id: stays the same for as long as the sweep has its folder.
        generation: how many drivers have written the file, one after another.
        sweep: what is known of the sweep as a whole.
        origins: by the name that replicates' lines have for theirs.
        conditions: by name, in the order in which they began.
        replicates: by condition and seed, as `name_of` says: equal draws of a search have one key.
        mirrors: by condition, how each of its replicates stands in MLflow (`standing`), by seed. Empty where the driver
            was of a version that did not note it.
        code: by version of the code, digests of its files by name.
    """

    study_id: str
    generation: int
    sweep: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, Record] = field(default_factory=dict)
    conditions: Mapping[str, Record] = field(default_factory=dict)
    replicates: Mapping[str, Record] = field(default_factory=dict)
    mirrors: Mapping[str, Record] = field(default_factory=dict)
    code: Mapping[str, Record] = field(default_factory=dict)

    @property
    def time_ms(self) -> int:
        """When something was noted last, in milliseconds since 1970."""
        return max((int(record["time_ms"]) for record in _records(self)), default=0)

    def study(self, name: str) -> Study:
        """The study of the sweep `name`: conditions in the order in which they began, seeds in order."""
        by_condition: dict[str, list[Record]] = {condition: [] for condition in self.conditions}
        for record in self.replicates.values():
            by_condition.setdefault(record["condition"], []).append(record)
        listed = [record for of in by_condition.values() for record in sorted(of, key=lambda one: one["seed"])]
        updated_ms = {
            condition: max(record["time_ms"] for record in of) for condition, of in by_condition.items() if of
        }
        settings, configs = (
            {condition: record[what] for condition, record in self.conditions.items() if record.get(what)}
            for what in ("settings", "config")
        )
        began_with = {name: Origin(**{part: record[part] for part in ORIGIN}) for name, record in self.origins.items()}
        origins = {one["key"]: began_with[one["origin"]] for one in self.replicates.values() if "origin" in one}
        replicates = tuple(map(from_record, listed))
        unmirrored = [
            (one.condition, one.seed)
            for one in (replicates if self.mirrors else ())
            if one.state in ("complete", "failed", "pruned")
            and self.mirrors.get(one.condition, {}).get(str(one.seed)) != standing(one)
        ]
        return Study(name, replicates, updated_ms, settings, configs, origins, unmirrored=tuple(unmirrored))


def standing(replicate: Replicate) -> str:
    """How far a replicate has come."""
    return f"{replicate.state} {len(replicate.evaluations)}"


def to_record(replicate: Replicate) -> dict[str, Any]:
    """All fields of a replicate but condition and seed, as JSON has them."""
    record = {name: getattr(replicate, name) for name in FIELDS}
    return record | {"metrics": dict(replicate.metrics), "evaluations": sorted(replicate.evaluations)}


def from_record(record: Mapping[str, Any]) -> Replicate:
    """The replicate of a line that has `condition` and `seed` too; fields of other versions are passed over."""
    values = {name: record[name] for name in FIELDS if name in record}
    values["evaluations"] = frozenset(values.get("evaluations", ()))
    return Replicate(condition=record["condition"], seed=record["seed"], **values)


def read_study_file(folder: Path) -> StudyContent | None:
    """The content of the study file in the folder of a sweep's replicates.

    None where there is no file, or one that is damaged or of another format: the journals have all of it.
    """
    try:
        return parse_study((folder / STUDY_FILE).read_bytes())
    except OSError:
        return None


def parse_study(content: bytes) -> StudyContent | None:
    """What `read_study_file` finds, of the file's content."""
    lines = parse(content)
    header = lines.records[0] if lines.records else {}
    if lines.fault or header.get("kind") != "study" or header.get("format") != FORMAT:
        return None
    found: dict[str, dict[str, Record]] = {kind: {} for kind in KINDS}
    for record in lines.records[1:]:
        if record["kind"] in found:  # else it is of a later version
            found[record["kind"]][record["name"]] = record
    sweep = next(iter(found["sweep"].values()), {})
    return StudyContent(header["study"], header["generation"], sweep, *(found[kind] for kind in KINDS[1:]))


def lines_of(study_id: str, generation: int, content: StudyContent) -> bytes:
    """A study file with this content."""
    header = {"kind": "study", "format": FORMAT, "study": study_id, "generation": generation, "time_ms": now_ms()}
    records = (header, *_records(content))
    return b"".join(line_of({name: value for name, value in one.items() if name != "crc32"}) for one in records)


def part_of(content: StudyContent, names: Collection[str], is_all: bool = False) -> StudyContent:
    """The content with the replicates of these names alone, and what belongs to them.

    Args:
        is_all: whether conditions without any replicate stay if they never had one; else they go.
    """
    replicates = {name: one for name, one in content.replicates.items() if name in names}
    had = {one["condition"] for one in content.replicates.values()}
    has = {one["condition"] for one in replicates.values()}
    stays = has | (set(content.conditions) - had if is_all else set())
    origins = {one.get("origin") for one in replicates.values()}
    mirrors = {
        condition: {
            part: text for part, text in line.items() if not part.isdecimal() or f"{condition} seed {part}" in names
        }
        for condition, line in content.mirrors.items()
        if condition in stays or not condition
    }
    return replace(
        content,
        conditions={name: one for name, one in content.conditions.items() if name in stays},
        replicates=replicates,
        origins={name: one for name, one in content.origins.items() if name in origins},
        mirrors=mirrors if is_all else {},
    )


def name_of(replicate: Replicate) -> str:
    """The name of a replicate's line."""
    return f"{replicate.condition} seed {replicate.seed}"


class StudyFile:
    """The study file in the hands of the one driver that holds the sweep's lease.

    Taking it over makes a new file of the next generation in place of the old one, with one line for each name. Since
    the journals have all of it, a file that cannot be written is no reason to stop: it is emptied, so that nobody
    believes it, and nothing more is put.

    Args:
        folder: of the sweep's replicates; made where it is not there.
        previous: the token of the lease before this driver's; what a file of another lease says is passed over.
        lease: the token of this driver's. A file that goes on has it from the first moment, for readers believe the
            last lease alone, and a driver may die before it notes anything.
        change: what becomes of the content of a file that goes on, in the same step.

    Attributes:
        content: what earlier drivers left.
        fault: why the file is not written any more; empty while it is.
    """

    def __init__(
        self,
        folder: Path,
        previous: str,
        lease: str = "",
        change: Callable[[StudyContent], StudyContent] = lambda content: content,
    ) -> None:
        self._path, self._lock, self._file, self.fault = folder / STUDY_FILE, threading.Lock(), -1, ""
        found = read_study_file(folder) or StudyContent(uuid.uuid4().hex, 0)
        is_newest = found.sweep.get("lease") == previous
        self.content = found if is_newest else StudyContent(found.study_id, found.generation)
        if is_newest and lease:
            self.content = replace(found, sweep={**found.sweep, "lease": lease})
        self.content = change(self.content)
        self._generation = found.generation + 1
        self._last = {
            (one["kind"], one["name"]): {name: value for name, value in one.items() if name not in OWN}
            for one in _records(self.content)
        }
        try:
            make_folder(folder)
            write_durably(self._path, lines_of(found.study_id, self._generation, self.content))
            self._file = open_itself(str(self._path), os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            self.fault = f"{self._path} cannot be written: {error.strerror or error}"

    def put(self, kind: str, name: str, said: Mapping[str, Any], time_ms: int = 0) -> None:
        """Adds what is said to what is known of a name; writes nothing where all of it is known.

        Args:
            time_ms: when it was so, in milliseconds since 1970; default: now.

        Raises:
            DeposedError: if another driver has taken the file over.
        """
        with self._lock:
            known = self._last.get((kind, name))
            new = {**(known or {}), **said}
            if self._file < 0 or (known is not None and repr(new) == repr(known)):  # NaN is not equal to itself
                return
            line = line_of({"kind": kind, "name": name, "time_ms": time_ms or now_ms(), **new})
            try:
                if not self._is_there():
                    self._end(f"{self._path} was deleted or replaced")
                    return
                if os.write(self._file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except DeposedError:
                raise
            except OSError as error:
                with contextlib.suppress(OSError):  # of this very file: the name may be another driver's by now
                    os.ftruncate(self._file, 0)  # half a line would hide what follows
                self._end(f"{self._path} cannot be written: {error.strerror or error}")
                return
            self._last[kind, name] = new

    def close(self) -> None:
        """Has all lines on disk; what is put from now on is lost."""
        with self._lock:
            if self._file >= 0:
                with contextlib.suppress(OSError):
                    os.fsync(self._file)
                self._end("")

    def _end(self, fault: str) -> None:
        with contextlib.suppress(OSError):
            os.close(self._file)
        self._file, self.fault = -1, fault

    def _is_there(self) -> bool:
        """Whether the file has still its name; one that is deleted is missed by nobody, and the next driver makes it.

        No two files that exist at once share a number, and this one exists for as long as it is open. A file that is
        restored or synchronised has another number too, so the generation tells who has put it there.

        Raises:
            DeposedError: if another driver has.
        """
        mine = os.fstat(self._file)
        try:
            there = self._path.lstat()
        except FileNotFoundError:
            return False
        if (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev):
            return True
        found = read_study_file(self._path.parent)
        if found and found.generation > self._generation:
            raise DeposedError(f"{self._path} was taken over by another driver")
        if found and found.generation == self._generation:  # a copy of this very file, which readers would believe
            self._path.unlink(missing_ok=True)
        return False


def _records(content: StudyContent) -> Iterator[Record]:
    if content.sweep:
        yield dict(content.sweep)
    for kind in (content.origins, content.conditions, content.replicates, content.mirrors, content.code):
        yield from kind.values()
