"""Loads a study from the tracking store: from SQLite without MLflow where that can be, else through MLflow."""

from collections.abc import Mapping

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.results.study import Study
from orchestrator.tracking import sqlite_reader
from orchestrator.tracking.study_cache import cache_folder


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
