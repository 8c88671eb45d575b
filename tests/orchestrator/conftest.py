"""What tests of the orchestrator's parts share."""

from pathlib import Path

import pytest

from orchestrator.checks import exposure
from orchestrator.cluster import address as cluster_address
from orchestrator.environment.settings import Settings, read_settings

OPENERS = (
    "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_API_SERVER_ADDRESS", "PONDERAY_SEARCH_URI",
    "PONDERAY_STORAGE", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "PGPASSWORD", "PGPASSFILE", "PGSSLMODE",
)  # fmt: skip


@pytest.fixture
def bare_home(workplace: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without secrets, on a machine where nothing of Ray, MLflow or PostgreSQL runs."""
    place = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(place))
    for name in OPENERS:
        monkeypatch.setenv(name, "")  # so that what a test's own code sets is taken back
        monkeypatch.delenv(name)
    monkeypatch.setattr(cluster_address, "other_instances", list)
    monkeypatch.setattr(exposure, "listeners", lambda: iter(()))
    return place


@pytest.fixture
def settings(workplace: Path) -> Settings:
    """Those of an empty folder."""
    return read_settings()
