"""Registries: runs of MLflow whose parameters are written once, so that of several processes one is the first.

MLflow has no transaction to offer, but two things that its database allows once only: a registered model of one name,
and a parameter of one name in a run (its primary key). The registered model `ponderay.books` names the run that lists
all registries; each registry's parameters are entries that nobody can change.
"""

from dataclasses import dataclass
from typing import Final

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from orchestrator.tracking import names
from orchestrator.tracking.names import storable
from trainables.errors import InputError

NOTE: Final = "Kept by Ponderay: names the run that lists its leases and runs. Deleting it lets work be done twice."


@dataclass(frozen=True)
class Registry:
    """A run whose parameters are entries, and whose tags may change."""

    client: MlflowClient
    run_id: str

    def enter(self, name: str, value: str) -> str:
        """The value that stands under `name`: `value`, or what another process wrote there before."""
        try:
            self.client.log_param(self.run_id, name, value)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            entries = self.entries()
            if name not in entries:
                why = error.message.splitlines()[0].rstrip(".")
                rule = f"MLflow takes no entry in run {self.run_id}, a registry of Ponderay's: {why}"
                raise InputError(f"{rule}. Was it deleted? `MlflowClient().restore_run(ID)` brings it back.") from None
            return entries[name]
        return value

    def entries(self) -> dict[str, str]:
        """All that was claimed."""
        return self.read()[0]

    def read(self) -> tuple[dict[str, str], dict[str, str]]:
        """All that was claimed, and what was noted last under each name."""
        data = self.client.get_run(self.run_id).data
        return dict(data.params), dict(data.tags)

    def note(self, name: str, value: str) -> None:
        """Writes a note over the one before."""
        self.client.set_tag(self.run_id, name, value)


def find_registry(client: MlflowClient, name: str) -> Registry | None:
    """The registry called `name`; None where there is none."""
    try:
        root = Registry(client, str(client.get_registered_model(names.REGISTRIES).tags["run"]))
    except MlflowException:
        return None
    run_id = root.entries().get(storable(name))
    return Registry(client, run_id) if run_id else None


def open_registry(client: MlflowClient, name: str) -> Registry:
    """The one registry called `name`, made where it is not there."""
    root, name = Registry(client, _root_run(client)), storable(name)
    entries = root.entries()
    if name in entries:
        return Registry(client, entries[name])
    mine = _new_run(client, name)
    return Registry(client, _keep_one(client, mine, root.enter(name, mine)))


def _root_run(client: MlflowClient) -> str:
    try:
        return str(client.get_registered_model(names.REGISTRIES).tags["run"])
    except MlflowException as error:
        if error.error_code != "RESOURCE_DOES_NOT_EXIST":
            raise
    mine = _new_run(client, "books")
    try:
        client.create_registered_model(names.REGISTRIES, tags={"run": mine}, description=NOTE)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    return _keep_one(client, mine, str(client.get_registered_model(names.REGISTRIES).tags["run"]))


def _keep_one(client: MlflowClient, mine: str, kept: str) -> str:
    if mine != kept:
        client.delete_run(mine)
    return kept


def _new_run(client: MlflowClient, name: str) -> str:
    run = client.create_run(
        open_experiment(client, names.REGISTRIES), run_name=name, tags={names.KIND: names.REGISTRY_KIND}
    )
    client.set_terminated(run.info.run_id)
    return str(run.info.run_id)


def open_experiment(client: MlflowClient, name: str, location: str | None = None) -> str:
    """The id of the experiment `name`, made where it is not there, with its files at `location`."""
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=location))
        except MlflowException:
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)
