"""What all tests of the scheduler share: a progress view draws when a test asks for it."""

import pytest


@pytest.fixture(autouse=True)
def only_tests_tick(monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.progress.REFRESH_S", 3600.0)
