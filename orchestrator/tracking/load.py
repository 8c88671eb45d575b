"""Loads a study: from the study file of the runs folder where that is the newest, else through MLflow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.journal.study_file import read_study_file
from orchestrator.results.study import Study
from orchestrator.tracking import sqlite_reader, sqlite_runs
from orchestrator.tracking.lease_holder import Holder
from orchestrator.tracking.moved_folder import follow_folder
from orchestrator.tracking.store import NotRunError, check_address, has_store, not_run
from orchestrator.tracking.study_runs import NoRuns
from search_spaces.sweep import Sweep

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking
    from orchestrator.tracking.mlflow_runs import MlflowRuns
    from orchestrator.tracking.sqlite_runs import SqliteRuns


def load_study(sweep: str, settings: Settings | None = None) -> Study:
    """What the sweep called `sweep` has produced so far, in the tracking store that `settings` name.

    What a driver that is gone has left running is stopped.

    Args:
        settings: default: those in force.

    Raises:
        InputError: if the sweep has not run.
    """
    settings = settings or read_settings()
    check_address(settings.tracking_uri)
    found = in_runs_folder(sweep, settings) or _asked(settings, sweep).read_study(sweep)
    if all(replicate.state != "running" for replicate in found.replicates):
        return found
    holder = load_holder(sweep, settings)
    return _stopped(found) if holder and holder.is_gone else found


def in_runs_folder(sweep: str, settings: Settings) -> Study | None:
    """The study as the study file has it; None where the last driver of the sweep wrote another one, or none.

    That is known by the sweep's lease, which is in the store: a driver may have had another runs folder.
    """
    content = read_study_file(settings.replicates(sweep))
    if content is None or not content.sweep:
        return None
    holder = load_holder(sweep, settings)
    return content.study(sweep) if holder and holder.token == content.sweep.get("lease") else None


def load_if_run(sweep: str, settings: Settings) -> Study | None:
    """As `load_study`; None where the sweep has not run."""
    try:
        return load_study(sweep, settings)
    except NotRunError:
        return None


def load_holder(sweep: str, settings: Settings) -> Holder | None:
    """Who last ran the sweep; None where the store does not say it."""
    if settings.tracking_uri.startswith(sqlite_reader.SCHEME):
        return sqlite_reader.read_holder(settings.tracking_uri, sweep)
    from orchestrator.tracking.client import Tracking

    return Tracking(settings).read_holder(sweep)


def _stopped(study: Study) -> Study:
    """Nothing of it runs, because its driver is gone: what was running when it was killed has stopped."""
    replicates = [replace(one, state="stopped") if one.state == "running" else one for one in study.replicates]
    return replace(study, replicates=tuple(replicates))


def load_declaration(sweep: str, settings: Settings) -> str | None:
    """What the sweep declares, as `declaration.text_of` gives it; None where it is not recorded."""
    check_address(settings.tracking_uri)
    if settings.tracking_uri.startswith(sqlite_reader.SCHEME):
        return sqlite_reader.read_declaration(settings.tracking_uri, sweep)
    from orchestrator.tracking.client import Tracking

    return Tracking(settings).read_declaration(sweep)


def load_sweep(name: str, settings: Settings) -> Sweep | None:
    """The sweep as it was recorded with its study; None where there is none of that name."""
    from orchestrator.tracking.declaration import sweep_of

    text = None if ":" in name else load_declaration(name, settings)
    return sweep_of(text, load_study(name, settings).conditions) if text else None


def load_directions(sweep: Sweep, settings: Settings) -> Mapping[str, Literal["minimize", "maximize"]]:
    """Whether each metric that has a direction is to minimize or to maximize."""
    from orchestrator.tracking.declaration import directions_of

    return directions_of(sweep, load_declaration(sweep.name, settings))


def load_configs(sweep: str, settings: Settings) -> Mapping[str, Mapping[str, str]]:
    """The config of each recorded condition as it was logged: values as text by config path.

    Raises:
        InputError: if the sweep has not run.
    """
    found = sqlite_reader.read_configs(settings.tracking_uri, sweep)
    return _asked(settings, sweep).read_configs(sweep) if found is None else found


def load_configs_if_run(sweep: str, settings: Settings) -> Mapping[str, Mapping[str, str]]:
    """As `load_configs`; none of a study that was never recorded here."""
    try:
        return load_configs(sweep, settings)
    except NotRunError:
        return {}


def open_runs(sweep: str, settings: Settings) -> "SqliteRuns | MlflowRuns":
    """The runs of the sweep, for what is asked of them beside the study.

    Raises:
        InputError: if the sweep has not run.
    """
    follow_folder(settings)
    return sqlite_runs.find_runs(settings.tracking_uri, sweep) or _asked(settings, sweep).runs(sweep)


def open_runs_if_run(sweep: str, settings: Settings) -> "SqliteRuns | MlflowRuns | NoRuns":
    """As `open_runs`; none of a sweep that has not run here."""
    try:
        return open_runs(sweep, settings)
    except NotRunError:
        return NoRuns()


def _asked(settings: Settings, sweep: str) -> "Tracking":
    """The store, opened by MLflow, whose import takes seconds: after what is known without it.

    Raises:
        InputError: if there is no such store, or it has nothing of the sweep.
    """
    uri = settings.tracking_uri
    check_address(uri)
    if sqlite_reader.lacks(uri, sweep):
        raise not_run(sweep, uri, sqlite_reader.recorded_names(uri))
    if not has_store(uri):
        raise not_run(sweep, uri, [])
    from orchestrator.tracking.client import Tracking

    return Tracking(settings)
