"""The compressed copy of a study file and its curves, for readers without the runs folder: one download, not many runs.

On a server it is an artifact of the sweep's own run. Then a tag of that run says what it is a copy of, so that nobody
takes half of it, or one of an earlier driver, for the study. In a bucket it lies beside the replicates.
"""

import contextlib
import gzip
import hashlib
import json
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.curve_file import CURVE_FILE
from orchestrator.journal.study_file import STUDY_FILE, StudyContent, parse_study
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import make_folder, write_durably
from orchestrator.tracking import names
from orchestrator.tracking.pages import SWEEP_RUNS
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking
    from orchestrator.tracking.lease_holder import Holder
    from orchestrator.tracking.mlflow_runs import MlflowRuns
    from orchestrator.tracking.write_queue import WriteQueue

COPY: Final = f"{STUDY_FILE}.gz"
CURVE_COPY: Final = f"{CURVE_FILE}.gz"
"""The copy of the curve file, which needs no tag: each of its lines says of what it is."""

LEAST_S: Final = 30.0
"""So much time passes between two uploads, and SHARE times what the last one took, if that is more."""

SHARE: Final = 20.0


@dataclass(frozen=True)
class CopyTag:
    """What a copy is of.

    Attributes:
        generation, lease: of the study file.
        sha256: of the object as it is stored.
        time_ms: all that was noted by then is in it.
        until_ms: the next one is there by then, if the driver lives and something changes.
    """

    generation: int
    lease: str
    sha256: str
    time_ms: int
    until_ms: int


@dataclass(frozen=True)
class Packed:
    """A study file and its curves as they are stored; no curves where there are no new ones."""

    study: bytes
    curves: bytes
    tag: CopyTag


class StudyCopy:
    """Puts the copy of a study file when it has changed, behind the work: nothing waits for it.

    A copy that cannot be put is no fault: readers then ask others.

    Args:
        folder: of the sweep's replicates.
        lease: of this driver; no copy of a file of another one is put.
        queue: which puts it, and tries again.
        store: puts it where it belongs.
    """

    def __init__(self, folder: Path, lease: str, queue: "WriteQueue", store: Callable[[Packed], None]) -> None:
        self._folder, self._lease, self._queue, self._store = folder, lease, queue, store
        self._needed = (f'"lease": "{lease}"'.encode(), b'"kind": "replicate"')
        self._wait_s, self._next_s = LEAST_S, time.monotonic()
        self._is_waiting = False
        self._num_curve_bytes = 0

    def changed(self) -> None:
        """Has the copy put as soon as the next one is due."""
        if not self._is_waiting:
            self._is_waiting = True
            self._put_when_due()

    def put_now(self) -> None:
        """Has the copy put behind all that waits in the queue."""
        with contextlib.suppress(Exception):  # of an earlier write, which whoever waits for the queue hears
            self._queue.put("copy", self._put)

    def _put_when_due(self) -> None:
        left_s = self._next_s - time.monotonic()
        if left_s > 0:
            timer = threading.Timer(left_s, self._put_when_due)
            timer.daemon = True
            timer.start()
        else:
            self.put_now()

    def _put(self) -> None:
        self._is_waiting = False  # what is noted from now on needs another copy
        began_s, time_ms = time.monotonic(), now_ms()
        self._next_s = began_s + self._wait_s
        try:
            content = (self._folder / STUDY_FILE).read_bytes()
            if not all(part in content for part in self._needed):  # nothing yet, or it is not written any more
                return
            generation = json.loads(content.partition(b"\n")[0])["generation"]
            file = self._folder / CURVE_FILE
            curves = file.read_bytes() if file.is_file() and file.stat().st_size != self._num_curve_bytes else b""
        except (OSError, ValueError, KeyError):  # of this machine: the queue must not take it for the server's
            return
        study = gzip.compress(content, 6, mtime=0)
        sha256, until_ms = hashlib.sha256(study).hexdigest(), time_ms + round(2000 * self._wait_s)
        tag = CopyTag(generation, self._lease, sha256, time_ms, until_ms)
        self._store(Packed(study, gzip.compress(curves, 6, mtime=0) if curves else b"", tag))
        self._num_curve_bytes = len(curves) or self._num_curve_bytes
        ended_s = time.monotonic()
        self._wait_s = max(LEAST_S, SHARE * (ended_s - began_s))
        self._next_s = ended_s + self._wait_s


def store_on_server(tracking: "Tracking", sweep: str, packed: Packed) -> None:
    """Puts a copy among the files of the sweep's own run, and then the tag that says what it is."""
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / COPY).write_bytes(packed.study)
            if packed.curves:
                (folder / CURVE_COPY).write_bytes(packed.curves)
        except OSError:  # as above
            return
        tracking.store_copy(sweep, folder, {names.STUDY: json.dumps(asdict(packed.tag))})


def store_in_bucket(url: str, packed: Packed) -> None:
    """Puts a copy into the shared folder of the sweep's replicates, where each file is whole or not there."""
    folder = SharedFolder(url, is_patient=False)
    if packed.curves:
        folder.write(CURVE_COPY, packed.curves)
    folder.write(COPY, packed.study)


def read_bucket(url: str) -> StudyContent | None:
    """The content of the copy in a bucket; None where there is none, or the bucket does not answer."""
    try:
        return parse_study(gzip.decompress(SharedFolder(url, is_patient=False).read(COPY)))
    except (OSError, EOFError, zlib.error, InputError):
        return None


def bring_from_bucket(url: str, folder: Path) -> None:
    """Puts study file and curves from a bucket into a folder of replicates that has no study file."""
    if (folder / STUDY_FILE).exists():
        return
    with contextlib.suppress(OSError, EOFError, zlib.error, InputError):
        shared = SharedFolder(url, is_patient=False)
        make_folder(folder)
        for copy, name in ((CURVE_COPY, CURVE_FILE), (COPY, STUDY_FILE)):
            if packed := shared.read(copy):
                write_durably(folder / name, gzip.decompress(packed))


def read_copy(runs: "MlflowRuns", holder: "Holder | None") -> StudyContent | None:
    """The content of the copy of the last driver's study file; None where there is none, or MLflow's runs say more."""
    found = runs.client.search_runs([runs.experiment_id], SWEEP_RUNS, max_results=1)
    tag = _read_tag(found[0].data.tags.get(names.STUDY, "")) if found else None
    if tag is None or holder is None or tag.lease != holder.token:
        return None
    last_ms = runs.last_update_ms()
    if last_ms > (tag.time_ms if holder.is_gone or holder.is_silent else tag.until_ms):
        return None
    try:
        content = runs.read(found[0].info.run_id, f"{names.STUDY_FOLDER}/{COPY}")
        return parse_study(gzip.decompress(content)) if hashlib.sha256(content).hexdigest() == tag.sha256 else None
    except (OSError, EOFError):
        return None


def _read_tag(text: str) -> CopyTag | None:
    try:
        return CopyTag(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
