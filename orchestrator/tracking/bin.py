"""The runs of replicates that were put away: in MLflow's bin, and out of it again, by its public client.

A run in the bin that a user deleted comes back as soon as a driver has something to write into it. One that was put
away has a tag that says so, and only `take_out` brings it back: a replicate that is trained anew gets
another run, so that no curve has values of both.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.results.study import Replicate
from orchestrator.tracking import names
from orchestrator.tracking.mlflow_internals import PARENT
from orchestrator.tracking.mlflow_writer import matching
from orchestrator.tracking.pages import CONDITIONS, REPLICATES, SWEEP_RUNS
from orchestrator.tracking.replicate_tags import encode

if TYPE_CHECKING:
    from mlflow.entities import Run

    from orchestrator.tracking.client import Tracking
    from orchestrator.tracking.mlflow_runs import MlflowRuns


IN_BIN: Final = f"tags.\"{names.PUT_AWAY}\" LIKE '%'"


def put_away(tracking: "Tracking", sweep: str, gone: Sequence[Replicate], left: Sequence[Replicate], mark: str) -> None:
    """Puts the runs of the replicates `gone` into the bin; of a condition that keeps some a new run tells of those.

    A condition's means have the number of seeds as their step, so in its old run fewer would never count.

    Args:
        left: replicates of the sweep that stay; where there are none, nothing of the sweep stays out of the bin.
        mark: the id of the archive.
    """
    runs = tracking.runs(sweep)
    client, experiment = runs.client, runs.experiment_id

    def throw(run: "Run") -> None:
        client.set_tag(run.info.run_id, names.PUT_AWAY, mark)
        client.delete_run(run.info.run_id)

    if not left:
        for run in list(matching(client, experiment, "")):
            if names.KIND in run.data.tags:
                throw(run)
        return
    keys = {one.key for one in gone} - {one.key for one in left}  # equal draws of a search share a run
    conditions = {one.condition for one in gone}
    for run in list(matching(client, experiment, REPLICATES)):
        if run.data.tags.get(names.KEY) in keys:
            throw(run)
    for run in list(matching(client, experiment, CONDITIONS)):
        name = run.data.tags[names.CONDITION]
        if name not in conditions:
            continue
        throw(run)
        if stays := [one for one in left if one.condition == name]:
            tags = {tag: text for tag, text in run.data.tags.items() if not tag.startswith(names.REPLICATE_PREFIX)}
            new = tracking.open_run(experiment, "condition", tags[names.KEY], name, tags)
            tracking.log(new, params=run.data.params)
            _tell_of(tracking, runs, new, stays, stays)


def take_out(tracking: "Tracking", sweep: str, back: Sequence[Replicate], every: Sequence[Replicate]) -> None:
    """Takes the runs of the replicates `back` out of the bin, with those of their conditions and the sweep's own.

    What this store never had, or lost for good, the next driver of the sweep writes into it.

    Args:
        every: replicates of the sweep, with those.
    """
    runs = tracking.runs(sweep)
    client, experiment = runs.client, runs.experiment_id
    binned = {run.info.run_id: run for run in matching(client, experiment, IN_BIN, is_deleted=True)}
    active = {run.data.tags[names.CONDITION]: run.info.run_id for run in matching(client, experiment, CONDITIONS)}

    def restore(run: "Run") -> None:
        client.restore_run(run.info.run_id)
        client.delete_tag(run.info.run_id, names.PUT_AWAY)

    by_condition: dict[str, list[Replicate]] = defaultdict(list)
    for one in back:
        by_condition[one.condition].append(one)
        if run := binned.pop(one.run_id, None):  # once, though equal draws have one run, in one of their conditions
            restore(run)
            parent = binned.get(run.data.tags.get(PARENT, ""))
            if parent and (condition := parent.data.tags[names.CONDITION]) not in active:
                restore(parent)
                active[condition] = parent.info.run_id
                for tag in parent.data.tags:
                    if tag.startswith(names.REPLICATE_PREFIX):
                        client.delete_tag(parent.info.run_id, tag)
    of_sweep = [run for run in binned.values() if run.data.tags.get(names.KIND) == "sweep"]
    if of_sweep and not any(matching(client, experiment, SWEEP_RUNS)):
        restore(max(of_sweep, key=lambda run: int(run.info.start_time or 0)))
    for condition, replicates in by_condition.items():
        if condition in active:
            every_seed = [one for one in every if one.condition == condition]
            _tell_of(tracking, runs, active[condition], replicates, every_seed)


def _tell_of(
    tracking: "Tracking", runs: "MlflowRuns", run_id: str, new: Sequence[Replicate], every: Sequence[Replicate]
) -> None:
    """Has a condition's run tell of the replicates `new`, and of the means over `every` seed."""
    by_key = {
        run.data.tags.get(names.KEY): run.info.run_id for run in matching(runs.client, runs.experiment_id, REPLICATES)
    }
    for one in new:
        if one.key in by_key:
            runs.client.set_tag(by_key[one.key], PARENT, run_id)
    tracking.write_replicates(
        runs.experiment_id, run_id, {tag: text for one in new for tag, text in encode(one).items()}
    )
    tracking.end_condition(run_id, every, (), {})


def rename(tracking: "Tracking", old: str, new: str) -> None:
    """Gives a sweep's experiment, and its own run, another name."""
    runs = tracking.runs(old)
    client, experiment = runs.client, runs.experiment_id
    for run in list(matching(client, experiment, SWEEP_RUNS)):
        tracking.registry(f"runs of experiment {experiment}").enter(names.storable(f"sweep {new}"), run.info.run_id)
        client.update_run(run.info.run_id, name=new)
    for run in list(matching(client, experiment, "")):
        if names.SWEEP in run.data.tags:
            client.set_tag(run.info.run_id, names.SWEEP, new)
    client.rename_experiment(experiment, new)
