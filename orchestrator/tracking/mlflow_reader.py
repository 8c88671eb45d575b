"""Reads MLflow: which sweeps a store holds, and studies from the runs of conditions, of those only what has changed.

A condition's run carries its replicates in tags (`replicate_tags`); then its metric `ponderay.updated` is set to a
revision, which grows over the experiment and is the time in ms unless two fall together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.results.study import Study
from orchestrator.tracking import names, study_cache
from orchestrator.tracking.pages import CONDITIONS
from orchestrator.tracking.replicate_tags import decode, decode_settings
from orchestrator.tracking.runs import all_pages, matching
from orchestrator.tracking.study_cache import Origin, ReadCondition, Snapshot
from search_spaces.redaction import redacted_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


PAGE: Final = 200


def read_study(client: "MlflowClient", name: str, experiment_id: str, cache: Path | None) -> Study:
    """The study of the sweep `name`, conditions in the order of their runs' start, seeds in order.

    Args:
        cache: folder of what was read before; None: everything is read.
    """
    experiment = client.get_experiment(experiment_id)
    origin = Origin(redacted_uri(client.tracking_uri), str(experiment_id), int(experiment.creation_time or 0))
    before = study_cache.load(cache, origin)
    snapshot = _read(client, experiment_id, before)
    if snapshot != before:
        study_cache.save(cache, origin, snapshot)
    return snapshot.study(name)


def _read(client: "MlflowClient", experiment_id: str, before: Snapshot) -> Snapshot:
    """The present state.

    The last revision is asked for first: all that it covers is there when the runs are read. Runs deleted or restored
    shift the pages and leave no revision: then everything is read again.
    """
    deleted = frozenset(run.info.run_id for run in _changed(client, experiment_id, 0, is_deleted=True))
    revision = _last_revision(client, experiment_id)
    if revision < before.revision or deleted != before.deleted:
        before = Snapshot()
    conditions = dict(before.conditions)
    if revision > before.revision:
        for run in _changed(client, experiment_id, before.revision):
            conditions[run.info.run_id] = _condition(run)
    return Snapshot(revision, conditions, deleted)


def _last_revision(client: "MlflowClient", experiment_id: str) -> int:
    order = [f"metrics.`{names.UPDATED}` DESC"]
    last = client.search_runs([experiment_id], _filter(0), max_results=1, order_by=order)
    return int(last[0].data.metrics[names.UPDATED]) if last else 0


def _changed(client: "MlflowClient", experiment_id: str, since: int, is_deleted: bool = False) -> Iterator["Run"]:
    from mlflow.entities import ViewType

    view = ViewType.DELETED_ONLY if is_deleted else ViewType.ACTIVE_ONLY
    order = ["attributes.start_time ASC"]
    return all_pages(
        lambda token: client.search_runs([experiment_id], _filter(since), view, PAGE, order, page_token=token)
    )


def _filter(since: int) -> str:
    return f"metrics.`{names.UPDATED}` > {since} and {CONDITIONS}"


def _condition(run: "Run") -> ReadCondition:
    name = run.data.tags[names.CONDITION]
    replicates = tuple(decode(name, run.data.tags))
    started_ms, revision = int(run.info.start_time or 0), int(run.data.metrics[names.UPDATED])
    return ReadCondition(name, started_ms, revision, replicates, decode_settings(run.data.tags))


def read_configs(client: "MlflowClient", experiment_id: str) -> dict[str, dict[str, str]]:
    """Every condition's config as it was logged: values as text by config path, by the condition's name."""
    runs = matching(client, experiment_id, CONDITIONS)
    return {run.data.tags[names.CONDITION]: dict(run.data.params) for run in runs if run.data.params}


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
    """Those with a condition's run, by name."""
    found = [
        RecordedSweep(str(one.name), str(one.experiment_id), dict(one.tags))
        for one in all_pages(lambda token: client.search_experiments(max_results=SWEEPS_PAGE, page_token=token))
        if client.search_runs([one.experiment_id], CONDITIONS, max_results=1)
    ]
    return tuple(sorted(found, key=lambda sweep: sweep.name))
