"""Looks after a running plan from a thread of its own: ends what hangs, and stops the driver at its limit."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from orchestrator.draft import Task
from orchestrator.plan import Plan
from orchestrator.processes import start_time
from orchestrator.storage import HUNG_FILE, Record

LOOK_S: Final = 0.5

End = Callable[[Record], None]
"""Ends the process that wrote a `started` record, wherever it is, after it was asked where it hangs."""


class Watch:
    """A context manager around the running of `plan`.

    Args:
        end: None where work runs in the driver's own process, which nobody but its user may end.
        max_device_s: what this driver's tasks may use of devices, in device seconds.
    """

    def __init__(self, plan: Plan, end: End | None, max_device_s: float) -> None:
        self._plan, self._end, self._max_device_s = plan, end, max_device_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            if self._plan.device_s() >= self._max_device_s:
                self._plan.stopping.stop(f"Stopped at the limit of {self._max_device_s / 3600:g} device hours.")
                return
            for task in list(self._plan.tasks.live.values()):
                with contextlib.suppress(OSError):  # a journal that cannot be read now
                    self._look_at(task)

    def _look_at(self, task: Task) -> None:
        """Ends it where it has been silent for too long.

        Where that brings nothing, whatever drives its workers is ended too after as long, for it may be what hangs.
        """
        limit_s = task.work.resources.report_timeout_s
        if not task.running_s:
            self._plan.hear(task)
        if self._end is None or not task.running_s or time.monotonic() - task.heard_s < limit_s:
            return
        was_ended = bool(task.lost_because)
        task.lost_because = f"it reported nothing for {limit_s:g} s, so its process was ended"
        self._end(task.started)
        if was_ended and task.driving:
            self._end(task.driving)
        task.lost_because += where_it_hung(task)
        task.heard_s = time.monotonic()


def where_it_hung(task: Task) -> str:
    """The innermost line of the thread that was at work, as far as the process could still say it."""
    file = task.work.folder / HUNG_FILE
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    frames = [line.strip() for line in lines if line.startswith("  File") and "/orchestrator/" not in line]
    own = [frame for frame in frames if "site-packages" not in frame and "/lib/python" not in frame]
    return f" ({(own or frames)[0]})" if frames else ""


def end_process(started: Record) -> None:
    """Asks a process of this machine where it hangs, and kills it, unless it has ended and another has its number."""
    if start_time(started["pid"]) != started["process_started"]:
        return
    try:
        os.kill(started["pid"], signal.SIGUSR1)
        time.sleep(0.5)
        os.kill(started["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return
