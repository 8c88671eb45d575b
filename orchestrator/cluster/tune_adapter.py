"""Ray Tune carries out what a scheduler hands to it, through a searcher."""

import json
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray import tune
from ray.exceptions import RayError
from ray.tune import Callback, TuneError
from ray.tune.experiment import Trial
from ray.tune.search import Searcher

from orchestrator.cluster.cluster_watch import ClusterWatch
from orchestrator.cluster.session import give_back, keep_coordinator_here, removing_leftovers
from orchestrator.cluster.trial import run_trial, trial_resources
from orchestrator.machine.process_lock import Lease
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.stop_request import StoppedError
from search_spaces.redaction import redacted_text


def run_by_tune(scheduler: Scheduler, runs: Path, watch: ClusterWatch) -> None:
    """Does all of `scheduler` on the cluster that this process is connected to, and that `watch` looks after.

    Tune's own records, below the folder `runs`, are thrown away afterwards: the journals say more, and survive more.

    Raises:
        StoppedError: if Ray's own files cannot be written or found, or Ray ends by a fault of its own.
    """
    if any(task.work.resources.min_workers < task.work.resources.num_workers for task in scheduler.tasks):
        keep_coordinator_here()
    searcher = SchedulerSearcher(scheduler, watch.is_gone)
    with (
        telling_what_stops_it(),
        _folder_of_tune(runs) as folder,
        searcher.raising_its_fault(),
        removing_leftovers(watch.is_answering),
    ):
        tune.Tuner(
            tune.with_resources(run_trial, trial_resources),
            tune_config=tune.TuneConfig(search_alg=searcher, num_samples=-1, reuse_actors=True),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=folder,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=0),
                callbacks=[LostTrials(searcher)],
            ),
        ).fit()


@contextmanager
def _folder_of_tune(runs: Path) -> Iterator[str]:
    """A folder below `runs`, which beside a tracking server nobody may have made yet; those of killed drivers go.

    It has its name only once its lease is held, so that no other driver takes it for left.
    """
    runs.mkdir(parents=True, exist_ok=True)
    for left in runs.glob("tune-*/in_use"):
        lease = Lease(left)
        is_of_here = lease.holder().endswith(f" on {socket.gethostname()}")  # of another machine a lock may not be seen
        if is_of_here and lease.acquire():
            shutil.rmtree(left.parent, ignore_errors=True)
            lease.release()
    made = Path(tempfile.mkdtemp(prefix="new-tune-", dir=runs))
    lease = Lease(made / "in_use")
    lease.acquire()
    folder = made.rename(runs / made.name.removeprefix("new-"))
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lease.release()


@contextmanager
def telling_what_stops_it() -> Iterator[None]:
    """Makes a StoppedError, one sentence, of what ends Tune itself instead of a trial."""
    try:
        yield
    except (OSError, RayError, TuneError) as error:
        raise StoppedError(f"The sweep cannot go on here: {cause_of(str(error)).rstrip('.')}.") from error


class SchedulerSearcher(Searcher):
    """Hands a scheduler's work to Ray Tune and its results back; judges nothing itself.

    Method and argument names are Ray's. Nothing is saved for Ray's restore: the scheduler reads the journals.

    Args:
        is_gone: whether the cluster itself is lost: then the loss of a trial is not its own.
    """

    def __init__(self, scheduler: Scheduler | None, is_gone: Callable[[], bool]) -> None:
        super().__init__()
        self._live_scheduler, self._is_gone = scheduler, is_gone
        self._keys: dict[str, str] = {}
        self._heard: dict[str, int] = {}
        self._reserved: dict[str, str] = {}
        self._lost: set[str] = set()
        self._fault: Exception | None = None

    @property
    def _scheduler(self) -> Scheduler:
        if self._live_scheduler is None:
            raise RuntimeError("A pickled searcher has no scheduler; run the sweep again instead of restoring it.")
        return self._live_scheduler

    def suggest(self, trial_id: str) -> dict[str, str] | str | None:  # type: ignore[override]
        """The next work as JSON, None while it has to wait, FINISHED when nothing is left."""
        with self._keeping_faults():
            for lost in list(self._lost):
                self.end_lost(lost)
            work = self._scheduler.next()
            if work is not None:
                self._keys[trial_id] = work.key
                return {"work": work.model_dump_json()}
            if not self._scheduler.is_finished() and not self._scheduler.stopping.reason:
                return None
        return str(Searcher.FINISHED)

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Records on their way."""
        self._heard[trial_id] = result.get("training_iteration", 0)
        if "reserved" in result:
            self._reserved[trial_id] = result["reserved"]
        with self._keeping_faults():
            for record in json.loads(result.get("records", "[]")):
                self._scheduler.reported(self._keys[trial_id], record)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The end of a trial, its last record with it, which Tune may have passed on before."""
        if trial_id not in self._keys:
            return
        heard = self._heard.pop(trial_id, 0)
        if result and result.get("training_iteration", 0) != heard:
            self.on_trial_result(trial_id, result)
        if error:
            self._lost.add(trial_id)  # Ray tells why right after, in a callback
            return
        self._reserved.pop(trial_id, None)
        lost = (result or {}).get("lost", "")
        with self._keeping_faults():
            self._scheduler.ended(self._keys.pop(trial_id), lost=f"its worker was lost: {lost}" if lost else "")

    def end_lost(self, trial_id: str, cause: str = "") -> None:
        """The end of a trial that could not say it itself, because of `cause`."""
        if trial_id in self._lost:
            self._lost.discard(trial_id)
            if self._is_gone():  # whoever looks after the cluster ends all of its work
                return
            with self._keeping_faults():
                if group := self._reserved.pop(trial_id, ""):  # a trial that was killed did not
                    give_back([group])
                self._scheduler.ended(self._keys.pop(trial_id), lost=f"its worker was lost{': ' * bool(cause)}{cause}")

    @contextmanager
    def _keeping_faults(self) -> Iterator[None]:
        """Tune logs what is raised in here and goes on; so the first fault is kept, and the driver stopped."""
        try:
            yield
        except Exception as error:
            if self._fault is None:
                self._fault = error
                self._scheduler.stopping.stop(str(error))

    @contextmanager
    def raising_its_fault(self) -> Iterator[None]:
        """Raises, however the block ends, what was the matter within it."""
        try:
            yield
        finally:
            if self._fault:
                self._scheduler.stopping.reason = ""
                raise self._fault

    def __reduce__(self) -> tuple[type, tuple[None, type[bool]]]:
        """A Tuner pickles its searcher for a restore that is never made; the scheduler's live handles stay here."""
        return SchedulerSearcher, (None, bool)

    def save(self, checkpoint_path: str) -> None:
        """Nothing to save."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to restore."""

    def get_state(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def save_to_dir(self, checkpoint_dir: str, session_str: str = "default") -> None:
        """Nothing to save."""


class LostTrials(Callback):
    """Hears from Ray why a trial was lost, and passes it on."""

    def __init__(self, searcher: SchedulerSearcher) -> None:
        self._searcher = searcher

    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """Ray calls it after the searcher has heard that the trial is over."""
        self._searcher.end_lost(trial.trial_id, cause_of(str(trial.get_error() or "")))


def cause_of(error: str) -> str:
    """The line of what Ray writes about a lost worker that says most: its exit, else an exception's last line.

    Without secrets: it is shown and recorded.
    """
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    telling = [line for line in lines if "memory" in line.lower() or "exit detail" in line or "is dead because" in line]
    return redacted_text((telling or lines[-1:] or [""])[0])[:300]
