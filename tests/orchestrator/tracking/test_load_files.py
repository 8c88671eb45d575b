"""Files of a sweep's own run: out of its runs folder without MLflow, and by MLflow's client from everywhere else."""

from dataclasses import replace

import pytest

from orchestrator.tracking import bin, load
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
    assert (
        read(settings) == FIGURES and read(settings, "report") == [] and not load_files("nothing", "figures", settings)
    )


def test_those_elsewhere_are_what_mlflow_gives(settings, tmp_path):
    elsewhere = replace(settings, runs=tmp_path / "elsewhere")
    assert read(elsewhere) == FIGURES and read(elsewhere, "report") == []
    assert not load_files("nothing", "figures", elsewhere)
    with pytest.raises(InputError, match="cannot be opened"):
        load_files("sweep", "figures", replace(settings, tracking_uri="http://127.0.0.1:9"))


def test_of_a_run_that_was_deleted_they_stay_and_later_ones_count(settings, tmp_path):
    tracking = Tracking(settings)
    tracking._client.delete_run(tracking.sweep_run("sweep"))
    assert read(settings) == FIGURES
    (tmp_path / "a.png").write_text("a again")
    Tracking(settings).store_figures("sweep", [tmp_path / "a.png"])
    assert read(settings) == [("figures/a.png", 7, b"a again"), FIGURES[1]]


def test_of_a_study_that_was_put_away_they_go(settings):
    bin.put_away(Tracking(settings), "sweep", [], [], "archive")
    assert read(settings) == []


def test_of_a_study_that_has_another_name_by_now_none_are_shown_under_the_old_one(settings, tmp_path):
    bin.rename(Tracking(settings), "sweep", "older")
    (tmp_path / "b.png").write_text("b of another")
    Tracking(settings).store_figures("sweep", [tmp_path / "b.png"])
    assert read(settings) == [("figures/b.png", 12, b"b of another")]
    assert [one.read() for one in load_files("older", "figures", settings)] == [one[2] for one in FIGURES]
