"""Relative paths of a trainable begin in the folder in which the command was given, whatever the command."""

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.door import ponderay

SOURCE = """
import os
import sys
from pathlib import Path

import ponderay

WORDS = Path("words.txt").read_text().split()


class Setting(ponderay.Config):
    width: int = 1
    seed: int = 1


def train(config, trial):
    with Path("log.csv").open("a") as log:
        log.write(f"{config.width},{config.seed}\\n")
    with Path("environment").open("a") as file:
        file.write(f"{os.environ.get('RAY_ADDRESS')} {os.environ.get('OMP_NUM_THREADS')}\\n")
    if "MLFLOW_TRACKING_URI" in os.environ:
        import mlflow

        with mlflow.start_run(run_name=f"mine {config.width}"):
            mlflow.log_metric("mine", config.width)
    loss = len(Path("words.txt").read_text().split()) / config.width
    trial.report({"loss": loss, "macs": float(config.width)}, step=1)


relative = ponderay.Sweep(
    name="relative",
    description="Relative paths; the second condition is trained by a worker of Ray Train.",
    trainable=__name__,
    base=Setting(),
    seeds=(1,),
    conditions=(
        ponderay.Condition("1", {"width": 1}),
        ponderay.Condition("2", {"width": 2}, ponderay.Resources(num_workers=1)),
    ),
    objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")),
)
"""


@pytest.fixture
def lab(workplace) -> Path:
    (workplace / "relative_sweep.py").write_text(SOURCE)
    (workplace / "words.txt").write_text("one two three")
    return workplace


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def values_recorded(lab: Path) -> list[float]:
    """By the trainable itself, in the user's own store."""
    with sqlite3.connect(lab / "mine.db") as store:
        return [value for (value,) in store.execute("SELECT value FROM metrics ORDER BY value")]


@pytest.mark.slow
def test_relative_paths_begin_where_the_command_was_given(lab, monkeypatch):
    """In `check` and `train`; under Ray in a trial and in a worker of Train, which also has the user's own store.

    Both know the cluster that was made for them, so that whatever they start joins no other, and have one thread.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mine.db")
    assert "resumed" in said(ponderay(lab, "check", "relative_sweep.py:relative"))
    tried, recorded = len((lab / "log.csv").read_text().splitlines()), values_recorded(lab)
    assert tried >= 3 and recorded  # fewer than tried: `check` kills replicates, also between the two
    said(ponderay(lab, "run", "relative_sweep.py:relative", "--cpus", "2"))
    assert sorted((lab / "log.csv").read_text().splitlines()[tried:]) == ["1,1", "2,1"]
    assert values_recorded(lab) == sorted([*recorded, 1.0, 2.0])
    (environment,) = set((lab / "environment").read_text().splitlines()[tried:])
    assert re.fullmatch(r"[\d.]+:\d+ 1", environment)
    status = said(ponderay(lab, "status", "relative_sweep.py:relative", "--format", "csv"))
    assert status.count("complete") == 2


@pytest.mark.slow
def test_an_own_run_without_a_store_of_its_own_is_refused_in_one_sentence(lab):
    source = SOURCE.replace('if "MLFLOW_TRACKING_URI" in os.environ:', "if True:")
    (lab / "relative_sweep.py").write_text(source)
    done = ponderay(lab, "train", "relative_sweep.py:relative", "--condition", "1")
    sentence = "ponderay: A run that a trainable opens in MLflow by itself needs a store of its own: "
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and done.stderr.startswith(sentence), done.stderr
    assert (lab / "log.csv").read_text() == "1,1\n"
    assert not {"mlflow.db", "mlruns"} & {found.name for found in lab.iterdir()}
