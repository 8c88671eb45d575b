"""A sweep from declaration to study: takes its lease, and runs what is left, on Ray or in this process."""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.console import Console

from orchestrator.console.errors import RefusedError
from orchestrator.journal.bucket import UnavailableError
from orchestrator.results.outcome import Outcome
from orchestrator.results.study import Study
from orchestrator.scheduler.admission import Admission
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.condition_end import ConditionEnds
from orchestrator.scheduler.conditions import ConditionSource, ListedConditions, Replication
from orchestrator.scheduler.intake import Intake
from orchestrator.scheduler.outage import Outage
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.recorded_names import under_recorded_names
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.retry import TaskRuns
from orchestrator.scheduler.scheduler import Scheduler, StartQueue
from orchestrator.scheduler.stop_request import StoppedError, Stopping, stop_on_sigterm
from orchestrator.scheduler.task import TaskList
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.scheduler.watchdog import Watchdog
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.damage import is_damage
from orchestrator.tracking.lease import LeaseKeeper
from orchestrator.tracking.store import reason_of, unusable
from orchestrator.tracking.write_queue import WriteQueue
from orchestrator.worker.template import Template
from search_spaces.redaction import redacted_text, redacted_uri
from search_spaces.sweep import Condition
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.cluster.cluster_watch import ClusterWatch

WRITE_AT_END_S: Final = 600.0
"""How long a finished sweep waits for a tracking store that is away."""

WRITE_AT_STOP_S: Final = 20.0
POLL_S: Final = 0.2


def run_on_ray(
    factory: TaskFactory,
    console: Console,
    num_cpus: int | None,
    accept_code: bool,
    max_device_hours: float = math.inf,
    is_verbose: bool = False,
    retry: Collection[str] = (),
) -> Outcome:
    """Runs what is left of the factory's sweep on the cluster at RAY_ADDRESS, or on one made on this machine for it.

    Args:
        num_cpus: of the cluster made here; default: this machine's.
        max_device_hours: stop when the replicates have held devices (GPUs, or CPUs where they use none) for so long.
        is_verbose: let Ray say what it has to say.
        retry: conditions whose failed replicates are tried again, whatever they failed by.

    Raises:
        RefusedError: if another driver runs this sweep, or it must not start as it is.
        StoppedError: if it reached its limit, or another driver has taken its lease.
        KeyboardInterrupt: on Ctrl-C and SIGTERM. In all cases what is done is kept.
    """
    from orchestrator.cluster.address import refuse_unusable

    refuse_unusable()
    with _leased(factory, console) as driver:
        from orchestrator.checks.check import refuse_failed
        from orchestrator.checks.nodes import on_nodes
        from orchestrator.cluster.autoscaling import Demand, GrowingCapacity
        from orchestrator.cluster.recovery import run_through_losses
        from orchestrator.cluster.session import end_on_node, num_nodes, ray_session
        from orchestrator.cluster.tune_adapter import run_by_tune

        tell, limit_s, wait_s = driver.view.note, max_device_hours * 3600, factory.settings.cluster_wait * 60
        with ray_session(num_cpus, is_verbose) as connection:
            if num_nodes() > 1:
                refuse_failed(on_nodes(factory.settings, factory.sweep.trainable))
            capacity = GrowingCapacity(lambda: connection.capacity())
            with driver.planned(capacity, accept_code, retry) as scheduler:

                def run(watch: "ClusterWatch") -> None:
                    with (
                        Watchdog(scheduler, end_on_node, limit_s, tell, watch.room),
                        Demand(scheduler, capacity, tell, watch.is_answering),
                    ):
                        run_by_tune(scheduler, factory.settings.runs, watch)

                run_through_losses(connection, scheduler, wait_s, tell, run)
        return driver.outcome(scheduler)


def run_without_ray(
    factory: TaskFactory,
    console: Console,
    accept_code: bool,
    retry: Collection[str] = (),
    template: Template | None = None,
) -> Outcome:
    """Runs what is left of the factory's sweep in this process, where each replicate sees what others did to it.

    Args:
        template: runs the prerequisites, so that the first replicate is the first in this process.

    Raises:
        RefusedError, StoppedError, KeyboardInterrupt: as `run_on_ray`.
    """
    with _leased(factory, console) as driver:
        with driver.planned(_everything, accept_code, retry) as scheduler:
            _run_in_process(scheduler, template)
        return driver.outcome(scheduler)


def _run_in_process(scheduler: Scheduler, template: Template | None) -> None:
    """One piece of work after another; waits for a prerequisite that another driver is making."""
    from orchestrator.worker.execute import execute

    while not scheduler.is_finished() and not scheduler.stopping.reason:
        work = scheduler.next()
        if work is None:
            time.sleep(POLL_S)
            continue
        send, lost = partial(scheduler.reported, work.key), ""
        if template and scheduler.tasks[work.key].condition is None:
            lost = template.run(work, send, {})
        else:  # no fork, because a debugger, a profiler and the terminal have to reach it
            try:
                execute(work, send)
            except OSError as error:  # it could not take its folder, in which it would have said so
                lost = f"its folder could not be taken ({redacted_text(str(error))})"
        scheduler.ended(work.key, lost)


def _everything() -> Capacity:
    return Capacity(math.inf, math.inf)


@dataclass
class _Driver:
    """One that holds the lease of its sweep."""

    factory: TaskFactory
    tracking: Tracking
    keeper: LeaseKeeper
    view: ProgressView
    stopping: Stopping
    token: str
    num_unwritten: int = 0

    @contextlib.contextmanager
    def planned(
        self, capacity: Callable[[], Capacity], accept_code: bool, retry: Collection[str]
    ) -> Iterator[Scheduler]:
        """A scheduler that is recorded until the end of the block, however it ends."""
        now = capacity()
        num_gpus = (now.most or now).num_gpus
        factory = replace(self.factory, num_gpus=0 if math.isinf(num_gpus) else num_gpus)
        recorder, admission = self._recorder(factory, accept_code, retry)
        write_s = WRITE_AT_STOP_S
        try:
            factory = under_recorded_names(factory, recorder.known)
            if durations_s := _durations_s(recorder.known, factory.sweep.conditions):
                self.view.expect(statistics.fmean(durations_s))
            source = _source(factory, now.most or now, self.view.note)
            scheduler = self._scheduler(factory, recorder, admission, source, capacity)
            scheduler.extend()
            recorder.describe()
            yield scheduler
            write_s = WRITE_AT_END_S
            if self.stopping.reason:
                raise StoppedError(self.stopping.reason)
        except UnavailableError as error:
            raise StoppedError(f"{error}.") from None
        except KeyboardInterrupt:
            self.view.note("Stopping; the last records are being written.")
            if self.stopping.reason:
                raise StoppedError(self.stopping.reason) from None
            raise
        finally:
            self.num_unwritten = recorder.close(write_s) if self.stopping.may_write else recorder.give_up()

    def _scheduler(
        self,
        factory: TaskFactory,
        recorder: Recorder,
        admission: Admission,
        source: ConditionSource,
        capacity: Callable[[], Capacity],
    ) -> Scheduler:
        tasks, replication, outage = TaskList(), Replication(factory, source), Outage(self.view.note)
        conditions = ConditionEnds(factory, tasks, replication, recorder, self.view)
        runs = TaskRuns(tasks, recorder, self.view, conditions)
        intake = Intake(tasks, replication, admission, runs, conditions, capacity)
        queue = StartQueue(tasks, admission, runs, capacity, self.keeper.lease, outage, self.view.note)
        return Scheduler(tasks, intake, queue, runs, outage, self.stopping)

    def _recorder(self, factory: TaskFactory, accept_code: bool, retry: Collection[str]) -> tuple[Recorder, Admission]:
        """What writes into the store, and what was found there."""
        queue = WriteQueue(self.view.note, self.keeper.holds_all, self.keeper.beat_now)
        try:
            with _at_hand(factory.settings.tracking_uri):
                recorder = Recorder(self.tracking, factory, queue, self.token, self.stopping.lose)
                return recorder, Admission(recorder.known, factory, accept_code, retry)
        except BaseException:
            queue.close()
            raise

    def outcome(self, scheduler: Scheduler) -> Outcome:
        """What the scheduler has come to."""
        return Outcome(tuple(scheduler.replicates()), tuple(scheduler.input_errors), self.num_unwritten)


@contextlib.contextmanager
def _leased(factory: TaskFactory, console: Console) -> Iterator[_Driver]:
    name, tracking, stopping = factory.sweep.name, Tracking(factory.settings), Stopping()
    with stop_on_sigterm(), contextlib.closing(LeaseKeeper(tracking, stopping.lose)) as keeper:
        lease = keeper.lease(f"sweep {name}")
        with _at_hand(factory.settings.tracking_uri):
            is_taken = lease.acquire_or_wait()
        if not is_taken:
            raise RefusedError(f"{name} is already run by {lease.holder()}; wait for it or stop it.")
        with ProgressView(console, name) as view:
            yield _Driver(factory, tracking, keeper, view, stopping, lease.token)


@contextlib.contextmanager
def _at_hand(uri: str) -> Iterator[None]:
    """A block of calls of the store before anything has begun: that it is away is told, not waited out."""
    try:
        yield
    except Exception as error:
        if is_damage(error):
            raise InputError(unusable(uri, error)) from None
        if not is_unavailable(error):
            raise
        reason = reason_of(error, uri)
        raise InputError(f"The tracking store {redacted_uri(uri)} cannot be used: {reason}") from None


def _durations_s(known: Study, conditions: Sequence[Condition]) -> list[float]:
    """What complete replicates took: of these conditions, or where there are none, of all."""
    complete = [one for one in known.replicates if one.state == "complete" and one.duration_s > 0]
    names = {condition.name for condition in conditions}
    return [one.duration_s for one in complete if one.condition in names] or [one.duration_s for one in complete]


def _source(factory: TaskFactory, capacity: Capacity, tell: Callable[[str], None]) -> ConditionSource:
    sweep = factory.sweep
    if sweep.search is None:
        return ListedConditions(sweep.conditions)
    from orchestrator.scheduler.optuna_search import SearchedConditions

    num_places = 1 if sweep.is_pruned else len(sweep.seeds)
    max_open = max(1, _num_at_once(factory, capacity) // num_places)
    fingerprint = factory.fingerprint(sweep.trainable, sweep.base)
    evaluation = factory.first_evaluation(Condition("base"))
    settings = factory.settings
    lock = settings.runs / "optuna.lock"
    return SearchedConditions(sweep, fingerprint, evaluation, settings.search_store, lock, max_open, tell)


def _num_at_once(factory: TaskFactory, capacity: Capacity) -> int:
    """How many replicates of the base config can run together; 1 in this process."""
    resources = factory.sweep.resources.resolve(factory.num_gpus)
    by_cpus = 1 if math.isinf(capacity.num_cpus) else capacity.num_cpus // resources.num_cpus
    by_gpus = capacity.num_gpus / resources.num_gpus if resources.num_gpus else math.inf
    return int(min(by_cpus, by_gpus))
