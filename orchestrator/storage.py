"""A replicate's folder: a journal of everything it reported, and its checkpoints. The one record that a crash leaves.

Layout: `journal.jsonl`, one record a line, only ever appended to; `step_000012.<sha256>.pt`, whole or not there;
`artifacts/`, files for people.
The journal's line is written before the checkpoint of the same step, and the artifacts before both, so nothing behind a
checkpoint is missing.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

Record = dict[str, Any]
NUM_LAST_KEPT: Final = 2
HUNG_FILE: Final = "threads.txt"
"""Where a process that no longer reported says what its threads were doing."""
ARTIFACTS_LIMIT_BYTES: Final = 64_000_000
"""What the files for people of one replicate may take; larger things belong into checkpoints."""


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
        return self.records_after(0)[0]

    def records_after(self, offset: int) -> tuple[list[Record], int]:
        """The whole lines behind `offset` bytes of the journal, and the offset behind them."""
        if not self._journal.exists():
            return [], offset
        with self._journal.open("rb") as file:
            file.seek(offset)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        return [json.loads(line) for line in whole.splitlines()], offset + len(whole)

    def append(self, record: Record) -> Record:
        """Adds `record` with the present time and returns it; on disk before this returns."""
        self.path.mkdir(parents=True, exist_ok=True)
        stamped = record | {"time_ms": time.time_ns() // 1_000_000}
        with self._journal.open("a+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
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

    def started(self, attempt: str) -> Record:
        """What the session of `attempt` wrote first; nothing where it has not."""
        return next((r for r in self.records() if r["kind"] == "started" and r["attempt"] == attempt), {})

    def evaluations(self) -> set[str]:
        """Ids of those done."""
        return {r.get("id", "") for r in self.records() if r["kind"] == "evaluation"}

    def keep(self, source: Path, step: int) -> None:
        """Copies the file `source` as the checkpoint of `step`, whole, and removes those no longer needed."""
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.path / "checkpoint.partial"
        try:
            shutil.copyfile(source, partial)
            with partial.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
                os.fsync(file.fileno())
            partial.rename(self.path / f"step_{step:06d}.{digest}.pt")
        finally:
            partial.unlink(missing_ok=True)
        self._prune(NUM_LAST_KEPT)

    @property
    def artifacts(self) -> Path:
        """Files for people; the folder may not be there."""
        return self.path / "artifacts"

    def keep_artifacts(self, contents: Mapping[str, bytes]) -> None:
        """Writes files by name, each whole or not at all; one of the same name is replaced.

        Raises:
            ValueError: if all of them would take more than the limit.
        """
        there = {file.name: file.stat().st_size for file in self.artifacts.glob("*")}
        total = sum((there | {name: len(content) for name, content in contents.items()}).values())
        if total > ARTIFACTS_LIMIT_BYTES:
            raise ValueError(
                f"The artifacts of a replicate may take {ARTIFACTS_LIMIT_BYTES / 1e6:.0f} MB, but these take "
                f"{total / 1e6:.0f} MB; report fewer or smaller files."
            )
        for name, content in contents.items():
            self.artifacts.mkdir(parents=True, exist_ok=True)
            partial = self.artifacts / f".{name}.partial"
            partial.write_bytes(content)
            partial.rename(self.artifacts / name)

    def checkpoints(self) -> dict[int, Path]:
        """Those on disk by step, in order."""
        return {_step(path): path for path in sorted(self.path.glob("step_*.pt"), key=_step)}

    def newest(self) -> Path | None:
        """The last checkpoint to go on from: it is what was written, and so are the best ones up to it.

        A damaged one is passed over; where it was the best so far, so are all behind it, for it has to be made again.
        """
        found = self._whole()
        for step in reversed(found):
            if all(best in found for best in self._best_steps(step).values()):
                return found[step]
        return None

    def go_back(self) -> Path | None:
        """`newest`, with all that lies behind it removed."""
        newest = self.newest()
        last = _step(newest) if newest else -1
        for step, path in self.checkpoints().items():
            if step > last:
                path.unlink()
        return newest

    def is_trained(self, num_steps: int) -> bool:
        """Whether the last step was reported and the best checkpoints are there."""
        if self.last_step() < num_steps:
            return False
        kept = [r["step"] for r in self.records() if r["kind"] == "metrics" and r.get("kept", True)]
        needed = set(self._best_steps(num_steps).values()) or {max(kept, default=-1)}
        return needed <= set(self._whole())

    def best(self, name: str) -> Path | None:
        """The checkpoint with the lowest value of the metric that selects `name`, the earliest of equals.

        None where no step has a value, or it is damaged.
        """
        step = self._best_steps(self.last_step()).get(name)
        return None if step is None else self._whole().get(step)

    def keep_best(self) -> None:
        """Removes all checkpoints but the best ones; the last one where none is the best."""
        self._prune(0 if self._best_steps(self.last_step()) else 1)

    def _whole(self) -> dict[int, Path]:
        return {step: path for step, path in self.checkpoints().items() if is_whole(path)}

    def _best_steps(self, until: int) -> dict[str, int]:
        """For each name of the selection the best step up to `until` among those that had a checkpoint."""
        rows = [r for r in self.records() if r["kind"] == "metrics" and r["step"] <= until and r.get("kept", True)]
        best = {}
        for name, metric in self.selection.items():
            values = {r["step"]: r["metrics"][metric] for r in rows if metric in r["metrics"]}
            if values:
                best[name] = min(values, key=lambda step: (values[step], step))
        return best

    def _prune(self, num_last: int) -> None:
        found = self.checkpoints()
        last = list(found)[-num_last:] if num_last else []
        needed = {*last, *self._best_steps(max(found, default=-1)).values()}
        for step, path in found.items():
            if step not in needed:
                path.unlink()


def _step(path: Path) -> int:
    return int(path.name.split(".")[0].removeprefix("step_"))


def is_whole(path: Path) -> bool:
    """Whether the content of a checkpoint is there and is what its name says."""
    if not path.exists():
        return False
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
