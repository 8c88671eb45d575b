"""What an end means: settled for good, or lost with the worker, which is worth another try."""

from typing import Final

from orchestrator.journal.lines import Record
from orchestrator.scheduler.task import Task
from orchestrator.worker.work import Work, evaluation_ids

MAX_TRIES: Final = 4
"""How often a replicate is started in one run, if what ends it is no fault of its own."""

WAITS_S: Final = (0.0, 1.0, 5.0, 15.0)
"""How long it waits before each try: what has gone may need time to come back."""


def is_settled(final: Record, work: Work) -> bool:
    """Whether running it once more would end the same way: complete, or failed by a fault of this very code.

    What failed in an evaluation that the sweep has dropped, or for the user's own mistake, would not.
    """
    is_same_code = final.get("code_version", work.code_version) == work.code_version
    is_wanted = final.get("evaluation", "") in ("", *evaluation_ids(work.loaded(), work.typed_config()))
    is_own_fault = is_same_code and is_wanted and not final.get("is_lost") and not final.get("is_input_error")
    return bool(final["state"] == "complete" or (final["state"] == "failed" and is_own_fault))


def is_lost(final: Record, work: Work) -> bool:
    """Whether it ended without having come to anything, by nothing that it did itself."""
    return final["state"] == "failed" and not is_settled(final, work)


def unwritten(task: Task, lost: str) -> Record:
    """The end of a task whose journal does not say it: a failure that it could only report, or its loss.

    A report that it is complete is not believed: without a journal its numbers are nowhere.
    """
    if task.last.get("attempt") == task.work.attempt:
        if task.last["state"] == "failed":
            return task.last
        lost = lost or f"it reported to be complete, but its journal is not in {task.work.folder}"
    with task.ending:
        error = task.lost_because or lost or "ended without a result"
    return {"state": "failed", "error": error, "is_lost": True, "traceback": task.summary.peer_traceback}
