"""Reads MLflow by its client: which sweeps a store holds, and a study from the runs of its conditions and replicates.

The way for studies of which there is no study file. A condition's run carries its replicates in tags
(`replicate_tags`); then its metric `ponderay.updated` is set to the time in ms, or to the next number where two writes
fall together. What a replicate was begun with stands in its own run alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.results.study import Origin, Replicate, Study
from orchestrator.tracking import names
from orchestrator.tracking.mlflow_writer import all_pages, matching
from orchestrator.tracking.pages import CONDITIONS, REPLICATES
from orchestrator.tracking.replicate_tags import decode, decode_settings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


def read_study(client: "MlflowClient", name: str, experiment_id: str) -> Study:
    """The study of the sweep `name`, conditions in the order of their runs' start, seeds in order; without origins.

    Earlier versions made another run of a condition for each first seed that a driver was given.
    """
    wanted = f"metrics.`{names.UPDATED}` > 0 and {CONDITIONS}"
    every = _in_order(client, experiment_id, wanted)
    runs: dict[str, Run] = {}
    for run in every:
        runs.setdefault(run.data.tags[names.CONDITION], run)  # a condition's config is that of its first run
    settings = {condition: decode_settings(run.data.tags) for condition, run in runs.items()}
    replicates: dict[str, dict[int, Replicate]] = {condition: {} for condition in runs}
    updated_ms: dict[str, int] = {}
    for run in sorted(every, key=lambda run: run.data.metrics[names.UPDATED]):  # the last word on a replicate counts
        condition = run.data.tags[names.CONDITION]
        replicates[condition] |= {replicate.seed: replicate for replicate in decode(condition, run.data.tags)}
        updated_ms[condition] = int(run.data.metrics[names.UPDATED])
    return Study(
        name,
        tuple(of[seed] for of in replicates.values() for seed in sorted(of)),
        updated_ms,
        {condition: given for condition, given in settings.items() if given},
        {condition: dict(run.data.params) for condition, run in runs.items() if run.data.params},
    )


def read_origins(client: "MlflowClient", experiment_id: str, is_deleted: bool = False) -> dict[str, Origin]:
    """What each replicate was begun with, by key, in the order of their runs' start; of the runs in the bin, or not."""
    found = _in_order(client, experiment_id, REPLICATES, is_deleted)
    tags = [run.data.tags for run in found if names.KEY in run.data.tags]
    return {of[names.KEY]: Origin(*(of.get(name, "") for name in names.ORIGIN)) for of in tags}


def num_finished(client: "MlflowClient", experiment_id: str) -> int | None:
    """How many replicates of a sweep have a run that is not deleted; None where some run has not ended well."""
    if any(matching(client, experiment_id, "attributes.status != 'FINISHED'")):
        return None
    return sum(1 for _ in matching(client, experiment_id, REPLICATES))


def _in_order(client: "MlflowClient", experiment_id: str, wanted: str, is_deleted: bool = False) -> "list[Run]":
    """In that of their start; every run once, though a driver may add some between two pages."""
    found = {run.info.run_id: run for run in matching(client, experiment_id, wanted, is_deleted)}
    return sorted(found.values(), key=lambda run: (int(run.info.start_time or 0), run.info.run_id))


SWEEPS_PAGE: Final = 1000


@dataclass(frozen=True)
class RecordedSweep:
    """A sweep of which there are runs.

    Attributes:
        tags: of its experiment.
    """

    name: str
    experiment_id: str
    tags: Mapping[str, str]


def recorded_sweeps(client: "MlflowClient") -> tuple[RecordedSweep, ...]:
    """The sweeps with a condition's run, by name."""
    found = [
        RecordedSweep(str(one.name), str(one.experiment_id), dict(one.tags))
        for one in all_pages(lambda token: client.search_experiments(max_results=SWEEPS_PAGE, page_token=token))
        if client.search_runs([one.experiment_id], CONDITIONS, max_results=1)
    ]
    return tuple(sorted(found, key=lambda sweep: sweep.name))
