"""The runs of replicates that were put away: in MLflow's bin, and out of it again, by its public client.

A run in the bin that a user deleted comes back as soon as a driver has something to write into it. One that was put
away has a tag with the id of its archive, and only `take_out` brings it back: a replicate that is trained anew gets
another run, so that no curve has values of both.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.results.study import Replicate
from orchestrator.tracking import names
from orchestrator.tracking.mlflow_internals import PARENT
from orchestrator.tracking.pages import CONDITIONS, REPLICATES
from orchestrator.tracking.replicate_tags import encode
from orchestrator.tracking.runs import matching

if TYPE_CHECKING:
    from mlflow.entities import Run

    from orchestrator.tracking.client import Tracking
    from orchestrator.tracking.mlflow_runs import MlflowRuns


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
    keys, conditions = {one.key for one in gone}, {one.condition for one in gone}
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


def take_out(
    tracking: "Tracking", sweep: str, back: Sequence[Replicate], every: Sequence[Replicate], mark: str
) -> None:
    """Takes the runs of the replicates `back` out of the bin, where the archive `mark` has put them into it.

    What this store never had, the next driver of the sweep writes into it.

    Args:
        every: replicates of the sweep, with those.
    """
    runs = tracking.runs(sweep)
    client, experiment = runs.client, runs.experiment_id
    by_condition: dict[str, list[Replicate]] = defaultdict(list)
    for one in back:
        by_condition[one.condition].append(one)
    keys = {one.key for one in back}
    active = {run.data.tags[names.CONDITION]: run.info.run_id for run in matching(client, experiment, CONDITIONS)}
    wanted = f"tags.\"{names.PUT_AWAY}\" = '{mark}'"
    for run in list(matching(client, experiment, wanted, is_deleted=True)):
        tags, run_id = run.data.tags, run.info.run_id
        kind, condition = tags.get(names.KIND), tags.get(names.CONDITION, "")
        is_other = kind == "condition" and (condition not in by_condition or condition in active)
        if is_other or (kind == "replicate" and tags.get(names.KEY) not in keys):
            continue
        client.restore_run(run_id)
        client.delete_tag(run_id, names.PUT_AWAY)
        if kind == "condition":
            active[condition] = run_id
            kept = {tag for one in by_condition[condition] for tag in encode(one)}
            for tag in tags:
                if tag.startswith(names.REPLICATE_PREFIX) and tag not in kept:
                    client.delete_tag(run_id, tag)
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
    if own := tracking.find_run(experiment, "sweep", old):
        tracking.registry(f"runs of experiment {experiment}").enter(names.storable(f"sweep {new}"), own)
        client.update_run(own, name=new)
    for run in list(matching(client, experiment, "")):
        if names.SWEEP in run.data.tags:
            client.set_tag(run.info.run_id, names.SWEEP, new)
    client.rename_experiment(experiment, new)
