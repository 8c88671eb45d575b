"""What was read of a study before, in a file of this machine; it may be deleted at any time.

One file for each experiment of each store: a line about the file (version of its format, store, checksum of the rest),
then JSON. A file that is damaged, of another version or of another store counts as none.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.study_file import from_record, to_record
from orchestrator.machine.durable_files import new_file
from orchestrator.results.study import Replicate, Study

FORMAT: Final = 2


@dataclass(frozen=True)
class Origin:
    """An experiment of a store; one made anew has another `created_ms`."""

    store: str
    experiment_id: str
    created_ms: int


@dataclass(frozen=True)
class ReadCondition:
    """A condition's replicates by seed, as they were at `revision`, and what `--set` changed in it."""

    name: str
    started_ms: int
    revision: int
    replicates: tuple[Replicate, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """An experiment as it was read.

    Attributes:
        revision: everything written up to it is here.
        conditions: by the id of their run; without those that were deleted in MLflow.
        deleted: ids of those.
    """

    revision: int = 0
    conditions: Mapping[str, ReadCondition] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()

    def study(self, sweep: str) -> Study:
        """Conditions in the order of their runs' start."""
        runs = sorted(self.conditions.items(), key=lambda item: (item[1].started_ms, item[0]))
        replicates = tuple(replicate for _, condition in runs for replicate in condition.replicates)
        updated_ms = {condition.name: condition.revision for _, condition in runs}
        settings = {condition.name: condition.settings for _, condition in runs if condition.settings}
        return Study(sweep, replicates, updated_ms, settings)


def cache_folder() -> Path | None:
    """Where studies are cached, as PONDERAY_CACHE says; None: nowhere."""
    place = os.environ.get("PONDERAY_CACHE")
    return Path(place) / "studies" if place else None


def load(folder: Path | None, origin: Origin) -> Snapshot:
    """What was saved last; an empty snapshot where there is nothing to be trusted."""
    if folder is None:
        return Snapshot()
    try:
        about, _, body = _path(folder, origin).read_bytes().partition(b"\n")
        if json.loads(about) == _about(origin, body):
            return _from_json(json.loads(body))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return Snapshot()


def save(folder: Path | None, origin: Origin, snapshot: Snapshot) -> None:
    """Replaces the file at once; a folder that cannot be written to is no reason to fail."""
    if folder is None:
        return
    body = json.dumps(_to_json(snapshot)).encode()
    path = _path(folder, origin)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with new_file(partial) as file:
            file.write(json.dumps(_about(origin, body)).encode() + b"\n" + body)
        partial.replace(path)


def _path(folder: Path, origin: Origin) -> Path:
    return folder / f"{hashlib.sha256(f'{origin.store} {origin.experiment_id}'.encode()).hexdigest()[:20]}.json"


def _about(origin: Origin, body: bytes) -> dict[str, Any]:
    return {"format": FORMAT, **vars(origin), "sha256": hashlib.sha256(body).hexdigest()}


def _to_json(snapshot: Snapshot) -> dict[str, Any]:
    conditions = {
        run_id: vars(c) | {"replicates": {r.seed: to_record(r) for r in c.replicates}}
        for run_id, c in snapshot.conditions.items()
    }
    return {"revision": snapshot.revision, "deleted": sorted(snapshot.deleted), "conditions": conditions}


def _from_json(content: dict[str, Any]) -> Snapshot:
    conditions = {}
    for run_id, c in content["conditions"].items():
        name = {"condition": c["name"]}
        replicates = tuple(from_record({**one, **name, "seed": int(seed)}) for seed, one in c["replicates"].items())
        conditions[run_id] = ReadCondition(c["name"], c["started_ms"], c["revision"], replicates, c["settings"])
    return Snapshot(content["revision"], conditions, frozenset(content["deleted"]))
