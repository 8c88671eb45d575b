"""A recorded study, and what commands print of it."""

import pytest

from tests.orchestrator.recorded import Store


@pytest.fixture
def store(workplace):
    return Store(workplace / "runs" / "mlflow.db")


@pytest.fixture
def printed(capsys, monkeypatch):
    """What a command prints for people, on lines long enough for all of it."""
    monkeypatch.setenv("COLUMNS", "250")

    def call(command, name="asr.demo", **options):
        capsys.readouterr()
        command(name, **options)
        return capsys.readouterr().out

    return call
