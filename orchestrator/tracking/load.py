"""Loads a study from the tracking store: from SQLite without MLflow where that can be, else through MLflow."""

from collections.abc import Mapping
from typing import Literal

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.results.study import Study
from orchestrator.tracking import sqlite_reader
from orchestrator.tracking.study_cache import cache_folder
from search_spaces.sweep import Sweep


def load_study(sweep: str, settings: Settings | None = None) -> Study:
    """What the sweep called `sweep` has produced so far, in the tracking store that `settings` name.

    Args:
        settings: default: those in force.

    Raises:
        InputError: if the sweep has not run.
    """
    settings = settings or read_settings()
    found = sqlite_reader.read_study(settings.tracking_uri, sweep, cache_folder())
    if found is not None:
        return found
    from orchestrator.tracking.client import Tracking

    return Tracking(settings).read_study(sweep)


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
