"""A plan in this process, one piece of work after another, without Ray."""

import time
from typing import Final

from orchestrator.journal.folder import Record
from orchestrator.scheduler.scheduler import Plan
from orchestrator.worker.execute import execute

POLL_S: Final = 0.2


def run_here(plan: Plan) -> None:
    """Does all of `plan`; waits for a prerequisite that another driver is making."""
    while not plan.is_finished() and not plan.stopping.reason:
        work = plan.next()
        if work is None:
            time.sleep(POLL_S)
            continue

        def send(record: Record, key: str = work.key) -> None:
            plan.reported(key, record)

        execute(work, send)
        plan.ended(work.key)
