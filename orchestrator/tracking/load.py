"""Loads a study from the tracking store: from SQLite without MLflow where that can be, else through MLflow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.results.study import Study
from orchestrator.tracking import sqlite_reader
from orchestrator.tracking.lease_holder import Holder
from orchestrator.tracking.study_cache import cache_folder
from search_spaces.sweep import Sweep


def load_study(sweep: str, settings: Settings | None = None) -> Study:
    """What the sweep called `sweep` has produced so far, in the tracking store that `settings` name.

    What a driver that is gone has left running is stopped.

    Args:
        settings: default: those in force.

    Raises:
        InputError: if the sweep has not run.
    """
    settings = settings or read_settings()
    found = sqlite_reader.read_study(settings.tracking_uri, sweep, cache_folder())
    if found is None:
        from orchestrator.tracking.client import Tracking

        found = Tracking(settings).read_study(sweep)
    if all(replicate.state != "running" for replicate in found.replicates):
        return found
    holder = load_holder(sweep, settings)
    return _stopped(found) if holder and holder.is_gone else found


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
    if found is not None:
        return found
    from orchestrator.tracking.client import Tracking

    return Tracking(settings).read_configs(sweep)
