"""A small sweep that a driver has really run, for tests of what it leaves in MLflow; made once, and only read."""

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run
from rich.console import Console

from orchestrator.environment.settings import Settings
from orchestrator.results.outcome import Outcome
from orchestrator.run import run_here
from orchestrator.tracking.client import Tracking
from tests.integration.sweeps import tiny
from tests.orchestrator.recorded import empty_store

DESCRIPTION = r"""Tiny *sweep* a_b <b>x</b> & [x](y) `c` # \ " % ~~s~~ | + - = : ! . 1. __y__ {b} <!-- -->"""
_FOLDERS = []


@dataclass(frozen=True)
class Driven:
    """The sweep's outcome, and its store."""

    settings: Settings
    outcome: Outcome
    client: MlflowClient
    experiment_id: str

    def run(self, name: str) -> Run:
        """The one called so."""
        (found,) = self.client.search_runs([self.experiment_id], f"attributes.run_name = '{name}'")
        return found

    @property
    def tags(self) -> dict[str, str]:
        """Of the experiment."""
        return dict(self.client.get_experiment(self.experiment_id).tags)


def drive(sweep: Any, settings: Settings) -> Driven:
    """Runs `sweep` in this process."""
    outcome = run_here(sweep, settings, Console(quiet=True), accept_code=False)
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    return Driven(settings, outcome, client, client.get_experiment_by_name(sweep.name).experiment_id)


def new_settings(folder: Path) -> Settings:
    """Settings with an empty store in `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "mlflow.db").write_bytes(empty_store())
    return Settings(folder, f"sqlite:///{folder / 'mlflow.db'}")


@functools.cache
def driven() -> Driven:
    """Conditions good, better and bad, which fails, under three seeds."""
    _FOLDERS.append(tempfile.TemporaryDirectory())  # for as long as the tests run
    conditions = {"good": {}, "better": {"x": 0.75}, "bad": {"nan_at": 3}}
    sweep = tiny(conditions, name="tiny.driven", seeds=(1, 2, 3), description=DESCRIPTION)
    found = drive(sweep, new_settings(Path(_FOLDERS[-1].name)))
    Tracking(found.settings).store_front(sweep.name, (), {}, {})  # else its own run is there only in a changed checkout
    return found
