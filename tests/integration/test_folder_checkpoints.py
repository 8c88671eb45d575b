"""Checkpoints that are folders: a killed replicate goes on from one, it is evaluated, and a bucket carries it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from tests.integration.test_bucket import bucket, on_another_machine, server

__all__ = ["bucket", "server"]
ROOT = Path(__file__).parents[2]

SOURCE = """
import os, random, signal, tempfile
from pathlib import Path
import ponderay

class Setting(ponderay.Config):
    scale: float = 1.0
    seed: int = 1

def selection(config):
    return {"test": ponderay.Objective("valid_score", "maximize")}

def train(config, trial):
    found = trial.restore()
    random.seed(config.seed)
    step, total = 0, 0.0
    if found:
        assert sorted(path.name for path in found.iterdir()) == ["deep", "total"]
        step, total = len((found / "deep" / "steps").read_text()), float((found / "total").read_text())
    draws = [random.random() - 0.5 for _ in range(6)]
    for step in range(step + 1, 7):
        if step == 4 and not Path("struck").exists():
            Path("struck").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        total += draws[step - 1] * config.scale
        with tempfile.TemporaryDirectory() as made:
            (Path(made) / "total").write_text(repr(total))
            (Path(made) / "deep").mkdir()
            (Path(made) / "deep" / "steps").write_text("x" * step)
            trial.report({"valid_score": total}, step=step, checkpoint=Path(made))

def evaluate(config, checkpoint, evaluation, trial):
    total, step = float((checkpoint / "total").read_text()), len((checkpoint / "deep" / "steps").read_text())
    trial.report({"score": total, "valid_score": total, "best_step": step}, step=step)

toy = ponderay.Sweep(
    name="toy", description="For tests.", trainable=__name__, base=Setting(),
    conditions=ponderay.grid({"scale": [1.0]}), objectives=(ponderay.Objective("score", "maximize"),),
)
"""


def train() -> subprocess.CompletedProcess[str]:
    """One replicate by the command."""
    command = [sys.executable, "-m", "orchestrator", "train", "toy.py:toy", "--condition", "scale=1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


def expected() -> dict[str, float]:
    """What six draws under seed 1 come to, by hand."""
    import itertools
    import random

    stream = random.Random(1)
    totals = list(itertools.accumulate((stream.random() - 0.5 for _ in range(6)), initial=0.0))[1:]
    best = max(totals)
    step = float(totals.index(best) + 1)
    return {"score@test": best, "valid_score@test": best, "best_step@test": step, "checkpoint_step@test": step}


def found_by_test() -> dict[str, float]:
    """What the evaluation of the only replicate found."""
    (replicate,) = Tracking(read_settings()).read_study("toy").replicates
    assert replicate.state == "complete"
    return {name: value for name, value in replicate.metrics.items() if name.endswith("@test")}


def kill() -> Path:
    """The folder of a replicate that was killed at its fourth step."""
    Path("toy.py").write_text(SOURCE)
    assert train().returncode == -signal.SIGKILL
    (journal,) = Path("runs/replicates/toy").glob("*/journal.jsonl")
    return journal.parent


def go_on() -> None:
    done = train()
    assert done.returncode == 0, done.stderr
    assert found_by_test() == expected()


@pytest.mark.slow
def test_a_killed_replicate_goes_on_from_a_folder_and_is_evaluated(workplace):
    folder = kill()
    (folder / "unpacked.left").mkdir()  # as by a process that was killed while it evaluated
    go_on()
    names = [path.name for path in folder.iterdir() if path.name.startswith(("step_", "unpacked", "checkpoint"))]
    assert [Path(name).suffix for name in names] == [".zip"]


@pytest.mark.slow
def test_a_bucket_carries_a_folder_to_another_machine(bucket, monkeypatch):
    kill()
    runs = on_another_machine(monkeypatch)
    go_on()
    assert len([entry for entry in bucket.objects.all() if entry.key.endswith(".zip")]) == 1
    assert len(list(runs.rglob("step_*.zip"))) == 1
    (journal,) = runs.rglob("journal.jsonl")
    assert journal.read_text().count('"kind": "metrics"') == 6
