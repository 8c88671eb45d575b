"""Runs of MLflow by kind and key, through the book of their experiment: one run for each key, whoever asks."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlflow.exceptions import MlflowException

from orchestrator.tracking_books import Book, storable

if TYPE_CHECKING:
    from mlflow import MlflowClient


class KeyedRuns:
    """The runs that this process knows of, and those that others enter into the book."""

    def __init__(self, client: "MlflowClient", book: Callable[[str], Book]) -> None:
        self._client, self._book = client, book
        self._runs: dict[str, dict[str, str]] = {}
        self._new: set[str] = set()

    def open(self, experiment_id: str, kind: str, key: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the one run with this kind and key, set RUNNING; made where it is not there.

        Several drivers may ask at once: the book of the experiment takes one run for each key, the others are removed.
        """
        runs, claim = self.known(experiment_id), storable(f"{kind} {key}")
        while claim in runs:
            if self._reopen(runs[claim]):
                return runs[claim]
            claim += " again"  # that run was removed for good
        identity = {"ponderay.key": key, "ponderay.kind": kind, "ponderay.state": "running"}
        mine = str(self._client.create_run(experiment_id, tags=identity | dict(tags), run_name=name).info.run_id)
        runs[claim] = self._book_of(experiment_id).claim(claim, mine)
        if runs[claim] == mine:
            self._new.add(mine)
        else:
            self._client.delete_run(mine)
        return runs[claim]

    def find(self, experiment_id: str, kind: str, key: str) -> str:
        """The id of the run with this kind and key; empty where there is none."""
        runs, claim = self.known(experiment_id), storable(f"{kind} {key}")
        while f"{claim} again" in runs:
            claim += " again"
        return runs.get(claim, "")

    def known(self, experiment_id: str) -> dict[str, str]:
        """Ids of runs by what they were claimed for."""
        if experiment_id not in self._runs:
            self._runs[experiment_id] = self._book_of(experiment_id).claims()
        return self._runs[experiment_id]

    def is_new(self, run_id: str) -> bool:
        """Whether this process made the run; once."""
        is_new = run_id in self._new
        self._new.discard(run_id)
        return is_new

    def _book_of(self, experiment_id: str) -> Book:
        return self._book(f"runs of experiment {experiment_id}")

    def _reopen(self, run_id: str) -> bool:
        """Sets a run RUNNING, taking it out of the bin; False where it is not even there."""
        try:
            if self._client.get_run(run_id).info.lifecycle_stage == "deleted":
                self._client.restore_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        self._client.update_run(run_id, status="RUNNING")
        return True
