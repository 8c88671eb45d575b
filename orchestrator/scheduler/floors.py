"""Prerequisites that are complete, such as predictors by which others route, beside their floors."""

from orchestrator.journal.summary import summarise
from orchestrator.results.floors import BesideFloor, beside_floors, floors_of
from orchestrator.scheduler.task import folder_of
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.trainable import load
from search_spaces.sweep import Condition


def of_prerequisites(factory: TaskFactory) -> list[BesideFloor]:
    """Each complete prerequisite of the sweep, by its best value of each metric; none where none has a floor.

    Raises:
        InputError: if the data that they are named by cannot be read.
    """
    sweep = factory.sweep
    floors = {needed.name: floors_of(load(needed.trainable).metrics) for needed in sweep.prerequisites}
    if not any(floors.values()):
        return []
    tasks = {
        task.work.key: (name, task)
        for condition in sweep.conditions or (Condition("base"),)
        for seed in sweep.seeds
        for name, task in factory.prerequisites(condition, seed).items()
    }
    beside: list[BesideFloor] = []
    for name, task in tasks.values():
        records = folder_of(task).records()
        if summarise(records).is_complete(frozenset()):
            best: dict[str, float] = {}
            for record in records:
                if record["kind"] == "metrics":  # a test of it would say the same again
                    for metric, value in record["metrics"].items():
                        best[metric] = min(value, best.get(metric, value))
            beside += beside_floors(task.work.label, best, floors[name])
    return beside
