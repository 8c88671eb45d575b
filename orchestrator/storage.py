"""A replicate's folder: a journal of everything it reported, and its checkpoints. The one record that a crash leaves.

Layout: `journal.jsonl`, one record a line, only ever appended to; `step_000012.<sha256>.pt`, whole or not there;
`artifacts/`, files for people.
The journal's line is written before the checkpoint of the same step, so nothing behind a checkpoint is missing.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]
NUM_LAST_KEPT = 2


class ReplicateFolder:
    """Journal and checkpoints of one replicate.

    Args:
        path: the folder; made when first written to.
        selection: names of checkpoints to keep, each with the metric it minimises; beside them the last two are kept.
    """

    def __init__(self, path: Path, selection: Mapping[str, str]) -> None:
        self.path = path
        self.selection = selection

    @property
    def _journal(self) -> Path:
        return self.path / "journal.jsonl"

    def records(self) -> list[Record]:
        """Every whole line of the journal; a line torn by a crash is not one."""
        if not self._journal.exists():
            return []
        lines = self._journal.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def append(self, record: Record) -> Record:
        """Adds `record` with the present time and returns it; on disk before this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        stamped = record | {"time_ms": time.time_ns() // 1_000_000}
        with self._journal.open("a+b") as file:
            file.truncate(_end_of_last_line(self._journal))
            file.write(json.dumps(stamped).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return stamped

    def last_step(self) -> int:
        """The last step reported in training; -1 where none was."""
        return max((r["step"] for r in self.records() if r["kind"] == "metrics"), default=-1)

    def state(self) -> Record:
        """The newest record of kind `state`; `{"state": "new"}` where there is none."""
        states = [r for r in self.records() if r["kind"] == "state"]
        return states[-1] if states else {"state": "new"}

    def evaluations(self) -> set[str]:
        """Ids of those done."""
        return {r.get("id", "") for r in self.records() if r["kind"] == "evaluation"}

    def keep(self, source: Path, step: int) -> None:
        """Copies the file `source` as the checkpoint of `step`, whole, and removes those no longer needed."""
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.path / "checkpoint.partial"
        shutil.copyfile(source, partial)
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            os.fsync(file.fileno())
        partial.rename(self.path / f"step_{step:06d}.{digest}.pt")
        self._prune()

    @property
    def artifacts(self) -> Path:
        """Files for people; the folder may not be there."""
        return self.path / "artifacts"

    def keep_artifacts(self, contents: Mapping[str, bytes]) -> None:
        """Writes files by name; one of the same name is replaced."""
        for name, content in contents.items():
            self.artifacts.mkdir(parents=True, exist_ok=True)
            (self.artifacts / name).write_bytes(content)

    def checkpoints(self) -> dict[int, Path]:
        """Those on disk by step, in order."""
        return {_step(path): path for path in sorted(self.path.glob("step_*.pt"), key=_step)}

    def newest(self) -> Path | None:
        """The last checkpoint whose content is what was written; damaged ones are passed over."""
        return next((path for path in reversed(self.checkpoints().values()) if _is_whole(path)), None)

    def newest_step(self) -> int:
        """The step of the last whole checkpoint; -1 without one."""
        newest = self.newest()
        return _step(newest) if newest else -1

    def best(self, name: str) -> Path | None:
        """The kept checkpoint with the lowest value of the metric that selects `name`, the earliest of equals."""
        values = self._values(self.selection[name])
        kept = {step: path for step, path in self.checkpoints().items() if step in values and _is_whole(path)}
        return kept[min(kept, key=lambda step: (values[step], step))] if kept else None

    def _values(self, metric: str) -> dict[int, float]:
        rows = [r for r in self.records() if r["kind"] == "metrics"]
        return {r["step"]: r["metrics"][metric] for r in rows if metric in r["metrics"]}

    def _prune(self) -> None:
        found = self.checkpoints()
        needed = set(list(found)[-NUM_LAST_KEPT:])
        for metric in self.selection.values():
            values = {step: value for step, value in self._values(metric).items() if step in found}
            needed |= {min(values, key=lambda step: (values[step], step))} if values else set()
        for step, path in found.items():
            if step not in needed:
                path.unlink()


def _step(path: Path) -> int:
    return int(path.name.split(".")[0].removeprefix("step_"))


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16] == path.name.split(".")[1]


def _end_of_last_line(path: Path) -> int:
    """The length of the file without what a crash tore off a last line."""
    if not path.exists():
        return 0
    return path.read_bytes().rfind(b"\n") + 1


def size_bytes(folder: Path) -> int:
    """What all files below `folder` take."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
