"""Files of a sweep's own run: out of its runs folder without MLflow, and by MLflow's client from everywhere else."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.tracking import load
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_files
from tests.orchestrator.driven import new_settings
from trainables.errors import InputError


@pytest.fixture
def settings(tmp_path):
    """A store with figures of two sweeps."""
    folder = tmp_path / "a b ü"
    folder.mkdir()
    found = new_settings(folder)
    for sweep in ("sweep", "other"):
        for name in ("b", "a"):
            (tmp_path / f"{name}.png").write_text(f"{name} of {sweep}")
        Tracking(found).store_figures(sweep, [tmp_path / "b.png", tmp_path / "a.png"])
    return found


def read(settings, folder: str = "figures") -> list[tuple[str, int, bytes]]:
    return [(one.path, one.num_bytes, one.read()) for one in load_files("sweep", folder, settings)]


FIGURES = [("figures/a.png", 10, b"a of sweep"), ("figures/b.png", 10, b"b of sweep")]


def test_those_in_the_runs_folder_are_read_without_mlflow(settings, monkeypatch):
    monkeypatch.setattr(load, "_asked", lambda *_: pytest.fail("MLflow was asked"))
    assert read(settings) == FIGURES and read(settings, "report") == []


def test_those_elsewhere_are_what_mlflow_gives(settings, tmp_path):
    elsewhere = replace(settings, runs=tmp_path / "elsewhere")
    assert read(elsewhere) == FIGURES and read(elsewhere, "report") == []
    assert load_files("nothing", "figures", elsewhere) == ()
    with pytest.raises(InputError, match="cannot be opened"):
        load_files("sweep", "figures", replace(settings, tracking_uri="http://127.0.0.1:9"))


def test_of_a_run_that_was_deleted_they_stay_and_later_ones_count(settings, tmp_path):
    tracking = Tracking(settings)
    tracking._client.delete_run(tracking.sweep_run("sweep"))
    assert read(settings) == FIGURES
    (place,) = (file for file in settings.artifacts.rglob("a.png") if file.read_bytes() == b"a of sweep")
    again = Path(str(place).replace(place.parts[-4], "another"))
    again.parent.mkdir(parents=True)
    again.write_bytes(b"a again")
    assert read(settings) == [("figures/a.png", 7, b"a again"), FIGURES[1]]
