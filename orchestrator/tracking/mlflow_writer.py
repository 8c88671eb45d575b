"""Runs of MLflow by kind and key, one for each key whoever asks, and writes to them in as few requests as it takes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mlflow.entities import Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException
from mlflow.store.entities.paged_list import PagedList

from orchestrator.journal.lines import Record
from orchestrator.tracking import names
from orchestrator.tracking.mlflow_internals import SYSTEM_PREFIX
from orchestrator.tracking.names import param_texts, plain, storable, stored_name
from orchestrator.tracking.registry import Registry

if TYPE_CHECKING:
    from mlflow import MlflowClient


Found = TypeVar("Found")
PAGE: Final = 1000
RUNNING: Final = "attributes.status = 'RUNNING'"
NAME_LIMIT: Final = 250
SHARED: Final = "prerequisite"
"""The kind of runs of which several drivers make some in one experiment: there none removes what others made."""


def all_pages(ask: Callable[[str | None], PagedList[Found]]) -> Iterator[Found]:
    """Everything that a search finds; `ask` returns the page that begins at a token."""
    token = None
    while True:
        page = ask(token)
        yield from page
        token = page.token
        if not token:
            return


def matching(client: "MlflowClient", experiment_id: str, wanted: str, is_deleted: bool = False) -> Iterator[Run]:
    """The runs of an experiment that a filter lets through; of those in the bin or of the others."""
    view = ViewType.DELETED_ONLY if is_deleted else ViewType.ACTIVE_ONLY
    return all_pages(lambda token: client.search_runs([experiment_id], wanted, view, PAGE, page_token=token))


class KeyedRuns:
    """The runs that this process knows of, and those that others enter into the registry."""

    def __init__(self, client: "MlflowClient", registry: Callable[[str], Registry]) -> None:
        self._client, self._registry = client, registry
        self._runs: dict[str, dict[str, str]] = {}
        self._made_with: dict[str, Mapping[str, str]] = {}
        self._begun: set[tuple[str, str]] = set()

    def open(self, experiment_id: str, kind: str, key: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the one run with this kind and key, set RUNNING; made where it is not there.

        Several drivers may ask at once: the experiment's registry takes one run for each key, the others are removed.
        """
        runs, claim = self.known(experiment_id), storable(f"{kind} {key}")
        while claim in runs:
            if self._reopen(runs[claim]):
                return runs[claim]
            claim += " again"  # that run was removed for good, or its replicate is in an archive
        identity = {names.KEY: key, names.KIND: kind}
        given = {tag: plain(value)[:TAG_LIMIT] for tag, value in tags.items()}
        given = {names.STATE: "running"} | given | identity
        may_be_left = kind == SHARED or (experiment_id, claim) in self._begun
        self._begun.add((experiment_id, claim))  # a store may go away when it has made the run and not yet said so
        made = self._client.create_run(experiment_id, tags=given, run_name=plain(name)[:NAME_LIMIT])
        mine = str(made.info.run_id)
        runs[claim] = self._registry_of(experiment_id).enter(claim, mine)
        self._begun.discard((experiment_id, claim))
        if runs[claim] == mine:
            self._made_with[mine] = given
        else:
            self._client.delete_run(mine)
        if may_be_left:  # not sooner: another driver may be about to enter one
            self.remove_unentered(experiment_id, identity)
        return runs[claim]

    def find(self, experiment_id: str, kind: str, key: str) -> str:
        """The id of the run with this kind and key; empty where there is none."""
        runs, claim = self.known(experiment_id), storable(f"{kind} {key}")
        while f"{claim} again" in runs:
            claim += " again"
        return runs.get(claim, "")

    def deleted(self, experiment_id: str, kind: str) -> set[str]:
        """Keys of the runs of a kind that a user has deleted; not of those that a driver had made in vain."""
        entered = set(self.known(experiment_id).values())
        runs = matching(self._client, experiment_id, f"tags.\"{names.KIND}\" = '{kind}'", is_deleted=True)
        mine = (run for run in runs if run.info.run_id in entered and names.PUT_AWAY not in run.data.tags)
        return {run.data.tags[names.KEY] for run in mine}

    def known(self, experiment_id: str) -> dict[str, str]:
        """Ids of runs by what they were claimed for."""
        if experiment_id not in self._runs:
            self._runs[experiment_id] = self._registry_of(experiment_id).entries()
        return self._runs[experiment_id]

    def remove_unentered(self, experiment_id: str, identity: Mapping[str, str] | None = None) -> None:
        """Removes running runs of ours, those with the tags `identity`, that are not in the registry.

        For the holder of the lease, or once the registry has the run for these tags: others in the making are in vain.
        A run that a user has made in the experiment stays.
        """
        entered = set(self._registry_of(experiment_id).entries().values())
        for run in list(matching(self._client, experiment_id, RUNNING)):
            tags = run.data.tags
            if run.info.run_id not in entered and names.KIND in tags and (identity or {}).items() <= tags.items():
                self._client.delete_run(run.info.run_id)

    def made_with(self, run_id: str) -> Mapping[str, str] | None:
        """The tags with which this process has made the run; None for one that was there, and from the second call."""
        return self._made_with.pop(run_id, None)

    def _registry_of(self, experiment_id: str) -> Registry:
        return self._registry(f"runs of experiment {experiment_id}")

    def _reopen(self, run_id: str) -> bool:
        """Sets a run RUNNING, taking it out of the bin; False where it is not even there, or was put away."""
        try:
            run = self._client.get_run(run_id)
            if run.info.lifecycle_stage == "deleted":
                if names.PUT_AWAY in run.data.tags:
                    return False
                self._client.restore_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        self._client.update_run(run_id, status="RUNNING")
        return True


BATCH: Final = 1000
"""What MLflow takes in one request."""

SMALL_BATCH: Final = 100
"""How many parameters, or tags, go into one request."""

TAG_LIMIT: Final = 8000
"""The longest value of a tag; MLflow cuts longer ones itself, but for those that a run is made with."""


def metrics_of(records: Sequence[Record]) -> list[Metric]:
    """What a journal's records say in numbers, named as in MLflow."""
    metrics: list[Metric] = []
    for record in records:
        numbers: Mapping[str, float] = {}
        if record["kind"] == "system":
            numbers = {SYSTEM_PREFIX + name: value for name, value in record["values"].items()}
        elif record["kind"] in ("metrics", "evaluation"):
            numbers = {stored_name(name): value for name, value in record["metrics"].items()}
        metrics += [Metric(name, value, record["time_ms"], record["step"]) for name, value in numbers.items()]
    return metrics


def write(
    client: "MlflowClient",
    run_id: str,
    metrics: Sequence[Metric] = (),
    tags: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Adds metrics, tags and parameters; twice is as good as once."""
    listed = [RunTag(name, plain(value)) for name, value in (tags or {}).items()]
    given = [Param(path, text) for path, text in param_texts(params or {}).items()]
    while metrics or listed or given:
        now = metrics[: BATCH - 2 * SMALL_BATCH], given[:SMALL_BATCH], listed[:SMALL_BATCH]
        client.log_batch(run_id, *now)
        metrics, given, listed = metrics[len(now[0]) :], given[len(now[1]) :], listed[len(now[2]) :]
