"""A run that is cut off once or more, in forked processes, and what comes of it."""

import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from orchestrator.journal import bucket as journal_bucket
from tests.faults.bucket import URL, Bucket, Kind
from tests.faults.disk import Disk, Tear
from tests.faults.replicate import Run
from tests.faults.stored import StoredRun

Way = Literal["folder", "bucket", "MLflow"]
"""Where it is kept: in the runs folder alone, in a bucket, or in the runs folder and MLflow."""

Loss = Literal["killed", "torn", "power", "contents", "fails", "late", "twice", "moved"]
STRUCK: Final = 77
LIMIT_S: Final = 300
MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True)
class Crash:
    """What befalls a run before, or in, its operation or request of this number.

    Attributes:
        loss: its process is `killed`; its write is `torn`, too; all is lost that was not synced (`power`), or only
            `contents`; in a bucket, what befalls the request, or `moved`: killed, and another machine goes on.
    """

    number: int
    loss: Loss


@dataclass(frozen=True)
class Course:
    """What came of it.

    Attributes:
        crashes: each with the operation that it came before.
        num_operations: of the run that went to its end.
        problems: what did not hold.
    """

    way: Way
    crashes: tuple[tuple[Crash, str], ...]
    num_operations: int
    problems: tuple[str, ...]


def undisturbed(way: Way) -> tuple[Any, list[str]]:
    """What a run comes to that nothing befalls, and its operations; in a bucket, its requests."""
    place = _place()
    try:
        assert in_child(partial(_go_on, place, way)) == 0
        outcome, operations, problems = json.loads((place / "outcome").read_text())
        assert not problems
        return outcome, operations
    finally:
        shutil.rmtree(place)


def course(crashes: Sequence[Crash], way: Way, expected: Any) -> Course:
    """Tries it, in a folder of its own."""
    place = _place()
    befallen: list[tuple[Crash, str]] = []
    answered = crashes[-1] if crashes[-1].loss in ("fails", "late", "twice") else None
    try:
        for number, crash in enumerate(crashes if answered is None else crashes[:-1]):
            code = in_child(partial(_cut_off, place, way, crash, f"attempt{number}"))
            if code != STRUCK:
                return Course(way, (*befallen, (crash, "?")), 0, (f"the run to be cut off ended with {code}",))
            befallen.append((crash, json.loads((place / f"attempt{number}.json").read_text())[0]))
        if crashes[-1].loss == "moved":
            shutil.rmtree(place / "runs")
            (place / "runs").mkdir()
        code = in_child(partial(_go_on, place, way, answered))
        if code:
            return Course(way, tuple(befallen), 0, (f"the run that goes on ended with {code}",))
        outcome, operations, problems = json.loads((place / "outcome").read_text())
        befallen += [(answered, operations[answered.number - 1])] if answered else []
        return Course(way, tuple(befallen), len(operations), (*problems, *differences(outcome, expected)))
    finally:
        shutil.rmtree(place)


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """Where two outcomes differ."""
    if found == expected:
        return []
    if isinstance(found, dict) and isinstance(expected, dict):
        names = dict.fromkeys([*expected, *found])
        return [line for n in names for line in differences(found.get(n), expected.get(n), f"{where}/{n}")]
    if isinstance(found, list) and isinstance(expected, list):
        missing, more = ([one for one in a if one not in b] for a, b in ((expected, found), (found, expected)))
        return [f"{where}: without {missing}, with {more}" if missing or more else f"{where}: another order or number"]
    return [f"{where}: {found} instead of {expected}"]


def in_child(call: Callable[[], None]) -> int:
    """How a forked process ends in which `call` is made."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        signal.alarm(LIMIT_S)
        call()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="crash-", dir=MEMORY if MEMORY.is_dir() else None))
    (place / "runs").mkdir()
    return place


def _run(place: Path, way: Way, attempt: str) -> Run | StoredRun:
    root = place / "runs"
    return StoredRun(root, attempt) if way == "MLflow" else Run(root, attempt, URL if way == "bucket" else "")


def _cut_off(place: Path, way: Way, crash: Crash, attempt: str) -> None:
    """Runs what is left in `place`/runs until the crash, and ends this process."""
    root = place / "runs"

    def end(operation: str) -> None:
        (place / f"{attempt}.json").write_text(json.dumps([operation, run.reported]))
        os._exit(STRUCK)

    def strike(disk: Disk, tear: Tear | None, number: int) -> None:
        if number != crash.number:
            return
        disk.end()
        if crash.loss == "torn" and tear:
            tear()
        if crash.loss in ("power", "contents"):
            disk.surviving(place / "left", with_names=crash.loss == "contents")
            root.rename(place / attempt)
            (place / "left").rename(root)
        end((disk.operations[number - 1 :] or ["the end"])[0])

    if way == "bucket":
        _open_bucket(place, crash.number, "killed", lambda: end(Bucket.requests[-1]))
        run = _run(place, way, attempt)
        run.to_its_end()
        return
    run = _run(place, way, attempt)
    with Disk(root, lambda disk, tear: strike(disk, tear, len(disk.operations))).watched() as disk:
        run.to_its_end()
        strike(disk, None, len(disk.operations) + 1)


def _open_bucket(place: Path, number: int = 0, kind: Kind = "fails", end: Callable[[], None] = lambda: None) -> None:
    journal_bucket.WAITS_S = (0.0,)  # type: ignore[misc]
    Bucket.open_at(place / "bucket", (number, kind), end)


def _go_on(place: Path, way: Way, fault: Crash | None = None) -> None:
    """Runs what is left in `place`/runs to its end, and then again; leaves in `outcome` what came of it."""
    if way == "bucket":
        _open_bucket(place, *((fault.number, fault.loss) if fault else ()))
    run, again = (_run(place, way, attempt) for attempt in ("last", "again"))
    earlier = [json.loads(file.read_text())[1] for file in sorted(place.glob("attempt*.json"))]
    problems = [line for reported in earlier for line in run.unrecorded(reported)]
    with Disk(place / "runs").watched() as disk:
        run.to_its_end()
    operations = [*Bucket.requests] if way == "bucket" else disk.operations
    outcome = run.outcome()
    again.to_its_end()
    problems += [f"{folder} was run once more" for folder in again.reported]
    problems += [] if again.outcome() == outcome else ["another run came to another end"]
    (place / "outcome").write_text(json.dumps([outcome, operations, problems]))
