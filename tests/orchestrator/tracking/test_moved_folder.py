"""A runs folder that was moved or copied: files are written and read where it is now, and nowhere else."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.tracking._tracking_service import utils

from orchestrator.environment.settings import Settings
from orchestrator.tracking import bin
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_files
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings

SWEEP = tiny({"bad": {"nan_at": 1}}, name="tiny.moved", seeds=(1,))
"""Its replicates fail, and their runs have a traceback among their files."""


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def tracebacks(settings: Settings) -> list[str]:
    """As MLflow finds them."""
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    experiment = client.get_experiment_by_name(SWEEP.name)
    runs = client.search_runs([experiment.experiment_id], "tags.`ponderay.kind` = 'replicate'")
    return [Path(client.download_artifacts(run.info.run_id, "traceback.txt")).read_text() for run in runs]


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_all_files_are_where_the_folder_is_now(workplace, move):
    first, second = workplace / "first place", workplace / "second"
    first.mkdir()
    settings = new_settings(first)
    drive(SWEEP, settings)
    figure = workplace / "figure.png"
    figure.write_bytes(b"a picture")
    Tracking(settings).store_figures(SWEEP.name, [figure])
    move(first, second)
    utils._artifact_repos_cache.clear()  # by a run's id, in one process; moved folders are used by another one
    left = files(first)
    moved = Settings(second, f"sqlite:///{second / 'mlflow.db'}")

    (found,) = load_files(SWEEP.name, "figures", moved)
    assert found.read() == b"a picture"
    figure.write_bytes(b"another")
    Tracking(moved).store_figures(SWEEP.name, [figure])
    drive(replace(SWEEP, seeds=(1, 2)), moved)

    assert files(first) == left and first.exists() == bool(left)
    (found,) = load_files(SWEEP.name, "figures", moved)
    assert found.read() == b"another"
    assert len(tracebacks(moved)) == 2 and all("DivergedError" in text for text in tracebacks(moved))


def test_the_files_of_a_renamed_sweep_follow_too(workplace):
    (first := workplace / "first").mkdir()
    settings, figure = new_settings(first), workplace / "figure.png"
    figure.write_bytes(b"a picture")
    Tracking(settings).store_figures("sweep", [figure])
    bin.rename(Tracking(settings), "sweep", "older")
    second = shutil.move(first, workplace / "second")
    utils._artifact_repos_cache.clear()
    moved = Settings(second, f"sqlite:///{second / 'mlflow.db'}")
    Tracking(moved)
    assert [one.read() for one in load_files("older", "figures", moved)] == [b"a picture"]


def test_a_place_that_a_user_chose_stays(workplace):
    settings = new_settings(workplace)
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    places = {"own": "file:///elsewhere/own", "bucket": "s3://bucket/artifacts/bucket", "other": "/x/artifacts/another"}
    for name, place in places.items():
        client.create_experiment(name, artifact_location=place)
    Tracking(settings)
    found = {one.name: one.artifact_location for one in client.search_experiments() if one.name in places}
    assert found == places
