"""One replicate with its prerequisite, run by a scheduler without a store, and all that it comes to."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.results.study import Study
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.kept_checkpoint import kept_checkpoint
from orchestrator.worker.execute import execute
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Prerequisite, Sweep
from tests.faults.bucket import Bucket
from tests.faults.trainable import VALID, SumConfig
from tests.orchestrator.scheduler.parts import Parts
from trainables.errors import InputError

SWEEP: Final = Sweep(
    name="crash.points",
    description="For tests.",
    trainable="tests.faults.trainable",
    base=SumConfig(),
    conditions=(Condition("sum"),),
    objectives=(Objective("error"), Objective("valid")),
    seeds=(1,),
    prerequisites=(Prerequisite("first", "tests.faults.first", "first"),),
    resources=Resources(num_workers=0),
)

OF_SESSION: Final = ("journal.jsonl", "in_use", "writer")


class Run:
    """A driver on the runs folder `root`, which knows nothing of what another left but by the journals.

    Attributes:
        reported: what the work has passed on so far, by folder.
    """

    def __init__(self, root: Path, attempt: str, storage: str = "") -> None:
        self.root, self.reported = root, defaultdict[str, list[Record]](list)
        self.settings = Settings(root, "", storage=storage)
        self.parts = Parts(root, SWEEP, Capacity(math.inf, math.inf), (), attempt=attempt, storage=storage)

    def to_its_end(self) -> None:
        """All that is left to do."""
        scheduler = self.parts.scheduler
        scheduler.extend()
        while work := scheduler.next():
            folder = work.folder.relative_to(self.root).as_posix()

            def send(record: Record, key: str = work.key, folder: str = folder) -> None:
                self.reported[folder].append(record)
                scheduler.reported(key, record)

            execute(work, send)
            scheduler.ended(work.key)
        assert scheduler.is_finished()

    def unrecorded(self, reported: Mapping[str, list[Record]]) -> list[str]:
        """Which of these, passed on by an earlier run, are in no journal now."""
        lost = []
        for path, records in reported.items():
            there = ReplicateFolder(self.root / path, {}, self.settings.shared(self.root / path)).records()
            lost += [f"{path}: {one} was reported, and is not in its journal" for one in records if one not in there]
        return lost

    def outcome(self) -> dict[str, Any]:
        """What must be equal, however often it was cut off."""
        replicates = self.parts.scheduler.replicates()
        study = Study(SWEEP.name, tuple(replicates))
        folders = [ReplicateFolder(task.work.folder, {}, task.work.shared) for task in self.parts.tasks]
        return {
            "replicates": [[one.condition, one.seed, one.state, one.error, one.metrics] for one in replicates],
            "checkpoints": {f"{name}": _kept(study, name, self.settings) for name in (None, *VALID)},
            "journals": {folder.path.name: _told(folder.records()) for folder in folders},
            "files": {folder.path.name: self._files(folder) for folder in folders},
        }

    def _files(self, folder: ReplicateFolder) -> dict[str, str]:
        """The digest of each where all machines see it, and folders; without the journal, which is read."""
        if folder.shared:
            contents, start = Bucket.contents(), f"{folder.shared.removeprefix('s3://')}/"
            found = {key.removeprefix(start): contents[key] for key in contents if key.startswith(start)}
        else:
            paths = sorted(folder.path.rglob("*"))
            found = {f"{path.relative_to(folder.path)}": path.read_bytes() if path.is_file() else b"" for path in paths}
        kept = {name: content for name, content in found.items() if name not in OF_SESSION}
        return {name: hashlib.sha256(content).hexdigest()[:8] for name, content in kept.items()}


def _kept(study: Study, evaluation: str | None, settings: Settings) -> list[str]:
    """Name and content of the checkpoint that `ponderay.checkpoint` gives, or why it gives none."""
    try:
        path = kept_checkpoint(study, "sum", 1, evaluation, settings).path
    except InputError as error:
        return [str(error)]
    return [path.name, (path / "deep" / "state.json").read_text()]


def _told(records: list[Record]) -> list[Any]:
    """Without what is of a session: when, where, and how often it began."""
    of_session = {"time_ms", "attempt", "size_bytes", "peak_host_bytes", "peak_gpu_bytes"}
    kept = [record for record in records if record["kind"] not in ("started", "system")]
    return [{name: value for name, value in record.items() if name not in of_session} for record in kept]
