"""Every fault, at every moment of a replicate, wherever the sweep is kept: the same command brings it to the same end.

Three replicates, each struck at another moment, once; the command is given until all are complete. Then must hold:
every digit is that of a sweep that nothing befell, no step is recorded twice, MLflow has each run once and ended, and
a further command starts nothing. Faults of Ray are tried in `tests/integration/test_on_ray.py` and `test_lost_ray.py`,
those of machines in `tests/cluster/`, and each single operation on files in `crash_points.py`.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from rich.console import Console

import orchestrator.run
from orchestrator.environment.settings import Settings
from orchestrator.journal import bucket as journal_bucket
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.study_file import read_study_file
from orchestrator.results.outcome import Outcome
from orchestrator.run import run_here
from orchestrator.scheduler import scheduler
from orchestrator.tracking import write_queue
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_holder
from search_spaces.sweep import Sweep
from tests.faults.bucket import URL, Bucket
from tests.faults.course import in_child
from tests.faults.disk import Disk
from tests.integration import tiny as trainable
from tests.integration.sweeps import tiny
from tests.orchestrator.recorded import empty_store

MOMENTS = {"before the first report": 1, "between two reports": 3, "at the end": 5}
"""The step before which the replicate of that name is struck; behind the last of four, the evaluation."""

X = {"before the first report": 0.25, "between two reports": 0.5, "at the end": 0.75}


@dataclass
class Place:
    """Where a sweep is kept, and what is refused there from now on.

    Attributes:
        refusal: the number of the error of every further write of a file; 0 is none.
        num_unlogged: how many writes of metrics the tracking store refuses.
    """

    settings: Settings
    refusal: int = 0
    num_unlogged: int = 0

    @property
    def struck(self) -> Path:
        """Of each moment that has been, a file."""
        return self.settings.runs.parent / "struck"

    def journal(self) -> Path:
        """The file of the one that was written last, in the bucket where there is one."""
        kept = Bucket.place if self.settings.storage else self.settings.runs
        return max(kept.rglob("*journal.jsonl"), key=lambda path: path.stat().st_mtime_ns)

    def replicates(self, name: str) -> dict[str, list[dict[str, Any]]]:
        """The records of each by its key, as a driver reads them."""
        folder = self.settings.replicates(name)
        files = [Path(key) for key in Bucket.contents()] if self.settings.storage else folder.rglob("*")
        keys = [file.parts[-2] for file in files if file.name == "journal.jsonl" and name in file.parts]
        folders = {key: ReplicateFolder(folder / key, {}, self.settings.shared(folder / key)) for key in keys}
        return {key: one.records() for key, one in folders.items()}


def kill(place: Place) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def tear(place: Place) -> None:
    with place.journal().open("a") as journal:
        journal.write('{"kind": "metr')
    kill(place)


def damage_line(place: Place) -> None:
    content = bytearray(place.journal().read_bytes())
    content[len(content) // 2] ^= 0xFF
    place.journal().write_bytes(content)
    kill(place)


def damage_checkpoints(place: Place) -> None:
    for checkpoint in place.settings.runs.rglob("replicates/*/*/step_*.pt"):
        checkpoint.write_bytes(b"garbage")
    kill(place)


def lose_machine(place: Place) -> None:
    """What goes on has an empty folder, and the tracking store of before."""
    place.settings.runs.rename(place.settings.runs.with_name(f"lost {len(list(place.struck.iterdir()))}"))
    kill(place)


def fill_disk(place: Place) -> None:
    place.refusal = errno.ENOSPC


def forbid_writes(place: Place) -> None:
    place.refusal = errno.EROFS


def lose_store(place: Place, num_writes: int) -> None:
    place.num_unlogged = num_writes


def lose_store_to_the_end(place: Place) -> None:
    lose_store(place, FOR_EVER)
    orchestrator.run.WRITE_AT_END_S = 0.5  # type: ignore[misc]


def lose_bucket(place: Place, num_requests: int, away_s: float) -> None:
    Bucket.num_refused, journal_bucket.AWAY_S = num_requests, away_s  # type: ignore[misc]


def lose_bucket_to_the_end(place: Place) -> None:
    lose_bucket(place, FOR_EVER, 0.0)
    orchestrator.run.WRITE_AT_STOP_S = orchestrator.run.WRITE_AT_END_S = 0.5  # type: ignore[misc]


EVERYWHERE, HERE, IN_BUCKET = ("folder", "bucket", "server"), ("folder", "bucket"), ("bucket",)
FOR_EVER = 1_000_000
FAULTS: dict[str, tuple[tuple[str, ...], int, int, Callable[[Place], None]]] = {
    "driver killed": (EVERYWHERE, 4, 2, kill),
    "driver stopped": (EVERYWHERE, 4, 2, lambda place: signal.raise_signal(signal.SIGINT)),
    "machine lost": (IN_BUCKET, 4, 2, lose_machine),
    "line torn": (HERE, 4, 2, tear),
    "line damaged": (HERE, 4, 0, damage_line),
    "checkpoints damaged": (HERE, 4, 2, damage_checkpoints),
    "disk full": (HERE, 4, 0, fill_disk),
    "folder read-only": (("folder",), 4, 0, forbid_writes),
    "store away for a while": (("folder", "server"), 1, 1, partial(lose_store, num_writes=20)),
    "store away to the end": (("folder", "server"), 2, 1, lose_store_to_the_end),
    "bucket away for a while": (IN_BUCKET, 1, 1, partial(lose_bucket, num_requests=5, away_s=120.0)),
    "bucket given up": (IN_BUCKET, 1, 2, partial(lose_bucket, num_requests=1, away_s=0.0)),
    "bucket away to the end": (IN_BUCKET, 4, 2, lose_bucket_to_the_end),
}
"""Where each can be, how many commands it takes, how often each replicate begins by then (0: not the same for all), and
what it does."""

CELLS = [
    pytest.param(kind, *rest, id=f"{fault}-{kind}", marks=[pytest.mark.slow] if kind != kinds[0] else [])
    for fault, (kinds, *rest) in FAULTS.items()
    for kind in kinds
]
"""Each fault where it is nearest; its other places take minutes."""


def sweep_of(name: str) -> Sweep:
    return tiny({moment: {"x": x} for moment, x in X.items()}, name=name, seeds=(1,))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """The metrics of each replicate of a sweep that nothing befell."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return metrics(run(sweep_of("tiny.undisturbed"), Settings(folder, f"sqlite:///{folder}/mlflow.db")))


def metrics(outcome: Outcome) -> dict[str, dict[str, float]]:
    assert {one.state for one in outcome.replicates} == {"complete"}
    return {one.condition: dict(one.metrics) for one in outcome.replicates}


def run(sweep: Sweep, settings: Settings) -> Outcome:
    return run_here(sweep, settings, Console(quiet=True))


@pytest.fixture
def place(request: pytest.FixtureRequest, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An empty one of the kind that the cell names."""
    kind = request.node.callspec.params["kind"]
    store = workplace / "mlflow.db"
    store.write_bytes(empty_store())
    (workplace / "runs").mkdir()
    uri = request.getfixturevalue("client").uri if kind == "server" else f"sqlite:///{store}"
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "s3", Bucket)
    Bucket.open_at(workplace / "bucket")
    found = Place(Settings(workplace / "runs", uri, storage=URL if kind == "bucket" else ""))
    found.struck.mkdir()
    yield found


def command(place: Place, sweep: Sweep, fault: Callable[[Place], None]) -> None:
    """Runs the sweep in a process of its own, which ends with 1 where something is left to do."""
    log = Tracking.log

    def strike(config: Any, epoch: int) -> None:
        (moment,) = (name for name, x in X.items() if x == config.x)
        if epoch == MOMENTS[moment] and not (mark := place.struck / moment).exists():
            mark.touch()
            fault(place)

    def refuse(disk: Disk, tear: object) -> None:
        if place.refusal and disk.operations[-1].startswith(("create", "write", "mkdir")):
            raise OSError(place.refusal, os.strerror(place.refusal))

    def log_or_fail(self: Tracking, *arguments: Any, **named: Any) -> None:
        if place.num_unlogged:
            place.num_unlogged -= 1
            raise ConnectionError("the server is away")
        log(self, *arguments, **named)

    trainable._strike, Tracking.log = strike, log_or_fail
    journal_bucket.WAITS_S = scheduler.WAITS_S = write_queue.WAITS_S = (0.01,)  # type: ignore[misc, attr-defined]
    with Disk(place.settings.runs, refuse).watched():
        outcome = run(sweep, place.settings)
    metrics(outcome)
    assert not outcome.num_unwritten


@pytest.mark.parametrize(("kind", "num_commands", "num_starts", "fault"), CELLS)
def test_the_same_command_brings_it_to_the_same_end(request, place, expected, kind, num_commands, num_starts, fault):
    name = f"tiny.{request.node.callspec.id.replace(' ', '_')}"
    sweep, folder = sweep_of(name), place.settings.replicates(name)
    codes = []
    while 0 not in codes and len(codes) < num_commands:
        codes.append(in_child(partial(command, place, sweep, fault)))
        place.settings.runs.mkdir(exist_ok=True)
        if codes[-1] == -signal.SIGKILL and fault is not lose_machine:
            noted = read_study_file(folder).replicates.values()
            complete = [one["condition"] for one in noted if one["state"] == "complete"]
            assert complete == list(MOMENTS)[: len(codes) - 1]
            assert load_holder(name, place.settings).is_gone
    assert codes[-1] == 0 and len(codes) == num_commands
    assert {path.name for path in place.struck.iterdir()} == {*MOMENTS}
    before = place.replicates(name)
    assert metrics(run(sweep, place.settings)) == expected
    assert place.replicates(name) == before and len(before) == len(MOMENTS)
    for records in before.values():
        steps = [one["step"] for one in records if one["kind"] == "metrics"]
        assert steps == [1, 2, 3, 4]
    starts = {sum(one["kind"] == "started" for one in records) for records in before.values()}
    assert starts == {num_starts} or not num_starts
    if fault is damage_line:
        kept = Bucket.place if place.settings.storage else folder
        assert len([*kept.rglob("*journal.damaged-1.jsonl")]) == len(MOMENTS)
    client = MlflowClient(place.settings.tracking_uri)
    runs = client.search_runs([client.get_experiment_by_name(name).experiment_id], "tags.`ponderay.kind` != 'sweep'")
    assert sorted((one.info.run_name, one.info.status) for one in runs) == sorted(
        (run_name, "FINISHED") for moment in MOMENTS for run_name in (moment, f"{moment} seed 1")
    )
