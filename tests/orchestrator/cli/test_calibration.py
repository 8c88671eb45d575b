"""`ponderay plan --calibrate`: how long it trains, what it keeps, what it says."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner, Result

from orchestrator.cli import plan
from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute
from search_spaces.sweep import Sweep
from tests.integration.sweeps import tiny
from trainables.errors import InputError

ROOT = Path(__file__).parents[3]
LONG = tiny({"a": {}}, name="tiny.long").with_values({"num_epochs": 500, "sleep_s": 0.05})
SLOW = tiny({"a": {}}, name="tiny.slow").with_values({"num_epochs": 9, "sleep_s": 6.0})
SHIPPED = {"tiny.long": lambda size: LONG, "tiny.slow": lambda size: SLOW}


@pytest.fixture
def shipped(workplace, monkeypatch):
    """The sweeps above can be imported, here and in the processes started from here."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def planned(name: str, *options: str) -> Result:
    app = typer.Typer()
    app.command()(plan.plan)
    return CliRunner().invoke(app, [f"{__name__}:SHIPPED.{name}", "--cpus", "1", "--format", "json", *options])


def pretrained(sweep: Sweep) -> None:
    """The prerequisite is complete by now, so that it is the replicate that is calibrated."""
    for task in TaskFactory(sweep, read_settings(), 0).prerequisites(sweep.conditions[0], 1).values():
        execute(task.work, lambda record: None)


@pytest.mark.slow
def test_calibration_trains_one_replicate_for_a_while_and_keeps_its_work(shipped):
    pretrained(LONG)
    result = planned("tiny.long", "--calibrate", "2")
    report = json.loads(result.stdout)
    (journal,) = Path("runs/replicates/tiny.long").rglob("journal.jsonl")
    row, last = report["conditions"][0], journal.read_text().splitlines()[-1]
    assert [one["seed"] for one in row["unfinished"]] == [1], (row, last, result.stderr)
    (unfinished,) = row["unfinished"]
    assert 0 < unfinished["step"] < 500
    assert report["basis"]["calibration_s"] == 2 and "a calibration of 2 s" in report["basis"]["text"]
    records = ReplicateFolder(journal.parent, {}).records()
    worked_s = (records[-1]["time_ms"] - records[0]["time_ms"]) / 1000
    left_steps = 1000 - unfinished["step"]
    wall_s = report["forecast"]["most"]["wall_s"]["median"]
    assert 0.05 * left_steps < wall_s < 1.5 * left_steps * worked_s / unfinished["step"], "each step sleeps 0.05 s"


@pytest.mark.slow
def test_calibration_waits_for_the_first_report(shipped):
    pretrained(SLOW)
    result = planned("tiny.slow", "--calibrate", "1")
    (unfinished,) = json.loads(result.stdout)["conditions"][0]["unfinished"]
    assert 1 <= unfinished["step"] < 9 and "waits for a report" in result.stderr


def test_calibration_goes_on_until_the_replicate_has_kept_a_report_though_its_prerequisite_has_ended(
    tmp_path, monkeypatch
):
    folders = {name: ReplicateFolder(tmp_path / name, {}) for name in ("first", "replicate")}
    (tmp_path / "checkpoint").write_bytes(b"weights")
    done = []
    started, state = (
        {"kind": "started", "host": "", "device": "", "code_version": "", "attempt": "1"},
        {"kind": "state", "state": "complete"},
    )
    report = {"kind": "metrics", "step": 1, "metrics": {}, "kept": True}
    steps = [
        lambda: folders["first"].append(started),
        lambda: folders["first"].append(report),
        lambda: folders["first"].append(state),
        lambda: None,
        lambda: folders["replicate"].append(started),
        lambda: folders["replicate"].append(report),
        lambda: folders["replicate"].keep(tmp_path / "checkpoint", 1),
    ]

    class Training:
        """Each time it is asked whether it has ended, it has taken a step more; it never ends."""

        def poll(self):
            steps[len(done)]()
            done.append(True)

    monkeypatch.setattr(plan, "time", SimpleNamespace(monotonic=lambda: len(done), sleep=lambda s: None))
    plan._wait(Training(), list(folders.values()), 2.5)
    assert len(done) == len(steps)


def test_an_exception_below_a_warning_is_said_and_is_no_failure_of_the_replicate(shipped, monkeypatch):
    crash = "import sys; print('ponderay: a warning', file=sys.stderr); 1 / 0"
    monkeypatch.setattr(plan, "TRAIN", (sys.executable, "-c", crash))
    assert str(planned("tiny.long", "--calibrate", "9").exception) == "ZeroDivisionError: division by zero"


@pytest.mark.slow
def test_a_calibration_that_train_refuses_says_why(shipped):
    refused = planned("tiny.long", "--set", "bad_input=true", "--calibrate", "30").exception
    assert isinstance(refused, InputError) and "The file tiny" in str(refused)
