"""The curves of a sweep's replicates: `curves.jsonl` beside the study file, read only by what draws or asks of them.

A line has the curves of one replicate, thinned as `results.curves` says, and the last line of a name counts. It has a
checksum, as that of a journal; one that is torn or damaged is passed over. The file is a cache of the journals: whoever
does not find a replicate in it makes its curves again.
"""

import contextlib
import json
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.lines import line_of, parse
from orchestrator.journal.study_file import name_of
from orchestrator.journal.summary import JournalSummary
from orchestrator.machine.durable_files import open_itself
from orchestrator.results.curves import Histories, ReplicateCurves, thinned
from orchestrator.results.study import Replicate

CURVE_FILE: Final = "curves.jsonl"
LINE: Final = re.compile(rb'\{"crc32": "([0-9a-f]{8})", ("kind": "curves", "name": ("(?:[^"\\]|\\.)*").*)')
"""A line: most are passed over by their name, and not parsed."""


class CurveFile:
    """The file in the hands of the sweep's driver, which goes on without one that cannot be written.

    Args:
        folder: of the sweep's replicates.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / CURVE_FILE
        self._checksums: dict[str, bytes] = {}
        with contextlib.suppress(OSError):
            self._checksums = {name: checksum for name, checksum, _ in _lines(self._path.read_bytes())}

    def put(self, replicate: Replicate, journal: JournalSummary) -> None:
        """Keeps what a replicate has reported in training; writes nothing where it is known, or no journal is here."""
        if journal.last_ms is None:
            return
        kept, name = thinned(journal.histories), name_of(replicate)
        record = {"kind": "curves", "name": name, "time_ms": journal.last_ms, "version": _version(replicate)}
        line = line_of(record | {"curves": _packed(kept.curves), "endings": _packed(kept.endings)})
        checksum = line.split(b'"')[3]
        if self._checksums.get(name) == checksum:
            return
        with contextlib.suppress(OSError):
            file = open_itself(str(self._path), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(file, b"\n" + line)  # the line before may be torn
            finally:
                os.close(file)
            self._checksums[name] = checksum


def curves_in(content: bytes, replicates: Collection[Replicate]) -> dict[str, ReplicateCurves]:
    """The curves of those of the replicates that a file has as they are now, by `name_of`."""
    wanted = {name_of(one): _version(one) for one in replicates}
    lines = {name: line for name, _, line in _lines(content) if name in wanted}
    found = {}
    for name, line in lines.items():
        for record in parse(line + b"\n").records:
            if record["version"] == wanted[name]:
                found[name] = ReplicateCurves(_unpacked(record["curves"]), _unpacked(record["endings"]))
    return found


def split_curves(content: bytes, gone: Collection[str]) -> tuple[bytes, bytes]:
    """The lines of a file of the replicates `gone`, by `name_of`, and those of the others."""
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    for name, _, line in _lines(content):
        parts[name not in gone].append(line + b"\n")
    return b"".join(parts[0]), b"".join(parts[1])


def _lines(content: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Name, checksum and the whole of each line that is what was written."""
    for line in content.splitlines():
        found = LINE.fullmatch(line)
        if found and zlib.crc32(b"{" + found[2]) == int(found[1], 16):
            yield json.loads(found[3]), found[1], line


def _version(replicate: Replicate) -> str:
    """What its curves depend on."""
    return f"{replicate.key} {replicate.code_version}"


def _packed(histories: Histories) -> list[dict[str, Any]]:
    """Metrics that were reported on the same steps together."""
    groups: dict[tuple[int, ...], dict[str, list[float]]] = {}
    for metric, history in histories.items():
        groups.setdefault(tuple(history), {})[metric] = list(history.values())
    return [{"steps": steps, "values": values} for steps, values in groups.items()]


def _unpacked(groups: list[dict[str, Any]]) -> dict[str, Mapping[int, float]]:
    return {metric: dict(zip(one["steps"], of, strict=True)) for one in groups for metric, of in one["values"].items()}
