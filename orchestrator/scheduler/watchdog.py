"""Looks after a running scheduler from a thread of its own: ends what hangs, and stops the driver at its limit."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.folder import HUNG_FILE
from orchestrator.journal.lines import Record
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
"""After so long without a place it is said, once, that work waits for one."""

ASK_S: Final = 10.0
"""How often a journal behind a URL is asked for, of work that has not said that it has started."""

JOIN_S: Final = 5.0
"""How long the driver's end waits for a look that a bucket which is away may hold up."""

End = Callable[[Record], str | None]
"""Ends the process that wrote a `started` record, wherever it is, and returns what it said of where it hangs."""


class Watchdog:
    """A context manager around the running of `scheduler`.

    Args:
        end: None where work runs in the driver's own process, which nobody but its user may end.
        max_device_s: what this driver's tasks may use of devices, in device seconds.
        tell: told of work for which the cluster finds no place.
        room: what the cluster has, in words; empty while it is away, for then that is the cause.
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
        self._told: set[str] = set()
        self._busy_s = time.monotonic()
        self._asked_s: dict[str, float] = {}
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
            if self._scheduler.device_s() >= self._max_device_s:
                self._scheduler.stopping.stop(f"Stopped at the limit of {self._max_device_s / 3600:g} device hours.")
                return
            for task in list(self._scheduler.tasks.live.values()):
                with contextlib.suppress(OSError, InputError):  # a journal that cannot be read now
                    if self._look_at(task):
                        break  # the driver may have waited for that, and heard nobody meanwhile
            self._say_too_large()

    def _look_at(self, task: Task) -> bool:
        """Ends it where it has been silent for too long, and says whether it did.

        Where that brings nothing, whatever drives its workers is ended too after as long, for it may be what hangs.
        """
        limit_s = task.work.resources.report_timeout_s
        if not task.running_s and self._may_ask(task.work):
            self._scheduler.hear(task)
        if self._closed.is_set():
            return False
        if not task.running_s:
            self._say_unplaced(task)
        if self._end is None or not task.running_s or time.monotonic() - task.heard_s < limit_s:
            return False
        self._is_ending = True
        try:
            with task.ending:
                if task.state == "live" and time.monotonic() - task.heard_s >= limit_s:  # else it ended by itself
                    self._end_silent(task, self._end, limit_s)
        finally:
            self._is_ending = False
        return True

    def _end_silent(self, task: Task, end: End, limit_s: float) -> None:
        was_ended = bool(task.lost_because)
        task.lost_because = f"it reported nothing for {limit_s:g} s, so Ponderay ended its process"
        said = end(task.started)
        if was_ended and task.driving and not self._closed.is_set():
            end(task.driving)
        task.lost_because += where_it_hung(said or _read(task.work.folder / HUNG_FILE))
        task.heard_s = time.monotonic()

    def _say_unplaced(self, task: Task) -> None:
        """Others may have taken the place that it should have. What waits for its turn in its own sweep is well."""
        if self._scheduler.is_early(task):
            task.heard_s = time.monotonic()
        waited_s = time.monotonic() - task.heard_s
        if waited_s >= PLACE_S:
            self._say_of(task.work, f"has waited for resources for {waited_s / 60:.0f} min")

    def _say_too_large(self) -> None:
        """Where nothing has run for long, because machines were lost that what is left needs."""
        if self._scheduler.tasks.live:
            self._busy_s = time.monotonic()
        elif time.monotonic() - self._busy_s >= PLACE_S and (task := self._scheduler.too_large()):
            needs = task.work.resources
            self._say_of(task.work, f"waits for {needs.min_cpus} CPUs and {needs.min_gpus:g} GPUs")

    def _say_of(self, work: Work, what: str) -> None:
        """Once, and not while the cluster is away."""
        if work.attempt + work.key not in self._told and (room := self._room()):
            self._told.add(work.attempt + work.key)
            self._tell(f"{work.label} {what}; {room}.")

    def _may_ask(self, work: Work) -> bool:
        """Whether its journal may be looked at again: requests to a bucket cost."""
        now, this = time.monotonic(), work.attempt + work.key
        if work.shared and now - self._asked_s.get(this, -ASK_S) < ASK_S:
            return False
        self._asked_s[this] = now
        return True


def where_it_hung(said: str) -> str:
    """The innermost line of the thread that was at work, as far as the process could still say it."""
    lines = [line.strip() for line in said.splitlines() if line.startswith("  File")]
    begun = [line.partition(RUNS_WORK)[0] for line in lines if RUNS_WORK in line]
    ours = (f'File "{OURS}/', 'File "<string>"', *(f"{line}/orchestrator/" for line in begun))
    frames = [line for line in lines if not line.startswith(ours)]
    own = [frame for frame in frames if "site-packages" not in frame and "/lib/python" not in frame]
    return f" ({(own or frames)[0]})" if frames else ""


def end_process(started: Record) -> str:
    """Asks a process of this machine where it hangs, and kills it, unless it has ended and another has its number.

    Returns:
        What it said.
    """
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
