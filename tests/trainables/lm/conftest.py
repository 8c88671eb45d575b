"""Runs that several tests look at."""

from pathlib import Path

import pytest

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.small_runs import RECODERS, config_for, trained, write_text
from trainables.lm import sample_text


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="session")
def wholes(text, tmp_path_factory) -> dict[str, FolderTrial]:
    """Each model trained without a break."""
    return {
        name: trained(config_for(text, recoder, reports_per_epoch=2), tmp_path_factory.mktemp(name))
        for name, recoder in RECODERS.items()
    }


@pytest.fixture(scope="session")
def baseline(text, tmp_path_factory) -> FolderTrial:
    return trained(config_for(text), tmp_path_factory.mktemp("baseline"))


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes longer than all the rest."""
    monkeypatch.setattr(sample_text, "draw", lambda *_: [])
