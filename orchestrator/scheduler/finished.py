"""Whether nothing of a sweep is left, from a local store and the journals alone: without MLflow and without Ray."""

from orchestrator.console.errors import RefusedError
from orchestrator.results.study import Replicate
from orchestrator.scheduler.admission import Admission, is_recorded
from orchestrator.scheduler.recorded_names import under_recorded_names
from orchestrator.scheduler.task import Task, journals
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import in_runs_folder
from orchestrator.tracking.sqlite_reader import num_unfinished


def finished_replicates(factory: TaskFactory, accept_code: bool) -> tuple[Replicate, ...]:
    """Every replicate that the factory's sweep asks for, where all are recorded complete; else none.

    None, too, where only a driver can tell: of a search or seeds by need, with a remote store, or where a run of the
    sweep has not ended well, because then something may still have to be written.

    Raises:
        InputError: if the sweep's data are missing or broken.
    """
    sweep, settings = factory.sweep, factory.settings
    if sweep.search or sweep.sequential or settings.storage:
        return ()
    if num_unfinished(settings.tracking_uri, sweep.name) != 0:  # MLflow may lack something
        return ()
    study = in_runs_folder(sweep.name, settings)
    if study is None or len(study.replicates) < sweep.num_conditions() * len(sweep.seeds):
        return ()
    factory = under_recorded_names(factory, study)
    admission, found = Admission(study, factory, accept_code), []
    for task, journal in journals(_tasks(factory)):
        try:
            admission.check(task, journal)
        except RefusedError:  # the driver says why
            return ()
        if task.condition is None:
            continue
        known = admission.by_key.get(task.work.key)
        if known is None or not is_recorded(known, journal, task):
            return ()
        if task.work.lacking(known.metrics):
            return ()
        found.append(known)
    return tuple(found)


def _tasks(factory: TaskFactory) -> list[Task]:
    """Prerequisites and replicates of every condition."""
    sweep = factory.sweep
    tasks: dict[str, Task] = {}
    for condition in sweep.conditions:
        for seed in sweep.seeds:
            needed = factory.prerequisites(condition, seed)
            replicate = factory.replicate(condition, seed, needed)
            tasks |= {task.work.key: task for task in [*needed.values(), replicate]}
    return list(tasks.values())
