"""Each example as a user runs it: killed, interrupted, run to its end, reported; its digits are a whole run's."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.checks.resumption import differences, in_folder, numbers_of, run_forked
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.results.study import Replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.worker.template import Template
from search_spaces.find import find_sweep
from tests.integration.test_without_ray import statuses
from tests.waiting import LIMIT_S, until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def ponderay(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator", *arguments]


def environment() -> dict[str, str]:
    """Of a process that finds these sources."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def answered(*arguments: str) -> str:
    """What a command prints in this process, which has loaded everything and has a Ray."""
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def recorded(sweep: str) -> tuple[Replicate, ...]:
    return Tracking(read_settings()).read_study(sweep).replicates


def starts() -> dict[str, int]:
    """How often each replicate was started, by the folder's name."""
    journals = {path.parent.name: path.read_text().splitlines() for path in Path("runs").rglob("journal.jsonl")}
    return {name: sum(json.loads(line)["kind"] == "started" for line in lines) for name, lines in journals.items()}


def tries() -> list[list[str]]:
    """What each replicate has recorded in each of its tries."""
    journals = [path.read_text() for path in Path("runs/replicates").rglob("journal.jsonl")]
    return [text.split('"kind": "started"')[1:] for text in journals]


def steps_done() -> int:
    """Of the replicate that has done most, the steps."""
    return max(("".join(texts).count('"kind": "metrics"') for texts in tries()), default=0)


def is_resumed() -> bool:
    """Whether a replicate has done a step in its second try."""
    return any(len(texts) > 1 and '"kind": "metrics"' in texts[-1] for texts in tries())


HOLDING = """
free_train = train

def train(config, trial):
    import pathlib, time
    report, done = trial.report, []
    def report_and_wait(*arguments, **named):
        report(*arguments, **named)
        done.append(True)
        while len(done) == {num_reports} and not pathlib.Path({go!r}).exists():
            time.sleep(0.05)
    trial.report = report_and_wait
    free_train(config, trial)
"""
"""Added to an example, so that a kill meets it in the middle: it waits for a file behind so many reports of a try."""


@pytest.mark.parametrize(
    ("example", "sweep"), [("plain_torch", "spirals"), pytest.param("lightning_module", "sine", marks=pytest.mark.long)]
)
@pytest.mark.usefixtures("ray_instance")
def test_an_example_that_was_killed_goes_on_with_equal_digits(workplace, monkeypatch, example, sweep):
    name, source = f"{example}.py:widths", (ROOT / f"examples/{example}.py").read_text()
    assert len(source.splitlines()) < 60
    go = Path("go").absolute()
    Path(f"{example}.py").write_text(source + HOLDING.format(num_reports=3, go=str(go)))
    run = ("run", name, "--seeds", "1", "--cpus", "1")
    driver = subprocess.Popen(ponderay(*run), env=environment())  # noqa: S603
    until(lambda: steps_done() >= 3 or driver.poll() is not None)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    with Path("log").open("wb") as log:
        driver = subprocess.Popen(ponderay(*run), env=environment(), stdout=log, stderr=subprocess.STDOUT)  # noqa: S603
    until(lambda: is_resumed() or driver.poll() is not None)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(LIMIT_S) == 1
    assert f"`{shlex.join(['ponderay', *run])}` continues from here" in Path("log").read_text()
    assert "RUNNING" not in statuses(sweep).values()
    go.touch()
    assert "3 complete, 0 failed" in answered(*run)
    assert "width=" in answered("pareto", sweep)
    resumed = next(one for one in recorded(sweep) if starts()[one.key] >= 2)
    Path(f"{example}.py").write_text(source)
    monkeypatch.setenv("PONDERAY_RUNS", "whole")
    answered("train", name, "--condition", resumed.condition)
    (whole,) = recorded(sweep)
    assert (whole.state, dict(whole.metrics)) == ("complete", dict(resumed.metrics))


@pytest.mark.parametrize("example", ["lightning_module", "hugging_face"])
def test_the_callbacks_of_other_trainers_report_all_that_a_resumed_training_needs(workplace, example):
    """A replicate that was killed behind its second report ends with the digits of a whole one."""
    go, source = Path("go").absolute(), (ROOT / f"examples/{example}.py").read_text()
    Path(f"{example}.py").write_text(source + HOLDING.format(num_reports=2, go=str(go)))
    sweep = find_sweep(f"{example}.py:widths")
    work = TaskFactory(sweep, read_settings(), num_gpus=0).replicate(sweep.conditions[0], 1, {}).work
    whole, cut = (in_folder(work, Path(name).absolute()) for name in ("whole", "cut"))
    with contextlib.closing(Template()) as template:
        run_forked(template, cut, 2)
        assert numbers_of(cut) and ReplicateFolder(cut.folder, {}).state()["state"] != "complete"
        go.touch()
        for one in (whole, cut.model_copy(update={"attempt": "again"})):
            run_forked(template, one, None)
            assert ReplicateFolder(one.folder, {}).state()["state"] == "complete"
    assert numbers_of(cut).keys() == numbers_of(whole).keys()
    assert list(differences(numbers_of(whole), numbers_of(cut))) == []


@pytest.mark.usefixtures("ray_instance")
def test_the_package_runs_through_the_public_door(workplace):
    shutil.copytree(ROOT / "examples/routed_bytes", "routed_bytes", ignore=shutil.ignore_patterns("__pycache__"))
    name, study = "routed_bytes.sweeps:laptop", "routed_bytes.laptop.smoke"
    some = [word for condition in ("surprisal_25", "random_25", "top_k_25") for word in ("--condition", condition)]
    assert "6 complete, 0 failed" in answered("run", name, "--smoke", "--cpus", "2", *some)
    assert "top_k_25" in answered("pareto", study)
    assert "bits_per_byte" in answered("compare", study, "surprisal_25", "random_25")
    assert "routed_bytes" in answered("report", study)
