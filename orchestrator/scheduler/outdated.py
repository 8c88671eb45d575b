"""Results of other code, or of other settings under the same name, that make room for those of the sweep as it is."""

import shlex
from collections.abc import Collection
from pathlib import Path

from orchestrator.console.errors import RefusedError
from orchestrator.journal.study_file import read_study_file
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.earlier_results import EarlierResults, under_recorded_names
from orchestrator.scheduler.put_away import remove
from orchestrator.scheduler.task import folder_of
from orchestrator.scheduler.task_factory import TaskFactory, draws_data
from orchestrator.tracking.load import load_if_run
from search_spaces.sweep import Condition


def make_room(factory: TaskFactory, accept_code: bool, seeds: Collection[int] = ()) -> tuple[Path, int] | None:
    """Moves the sweep's outdated replicates into an archive; its file, and how many there were. None without any.

    What is of the sweep as it is stays, so that the same command goes on with it after a stop. A search is drawn from
    its first condition again where anything in it is outdated: what it learnt is of the old code.

    Args:
        seeds: of the replicates that may move; default: all that are recorded, also those that the sweep lacks now.

    Raises:
        RefusedError: if others of the study stay that are of the same old data; or if they, or prerequisites, all of
            which stay, are of other code too, and that is not accepted.
    """
    study = load_if_run(factory.sweep.name, factory.settings)
    if study is None:
        return None
    factory = under_recorded_names(factory, study)
    outdated = [one for one in _outdated(factory, study) if not seeds or one.seed in seeds]
    if not outdated:
        return None
    gone = {(one.condition, one.seed) for one in outdated}
    old_data = {one.data_fingerprint for one in outdated} - {""}
    stays = Study(study.sweep, tuple(one for one in study.replicates if (one.condition, one.seed) not in gone))
    content = read_study_file(factory.settings.replicates(study.sweep))
    earlier = EarlierResults(stays, factory, accept_code, code=content.code if content else {})
    for condition in factory.sweep.conditions:
        seed = factory.sweep.seeds[0]
        task = factory.replicate(condition, seed, factory.prerequisites(condition, seed))
        old_data.discard(task.fingerprint)
        complete = [one for one in stays.replicates if one.state == "complete"]
        of_code = [one for one in complete if one.code_version not in ("", task.work.code_version)]
        of_data = [one for one in complete if one.data_fingerprint in old_data and one.condition != condition.name]
        if left := of_data or ([] if accept_code else of_code):
            chosen = " ".join(f"--condition {shlex.quote(one.name)}" for one in factory.sweep.conditions)
            chosen += "".join(f" --seed {seed}" for seed in seeds)
            wider = f"type `ponderay run {study.sweep} --again`" if seeds else "drop --condition"
            more = f" and {len(left) - 1:,} more" if len(left) > 1 else ""
            files = earlier.changed_files(left[0].code_version, task)
            of_what, accept = ("data", "") if of_data else (f"code{files}", ", or add --accept-code")
            raise RefusedError(
                f"--again {chosen} would leave {left[0].condition} seed {left[0].seed}{more} of other {of_what}: "
                f"{wider}{accept}. `ponderay rm` moves away what the sweep lacks."
            )
        earlier.check(task, JournalSummary())
        # They stay, so what is refused because of them is refused before anything moves.
        own = [one for seed in factory.sweep.seeds for one in factory.prerequisites(condition, seed).values()]
        for one in {one.work.key: one for one in own}.values():
            earlier.check(one, summarise(folder_of(one).records()))
    return remove(study.sweep, factory.settings, lambda one: (one.condition, one.seed) in gone)


def _outdated(factory: TaskFactory, study: Study) -> list[Replicate]:
    """The replicates of the factory's conditions that were trained by other code, or under another config or corpus."""
    sweep, by_name = factory.sweep, {condition.name: condition for condition in factory.sweep.conditions}
    if sweep.search:
        from orchestrator.scheduler.search_store import drawn_conditions, identity_of  # loads Optuna

        now = factory.replicate(Condition("base"), sweep.seeds[0], {})
        is_of_other_code = any(one.code_version not in ("", now.work.code_version) for one in study.replicates)
        data = {one.data_fingerprint for one in study.replicates} - {""}
        is_of_other_data = bool(data) and now.fingerprint not in data and not draws_data(sweep)
        if is_of_other_code or is_of_other_data:
            return list(study.replicates)
        fingerprint = factory.fingerprint(sweep.trainable, sweep.base)
        identity = identity_of(sweep, fingerprint, factory.first_evaluation(Condition("base")))
        by_name = drawn_conditions(sweep, factory.settings, identity)
    found = []
    for one in study.replicates:
        if one.condition not in by_name:
            continue
        condition = by_name[one.condition]
        task = factory.replicate(condition, one.seed, factory.prerequisites(condition, one.seed))
        journal = summarise(folder_of(task).records()) if one.key == task.work.key else JournalSummary()
        versions = {*journal.versions, one.code_version if one.state != "failed" else ""}
        if one.key != task.work.key or versions - {"", task.work.code_version}:
            found.append(one)
    return list(study.replicates) if sweep.search and found else found
