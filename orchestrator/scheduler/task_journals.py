"""What the journals of tasks say."""

from collections.abc import Iterator, Sequence

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import Record, ReplicateFolder, looked_at
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.scheduler.task_factory import Task


def folder_of(task: Task) -> ReplicateFolder:
    """Where its journal is."""
    return ReplicateFolder(task.work.folder, {}, task.work.shared)


def folder_of_replicate(settings: Settings, sweep: str, key: str) -> ReplicateFolder:
    """The same of a replicate that may be no task of this driver."""
    path = settings.replicates(sweep) / key
    return ReplicateFolder(path, {}, settings.shared(path))


def journals(tasks: Sequence[Task]) -> Iterator[tuple[Task, JournalSummary]]:
    """Each task with what its journal says now."""
    folders = looked_at([folder_of(task) for task in tasks])
    return ((task, summarise(folder.records())) for task, folder in zip(tasks, folders, strict=True))


def has_products(task: Task, final: Record) -> bool:
    """Whether what a complete prerequisite made is still there, undamaged."""
    products, folder = final.get("products", {}).values(), folder_of(task)
    return final["state"] != "complete" or all(folder.product(name) for name in products)


def unwritten(task: Task, lost: str) -> Record:
    """How a task ended whose journal does not say it: a failure that it could only report, or lost.

    What it says to have completed would be numbers that nobody has.
    """
    if task.last.get("attempt") == task.work.attempt:
        if task.last["state"] == "failed":
            return task.last
        lost = lost or f"it reported to be complete, but its journal is not in {task.work.folder}"
    return {"state": "failed", "error": task.lost_because or lost or "ended without a result", "is_lost": True}
