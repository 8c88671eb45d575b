"""Looks after a running scheduler in its own thread: ends what hangs or is pruned, stops the driver at its limit."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.folder import HUNG_FILE, PRUNED_FILE
from orchestrator.journal.lines import Record
from orchestrator.machine.durable_files import open_itself
from orchestrator.machine.processes import start_time
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.task import Task
from orchestrator.worker.work import Work
from trainables.errors import InputError

OURS: Final = Path(__file__).parents[1]
RUNS_WORK: Final = "/orchestrator/worker/execute.py"
"""Is in the traceback of every worker; on another machine the package may lie in another folder."""

LOOK_S: Final = 0.5
PLACE_S: Final = 300.0
"""After so long without a place the user is told, once, that work waits for it."""

ASK_S: Final = 10.0
"""How often a journal behind a URL is read while its work has not reported its start."""

JOIN_S: Final = 5.0
"""How long the driver's end waits for a look that a bucket which is away may hold up."""

End = Callable[[Record], str | None]
"""Ends the process that wrote a `started` record, wherever it is, and returns the stacks that it wrote before."""


class Watchdog:
    """A context manager around the running of `scheduler`.

    Args:
        end: None: nothing is ended.
        max_device_s: what this driver's tasks may use of devices, in device seconds.
        tell: told of work for which the cluster finds no place.
        room: what the cluster has, in words; empty while it is away.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        end: End | None,
        max_device_s: float,
        tell: Callable[[str], None],
        room: Callable[[], str],
    ) -> None:
        self._scheduler, self._end, self._max_device_s = scheduler, end, max_device_s
        self._tell, self._room = tell, room
        self._announced: set[str] = set()
        self._busy_s = time.monotonic()
        self._read_s: dict[str, float] = {}
        self._closed = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed.set()
        self._thread.join(JOIN_S)
        if self._is_ending:  # takes a time that is limited, and needs the cluster
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            scheduler = self._scheduler
            if scheduler.device_s() >= self._max_device_s:
                scheduler.stopping.stop(f"Stopped at the limit of {self._max_device_s / 3600:g} device hours.")
                return
            for task in list(scheduler.tasks.live.values()):
                with contextlib.suppress(OSError, InputError):  # a journal that cannot be read now
                    if self._end_if_pruned(task) or self._end_if_silent(task):
                        break  # the driver may have waited for that, and heard nobody meanwhile
            # Nothing may run because machines were lost that all that is left needs.
            if scheduler.tasks.live:
                self._busy_s = time.monotonic()
            elif time.monotonic() - self._busy_s >= PLACE_S and (too_large := scheduler.too_large()):
                needs = too_large.work.resources
                self._announce(too_large.work, f"waits for {needs.min_cpus} CPUs and {needs.min_gpus:g} GPUs")

    def _end_if_pruned(self, task: Task) -> bool:
        """Ends a task that its search has stopped, and returns whether it did; again, where it still is there later."""
        if self._end is None or self._closed.is_set() or not (task.pruned_because and task.started):
            return False
        if task.lost_because and time.monotonic() - task.heard_s < ASK_S:
            return False
        self._is_ending = True
        try:
            with task.ending:
                if task.state == "live":
                    task.lost_because, task.heard_s = task.pruned_because, time.monotonic()
                    # Ray Train starts its workers again, which then find the mark and return: what it has reserved is
                    # given back only if it comes to its own end.
                    self._end(task.started | {"pruned": task.work.attempt})
        finally:
            self._is_ending = False
        return True

    def _end_if_silent(self, task: Task) -> bool:
        """Ends a task that has been silent for too long, and returns whether it did; notes when one began to work."""
        now, limit_s = time.monotonic(), task.work.resources.report_timeout_s
        if not task.running_s:
            # A report of the start may be lost, so the journal is read too: seldom, for requests to a bucket cost.
            attempt = task.work.attempt + task.work.key
            if not task.work.shared or now - self._read_s.get(attempt, -ASK_S) >= ASK_S:
                self._read_s[attempt] = now
                self._scheduler.hear(task)
        if self._closed.is_set():
            return False
        if not task.running_s:
            # Others may have taken its place. What waits for its turn in its own sweep is well.
            if self._scheduler.is_early(task):
                task.heard_s = time.monotonic()
            waited_s = time.monotonic() - task.heard_s
            if waited_s >= PLACE_S:
                self._announce(task.work, f"has waited for resources for {waited_s / 60:.0f} min")
            return False
        if self._end is None or time.monotonic() - task.heard_s < limit_s:
            return False
        self._is_ending = True
        try:
            with task.ending:
                if task.state != "live" or time.monotonic() - task.heard_s < limit_s:
                    return True  # it ended by itself
                was_ended = bool(task.lost_because)
                task.lost_because = f"it reported nothing for {limit_s:g} s, so Ponderay ended its process"
                stack = self._end(task.started)
                # The second time the process is dead, so whatever drives the workers may be what hangs.
                if was_ended and task.driving and not self._closed.is_set():
                    self._end(task.driving)
                task.lost_because += where_it_hung(stack or _read(task.work.folder / HUNG_FILE))
                task.heard_s = time.monotonic()
        finally:
            self._is_ending = False
        return True

    def _announce(self, work: Work, what: str) -> None:
        """Says it once, and not while the cluster is away, which is the cause then."""
        if work.attempt + work.key not in self._announced and (room := self._room()):
            self._announced.add(work.attempt + work.key)
            self._tell(f"{work.label} {what}; {room}.")


def where_it_hung(stack: str) -> str:
    """The innermost line of the thread that was at work, as far as the process could still say it."""
    lines = [line.strip() for line in stack.splitlines() if line.startswith("  File")]
    begun = [line.partition(RUNS_WORK)[0] for line in lines if RUNS_WORK in line]
    ours = (f'File "{OURS}/', 'File "<string>"', *(f"{line}/orchestrator/" for line in begun))
    frames = [line for line in lines if not line.startswith(ours)]
    own = [frame for frame in frames if "site-packages" not in frame and "/lib/python" not in frame]
    return f" ({(own or frames)[0]})" if frames else ""


def end_process(started: Record) -> str:
    """Kills a process of this machine, unless it has ended and another has its number.

    Where its search has stopped the attempt `pruned`, a file beside the journal first says so to who comes after it.

    Returns:
        The stacks of its threads, which it is made to write before; empty where it writes none.
    """
    if "pruned" in started and "hung_file" in started:
        with open(Path(started["hung_file"]).with_name(PRUNED_FILE), "w", opener=open_itself) as file:
            file.write(started["pruned"])
    if start_time(started["pid"]) != started["process_started"]:
        return ""
    with contextlib.suppress(ProcessLookupError):
        os.kill(started["pid"], signal.SIGUSR1)
        for _ in range(10):  # a busy machine takes its time, also between two threads of one dump
            time.sleep(0.5)
            if "hung_file" not in started or RUNS_WORK in _read(Path(started["hung_file"])):
                break
        os.kill(started["pid"], signal.SIGKILL)
    return _read(Path(started["hung_file"])) if "hung_file" in started else ""


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
