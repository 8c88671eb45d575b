"""Which sweeps a store of MLflow holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.tracking.run_filters import CONDITIONS

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

PAGE: Final = 1000


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
        for one in _experiments(client)
        if client.search_runs([one.experiment_id], CONDITIONS, max_results=1)
    ]
    return tuple(sorted(found, key=lambda sweep: sweep.name))


def _experiments(client: "MlflowClient") -> "Iterator[Experiment]":
    token = None
    while True:
        page = client.search_experiments(max_results=PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
