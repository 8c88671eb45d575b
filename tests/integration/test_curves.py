"""Curves by seed: kept beside the study file, made again from journals, and from MLflow where there are none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.journal.curve_file import CURVE_FILE
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.tracking import curves
from orchestrator.tracking.curves import load_curves, load_mean_curves
from orchestrator.tracking.load import load_study
from ponderay import notebook
from tests.integration.sweeps import run_quietly, tiny
from trainables.errors import InputError

CONDITIONS = {"b": {"x": 0.25}, "a": {}}
FOLDER = Path("runs/replicates/tiny.sweep")


@pytest.fixture
def study(workplace):
    run_quietly(tiny(CONDITIONS))
    return load_study("tiny.sweep")


def only_by(monkeypatch, *sources: str) -> None:
    """Has no source asked but these."""
    for name in {"_of_copy", "_of_journals", "_of_runs"} - set(sources):
        monkeypatch.setattr(curves, name, lambda *_, name=name: pytest.fail(f"{name} was asked"))


def found(study):
    return load_curves(study.sweep, study.replicates, read_settings())


def test_the_file_has_what_each_replicate_reported_and_without_it_mlflows_runs(study, monkeypatch):
    with monkeypatch.context() as patch:
        only_by(patch)
        kept = found(study)
    for one in study.replicates:
        records = ReplicateFolder(FOLDER / one.key, {}).records()
        steps = {r["step"]: r["metrics"]["total"] for r in records if r["kind"] == "metrics"}
        assert len(steps) == 4 and kept[f"{one.condition} seed {one.seed}"].curves["total"] == steps
    means = load_mean_curves(study, ["a", "b"], read_settings())
    shutil.rmtree(FOLDER)
    assert found(study) == kept
    assert load_mean_curves(study, ["a", "b"], read_settings()) == means and len(means) == 4


def test_what_the_file_lacks_is_made_of_the_journals_and_written_by_the_next_driver(study, monkeypatch):
    whole, file = found(study), FOLDER / CURVE_FILE
    content = file.read_bytes()
    lacking = {
        "a line": content[: content.rindex(b"\n{")],
        "the end of a line": content[:-20],
        "a digit": content.replace(b'"total": [', b'"total": [1', 1),
        "what its code was": content.replace(study.replicates[0].code_version.encode(), b"0123", 1),
        "all": b"",
    }
    for what, damaged in lacking.items():
        assert damaged != content
        file.write_bytes(damaged) if damaged else file.unlink()
        with monkeypatch.context() as patch:
            only_by(patch, "_of_copy", "_of_journals")
            assert found(study) == whole, what
        run_quietly(tiny(CONDITIONS | {"c": {"x": 0.75}}))
        with monkeypatch.context() as patch:
            only_by(patch)
            assert found(study) == whole, what


def test_a_driver_that_finds_all_done_adds_nothing(study):
    before = (FOLDER / CURVE_FILE).read_bytes()
    run_quietly(tiny(CONDITIONS, seeds=(1, 2, 3)))
    assert (FOLDER / CURVE_FILE).read_bytes().startswith(before)
    assert (FOLDER / CURVE_FILE).read_bytes().count(b'"kind": "curves"') == 6


def test_a_file_that_cannot_be_written_stops_nobody(workplace):
    FOLDER.mkdir(parents=True)
    (FOLDER / CURVE_FILE).symlink_to(workplace / "theirs")
    assert run_quietly(tiny(CONDITIONS)).num_failed == 0
    assert not (workplace / "theirs").exists()
    assert len(found(load_study("tiny.sweep"))) == 4


def test_a_notebook_asks_by_metric_and_condition_and_imports_neither_mlflow_nor_ray(study):
    every = notebook.curves(study)
    assert {(one.condition, one.seed) for one in every} == {(name, seed) for name in "ab" for seed in (1, 2)}
    of_a = notebook.curves("tiny.sweep", "total", "a")
    assert [(one.seed, one.metric, one.steps) for one in of_a] == [(seed, "total", (1, 2, 3, 4)) for seed in (1, 2)]
    assert set(of_a) <= set(every)
    with pytest.raises(InputError, match=r"has reported 'totla' in training; there are .*total"):
        notebook.curves(study, "totla")
    with pytest.raises(InputError, match="has no results of the condition 'nothing'"):
        notebook.curves(study, "total", "nothing")
    code = (
        "import sys; from ponderay.notebook import curves; assert len(curves('tiny.sweep', 'total')) == 4; "
        "print(*{'mlflow', 'ray', 'torch', 'pandas'} & set(sys.modules))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == []
