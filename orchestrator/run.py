"""A sweep from declaration to study: checked, held by one driver, run on Ray or in this process, and written down.

MLflow, Optuna and Ray take seconds to load, so they are imported where they are first needed: a sweep that is refused,
or of which nothing is left to do, is answered without them.
"""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from rich.console import Console

from orchestrator.checks.check import Check, refuse_failed
from orchestrator.checks.sweep import before_ray, check_places, check_secrets, check_unwatched_data, read_fingerprints
from orchestrator.cluster.address import living_nodes, refuse_silent, refuse_unusable
from orchestrator.cluster.submission import command_of_job
from orchestrator.console.errors import RefusedError
from orchestrator.console.printing import err
from orchestrator.environment.settings import Settings
from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.study_file import StudyFile, read_study_file
from orchestrator.results.outcome import Outcome
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.earlier_results import (
    EarlierResults,
    check_retry,
    finished_replicates,
    under_recorded_names,
)
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.stop_request import StoppedError, Stopping, stop_on_sigterm
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.damage import is_damage
from orchestrator.tracking.lease import LeaseKeeper, Leases, ServerLeases, StoreLease
from orchestrator.tracking.lease_holder import EXPIRES_S, MIRRORED, FolderLeases, Holder
from orchestrator.tracking.store import has_store, reason_of, store_kind, store_mark, unusable
from orchestrator.tracking.write_queue import WriteQueue
from search_spaces.redaction import redacted_text, redacted_uri
from search_spaces.sweep import Sweep
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.cluster.cluster_watch import ClusterWatch
    from orchestrator.journal.lines import Record
    from orchestrator.scheduler.scheduler import Scheduler
    from orchestrator.scheduler.task import Task
    from orchestrator.tracking.client import Tracking
    from orchestrator.worker.template import Template

WRITE_AT_END_S: Final = 600.0
"""How long a finished sweep waits for a tracking store that is away."""

DRAW_AFTER_S: Final = 60.0
WRITE_AT_STOP_S: Final = 20.0
POLL_S: Final = 0.2


def run(
    sweep: Sweep,
    settings: Settings,
    console: Console,
    num_cpus: int | None = None,
    accept_code: bool = False,
    max_device_hours: float = math.inf,
    is_verbose: bool = False,
    retry: Collection[str] = (),
    is_anew: bool = False,
    again: bool = False,
) -> Outcome:
    """Runs what is left of `sweep` on the cluster at RAY_ADDRESS, or on one made on this machine for it.

    Args:
        num_cpus: of the cluster made here; default: this machine's.
        accept_code: go on beside results of another version of the trainable's code.
        max_device_hours: stop when the replicates have held devices (GPUs, or CPUs where they use none) for so long.
        is_verbose: let Ray say what it has to say.
        retry: conditions whose failed replicates are tried again, whatever they failed by.
        is_anew: train from the first step what another machine has begun and left where it cannot be reached from here.
        again: move replicates of other code or settings to an archive, and train them anew.

    Raises:
        InputError: if the sweep, its data, its settings or RAY_ADDRESS are wrong.
        RefusedError: if another driver runs this sweep, or it must not start as it is.
        StoppedError: if it reached its limit, or another driver has taken its lease.
        KeyboardInterrupt: on Ctrl-C and SIGTERM. In all cases what is done is kept.
    """
    began_s = time.monotonic()
    factory = TaskFactory(sweep, settings, num_gpus=0)
    conditions = check_retry(sweep, settings, retry)
    if complete := finished_replicates(factory, accept_code and not again):
        return Outcome(complete)
    refuse_silent()  # takes seconds; the fingerprint of a corpus, behind it, may take minutes
    _refuse(before_ray(sweep, settings, factory, again), console)
    refuse_unusable()  # of an address without a cluster `ray.init` would end the process itself
    if not console.quiet:
        err.print("Looking at what is recorded, and starting Ray ...")  # the first line; the next may be 20 s away
    if again:
        _make_room(factory, accept_code, console)
    from orchestrator.checks.nodes import on_nodes
    from orchestrator.cluster.autoscaling import Demand, GrowingCapacity
    from orchestrator.cluster.recovery import run_through_losses
    from orchestrator.cluster.session import end_on_node, ray_session
    from orchestrator.scheduler.watchdog import Watchdog

    with _leased(factory, console) as driver:
        with ray_session(num_cpus, is_verbose) as connection:
            from orchestrator.cluster.tune_adapter import run_by_tune

            if len(living_nodes()) > 1:
                refuse_failed(on_nodes(settings, sweep.trainable))
            capacity = GrowingCapacity(lambda: connection.capacity())
            with driver.scheduler(capacity, accept_code, conditions, is_anew) as scheduler:
                limit_s, note = max_device_hours * 3600, driver.view.note

                def on_this_cluster(watch: "ClusterWatch") -> None:
                    with (
                        Watchdog(scheduler, end_on_node, limit_s, note, watch.room),
                        Demand(scheduler, capacity, note, watch.is_answering),
                    ):
                        run_by_tune(scheduler, settings.runs, watch)

                run_through_losses(connection, scheduler, settings.cluster_wait * 60, note, on_this_cluster)
        outcome = driver.outcome(scheduler)
        if time.monotonic() - began_s > DRAW_AFTER_S and not outcome.num_unwritten:  # a shorter run would feel it
            from orchestrator.report.front_files import keep_front

            if lacking := keep_front(sweep, settings):
                console.print(lacking, markup=False, soft_wrap=True)
        return outcome


def run_here(
    sweep: Sweep,
    settings: Settings,
    console: Console,
    accept_code: bool = False,
    retry: Collection[str] = (),
    template: "Template | None" = None,
    is_anew: bool = False,
    again: bool = False,
) -> Outcome:
    """Runs what is left of `sweep` in this process, where each replicate sees what others did to it.

    Args:
        accept_code, retry, is_anew: as for `run`.
        template: runs the prerequisites, so that the first replicate is the first in this process.
        again: as for `run`, but other seeds of its conditions stay.

    Raises:
        InputError, RefusedError, StoppedError, KeyboardInterrupt: as `run`.
    """
    factory = TaskFactory(sweep, settings, num_gpus=0)
    conditions = check_retry(sweep, settings, retry)
    read_fingerprints(factory)
    _refuse([*check_places(settings), *check_secrets(sweep), *check_unwatched_data(sweep)], console)
    if again:
        _make_room(factory, accept_code, console, sweep.seeds)

    with _leased(factory, console) as driver:
        from orchestrator.worker.execute import execute

        with driver.scheduler(lambda: Capacity(math.inf, math.inf), accept_code, conditions, is_anew) as scheduler:
            while not scheduler.is_finished() and not scheduler.stopping.reason:
                work = scheduler.next()
                if work is None:  # another driver makes a prerequisite, or a store is away
                    time.sleep(POLL_S)
                    continue
                lost = ""
                if template and scheduler.tasks[work.key].condition is None:
                    lost = template.run(work, partial(scheduler.reported, work.key), {})
                else:  # no fork, because a debugger, a profiler and the terminal have to reach it
                    faults: list[Exception] = []
                    try:
                        execute(work, partial(_send, scheduler, scheduler.tasks[work.key], faults))
                    except OSError as error:  # it could not take its folder, in which it would have said so
                        lost = f"its folder could not be taken ({redacted_text(str(error))})"
                    except _TakenOut:
                        pass
                    if faults:
                        raise faults[0]
                scheduler.ended(work.key, lost)
        return driver.outcome(scheduler)


class _TakenOut(BaseException):
    """Takes a replicate out of its work in this process: its search has stopped it, or the driver has a fault."""


def _send(scheduler: "Scheduler", task: "Task", faults: list[Exception], record: "Record") -> None:
    """Tells the scheduler; a fault of it is kept in `faults`, for the replicate would record it as its own."""
    try:
        scheduler.reported(task.work.key, record)
    except Exception as error:
        faults.append(error)
        raise _TakenOut from error
    if task.pruned_because:
        raise _TakenOut


def _refuse(checks: Iterable[Check], console: Console) -> None:
    """Warns of what may go wrong, and raises RefusedError for what will."""
    checks = list(checks)
    for check in checks:
        if check.state == "warning":
            console.print(f"Warning: {check.line()}", markup=False, soft_wrap=True)
    refuse_failed(checks)


def _make_room(factory: TaskFactory, accept_code: bool, console: Console, seeds: Collection[int] = ()) -> None:
    """Moves outdated replicates to an archive, of these seeds or of all, and says so."""
    from orchestrator.scheduler.outdated import make_room

    if archived := make_room(factory, accept_code, seeds):
        file, number = archived
        console.print(f"Moved to {file}, to be trained anew: {number:,}.", markup=False, soft_wrap=True)


@contextlib.contextmanager
def _leased(factory: TaskFactory, console: Console) -> "Iterator[_Driver]":
    """A driver that alone may run the sweep until the end of the block.

    The lease comes before Ray: two drivers of one sweep would start two clusters, and the second for nothing. Where the
    store is an SQLite file the lease is a lock, and MLflow opens the file meanwhile; nothing waits for the tables of
    one that nobody has made yet.

    Raises:
        InputError: if the store cannot be used.
        RefusedError: if another driver has the lease.
    """
    settings, stopping, name = factory.settings, Stopping(), factory.sweep.name
    is_local, is_new = store_kind(settings.tracking_uri) == "sqlite", not has_store(settings.tracking_uri)
    say = partial(console.print, markup=False, soft_wrap=True)  # what a store says of another driver is no markup
    with stop_on_sigterm(), contextlib.ExitStack() as stack:
        opened: Callable[[], Tracking] = cache(partial(_open, settings))
        leases: Leases = FolderLeases(settings) if is_local else ServerLeases(opened(), settings)
        keeper = stack.enter_context(contextlib.closing(LeaseKeeper(leases, stopping.lose)))
        lease = keeper.lease(f"sweep {name}")
        with _must_answer(settings.tracking_uri):
            _take(name, lease, say)
        if is_local:
            opened = stack.enter_context(ThreadPoolExecutor(1)).submit(opened).result
        replicates, previous = settings.replicates(name), lease.previous
        if url := settings.shared(replicates):
            from orchestrator.tracking.study_copy import bring_from_bucket  # loads numpy

            bring_from_bucket(url, replicates)
        if is_local and not (previous or is_new) and read_study_file(replicates):  # an earlier version's
            last = _older_holder(name, opened(), say)  # before the file is touched, which would depose its driver
            previous = last.token if last else ""
        # At once: a driver that dies while Ray starts leaves a file of its own lease, which the next one goes on with.
        file = StudyFile(replicates, previous, lease.token)
        stack.callback(file.close)
        with ProgressView(console, name) as view:
            driver = _Driver(factory, opened, is_new, keeper, lease, file, view, stopping)
            yield driver
        # After the last that is written into the store.
        if is_local and stopping.may_write and not driver.num_unwritten:
            with contextlib.suppress(Exception):  # without the note the next start asks MLflow
                if (number := opened().num_finished(name)) is not None:
                    lease.note(MIRRORED, f"{store_mark(settings.tracking_uri)} {number}")


def _take(name: str, lease: StoreLease, tell: Callable[[str], None]) -> None:
    """Takes the sweep's lease, or raises RefusedError where another driver has it and is alive."""
    if lease.acquire():
        return
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + EXPIRES_S))
    tell(f"Waiting until {until} at most to see whether {lease.holder()}, which has {name}, is alive ...")
    if not lease.acquire_or_wait():
        raise RefusedError(f"{name} is already run by {lease.holder()}; wait for it or stop it.")


def _older_holder(name: str, tracking: "Tracking", tell: Callable[[str], None]) -> Holder | None:
    """Who had the sweep's lease in the store, where earlier versions kept it; None where nobody had.

    Raises:
        RefusedError: if a driver of an earlier version has it still.
    """
    holder = tracking.read_holder(name)
    if holder and not holder.is_gone:
        older = StoreLease(tracking, f"sweep {name}")
        _take(name, older, tell)
        older.release()
    return holder


def _open(settings: Settings) -> "Tracking":
    from orchestrator.tracking.client import Tracking

    return Tracking(settings)


@dataclass
class _Driver:
    """The holder of a sweep's lease, which alone writes what becomes of it."""

    factory: TaskFactory
    opened: Callable[[], "Tracking"]
    is_new: bool
    keeper: LeaseKeeper
    lease: StoreLease
    file: StudyFile
    view: ProgressView
    stopping: Stopping
    num_unwritten: int = 0

    @contextlib.contextmanager
    def scheduler(
        self, capacity: Callable[[], Capacity], accept_code: bool, retry: Collection[str], is_anew: bool
    ) -> "Iterator[Scheduler]":
        """A scheduler of what is left, whose tasks are recorded until the end of the block, however it ends."""
        from orchestrator.scheduler.conditions import source_of
        from orchestrator.scheduler.recorder import Recorder
        from orchestrator.scheduler.scheduler import Scheduler
        from orchestrator.scheduler.study_notes import StudyNotes
        from orchestrator.tracking.study_copy import StudyCopy, store_in_bucket, store_on_server

        settings, view, now = self.factory.settings, self.view, capacity()
        most = now.most or now
        factory = replace(self.factory, num_gpus=0 if math.isinf(most.num_gpus) else most.num_gpus)
        name, folder = factory.sweep.name, settings.replicates(factory.sweep.name)
        is_local = store_kind(settings.tracking_uri) == "sqlite"
        if is_local and not self.is_new:
            _older_holder(name, self.opened(), view.note)
        queue = WriteQueue(view.note, self.keeper.holds_all, lambda: self.opened().takes_writes(name))
        # A queue of its own, for each may be away without the other; that the bucket is, its workers say.
        url, of_bucket, copies = settings.shared(folder), WriteQueue(lambda _: None), []
        if not is_local:
            copies.append(StudyCopy(folder, self.lease.token, queue, partial(store_on_server, self.opened(), name)))
        if url:
            copies.append(StudyCopy(folder, self.lease.token, of_bucket, partial(store_in_bucket, url)))
        try:
            with _must_answer(settings.tracking_uri):
                notes = StudyNotes(self.file, factory, self.lease.token, view.note, self.stopping.lose, copies)
                recorder = Recorder(self.opened, factory, queue, notes, view.note, self.is_new, command_of_job())
                known = recorder.known
        except BaseException:
            queue.close()
            of_bucket.close()
            raise
        write_s = WRITE_AT_STOP_S
        try:
            factory = under_recorded_names(factory, known)
            complete = [one for one in known.replicates if one.state == "complete" and one.duration_s > 0]
            names = {condition.name for condition in factory.sweep.conditions}
            alike = [one for one in complete if one.condition in names] or complete
            if alike:
                view.expect(statistics.fmean(one.duration_s for one in alike))
            source = source_of(factory, most, view.note)
            earlier = EarlierResults(known, factory, accept_code, retry, is_anew, self.file.content.code)
            scheduler = Scheduler(source, earlier, recorder, view, capacity, self.keeper.lease, self.stopping)
            notes.note_known(known, recorder.mirrored)
            scheduler.extend()  # first, so that what is refused leaves no trace in the store
            recorder.describe()
            yield scheduler
            write_s = WRITE_AT_END_S
            if self.stopping.reason:
                raise StoppedError(self.stopping.reason)
        except UnavailableError as error:
            raise StoppedError(f"{error}.") from None
        except KeyboardInterrupt:
            view.note("Stopping; the last records are being written.")
            if self.stopping.reason:  # the signal was our own, which says why
                raise StoppedError(self.stopping.reason) from None
            raise
        finally:
            try:
                self.num_unwritten = recorder.close(write_s) if self.stopping.may_write else recorder.give_up()
                with contextlib.suppress(OSError, InputError):  # then others ask the journals there, or MLflow
                    of_bucket.drain(WRITE_AT_STOP_S if self.stopping.may_write else 0.0)
            finally:
                of_bucket.close()

    def outcome(self, scheduler: "Scheduler") -> Outcome:
        """What the sweep has come to, once its scheduler's block has ended."""
        return Outcome(tuple(scheduler.replicates()), tuple(scheduler.input_errors), self.num_unwritten)


@contextlib.contextmanager
def _must_answer(uri: str) -> Iterator[None]:
    """A block of calls of the tracking store before anything has begun: its absence is an error, and not waited out."""
    try:
        yield
    except RefusedError:  # said by a store that answers, and without MLflow
        raise
    except Exception as error:
        if is_damage(error):
            raise InputError(unusable(uri, error)) from None
        if not is_unavailable(error):
            raise
        reason = reason_of(error, uri)
        raise InputError(f"The tracking store {redacted_uri(uri)} cannot be used: {reason}") from None
