"""A scheduler in this process, one piece of work after another, without Ray."""

import time
from typing import Final

from orchestrator.journal.folder import Record
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.worker.execute import execute

POLL_S: Final = 0.2


def run_here(scheduler: Scheduler) -> None:
    """Does all of `scheduler`; waits for a prerequisite that another driver is making."""
    while not scheduler.is_finished() and not scheduler.stopping.reason:
        work = scheduler.next()
        if work is None:
            time.sleep(POLL_S)
            continue

        def send(record: Record, key: str = work.key) -> None:
            scheduler.reported(key, record)

        execute(work, send)
        scheduler.ended(work.key)
