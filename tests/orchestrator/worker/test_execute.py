"""What a replicate says of the place where it works, and of a trainable that leaves."""

import math
import os
import platform
import random
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.summary import summarise
from orchestrator.scheduler.task import Task, unwritten
from orchestrator.worker import execute, failure
from tests.waiting import LIMIT_S


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (
            "processor\t: 0\nmodel name\t: Made-up 9 CPU\nflags\t\t: fpu\n\nmodel name\t: Made-up 9 CPU\n",
            "Made-up 9 CPU",
        ),
        ("processor\t: 0\nCPU part\t: 0xd0c\n", platform.machine()),
    ],
)
def test_without_a_gpu_the_device_is_the_processor_that_rounds_its_sums(monkeypatch, cpuinfo, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(Path, "read_text", lambda path: cpuinfo)
    assert execute._place()["device"] == f"{name} ({torch.backends.cpu.get_cpu_capability()})"


@pytest.mark.parametrize("function", ["train", "evaluate"])
def test_a_trainable_that_leaves_by_exit_has_failed(work, monkeypatch, function):
    monkeypatch.setattr(work.loaded().module, function, lambda *_: sys.exit(0))
    records = []
    execute.execute(work, records.append)
    assert records[-1]["state"] == "failed" and not records[-1]["is_lost"]
    assert records[-1]["error"] == "RuntimeError: The trainable called sys.exit(0); it must return or raise."


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(1)], ids=["the user", "Ray"])
@pytest.mark.parametrize(
    "made_of_it",
    [lambda _: sys.exit(1), lambda _: 1 / 0, lambda _: None, lambda trial: trial.report({"total": 99.0}, step=4)],
    ids=["exit", "error", "end", "report"],
)
@pytest.mark.parametrize("function", ["train", "evaluate"])
def test_an_interrupt_is_one_whatever_the_trainable_makes_of_it(work, monkeypatch, function, made_of_it, raised):
    """Lightning calls `sys.exit(1)`, others report what they have; what was stopped has not failed, nor ended."""

    def interrupt(*_):
        raise raised

    def interrupted(*arguments):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(LIMIT_S)
        except BaseException:
            made_of_it(arguments[-1])

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with monkeypatch.context() as patch, pytest.raises(type(raised)) as ended:
            patch.setattr(work.loaded().module, function, interrupted)
            execute.execute(work, lambda record: None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value is raised and ReplicateFolder(work.folder, {}).state() == {"state": "new"}
    execute.execute(work, lambda record: None)
    folder = ReplicateFolder(work.folder, {})
    assert folder.state()["state"] == "complete"
    assert 99.0 not in [record["metrics"].get("total") for record in folder.records() if record["kind"] == "metrics"]


def test_an_evaluation_draws_the_same_whether_its_process_has_trained_or_not(work, monkeypatch):
    found = []

    def evaluate(config, checkpoint, evaluation, trial):
        found.append((random.random(), np.random.rand(), torch.rand(1).item()))
        if len(found) == 1:
            signal.raise_signal(signal.SIGINT)  # so that another session tests
        trial.report({"error": 0.5}, step=1)

    monkeypatch.setattr(work.loaded().module, "evaluate", evaluate)
    with pytest.raises(KeyboardInterrupt):
        execute.execute(work, lambda record: None)
    torch.manual_seed(17)
    random.seed(17)
    execute.execute(work, lambda record: None)
    assert len(found) == 2 and found[0] == found[1]


def test_a_checkpoint_that_nothing_could_choose_is_no_result(work, monkeypatch, tmp_path):
    (tmp_path / "state.pt").write_bytes(b"1")
    monkeypatch.setattr(work.loaded().module, "selection", lambda _: {"test": "total"}, raising=False)

    def train(_, trial):
        for step in (5, 6):
            trial.report({"total": math.nan}, step=step, checkpoint=tmp_path / "state.pt")

    monkeypatch.setattr(work.loaded().module, "train", train)
    execute.execute(work, lambda record: None)
    state = ReplicateFolder(work.folder, {}).state()
    said = "ArithmeticError: The metric total, by which a checkpoint is selected, is nan at every step."
    assert (state["state"], state["error"]) == ("failed", said)


def test_a_worker_that_ray_ends_has_not_failed(work, monkeypatch):
    """As Ray raises it on SIGTERM."""

    def end(*_):
        error = SystemExit(1)
        error.ray_terminate_msg = "The process receives a SIGTERM."
        raise error

    monkeypatch.setattr(work.loaded().module, "train", end)
    with pytest.raises(SystemExit):
        execute.execute(work, lambda record: None)
    assert "state" not in {record["kind"] for record in ReplicateFolder(work.folder, {}).records()}


def test_an_error_is_recorded_in_one_line_that_tables_and_terminals_take():
    error = RuntimeError("curl: 12%\r 50%\r\nline\x1b[31m \udcff" + "x" * 200_000)
    said = failure.in_one_line(error)
    assert said.startswith("RuntimeError: curl: 12% 50% line?[31m ?xxx")
    assert len(said) == failure.MOST_OF_ERROR and said.isprintable()


def test_a_secret_at_the_cut_of_a_long_traceback_is_hidden_on_both_sides(work, monkeypatch):
    secret = f"ghp_{'aB3' * 12}"

    def fail(*_):
        raise RuntimeError(f"{secret} " * 3_000)

    monkeypatch.setattr(work.loaded().module, "train", fail)
    execute.execute(work, lambda record: None)
    state = ReplicateFolder(work.folder, {}).state()
    assert "aB3" not in state["traceback"] + state["error"] and "characters)" in state["traceback"]


def test_the_loss_of_a_peer_is_raised_and_its_traceback_stays(work, monkeypatch):
    def lose(*_):
        raise torch.distributed.DistNetworkError("failed to connect")

    monkeypatch.setattr(work.loaded().module, "train", lose)
    monkeypatch.setattr("trainables.distributed.world_size", lambda: 2)
    with pytest.raises(torch.distributed.DistNetworkError):
        execute.execute(work, lambda record: None)
    records = ReplicateFolder(work.folder, {}).records()
    assert records[-1]["kind"] == "peer_lost" and "in lose" in records[-1]["traceback"]
    task = Task(work, None, 1, "", summary=summarise(records))
    assert unwritten(task, "its worker was lost") == {
        "state": "failed",
        "error": "its worker was lost",
        "is_lost": True,
        "traceback": records[-1]["traceback"],
    }


def test_a_process_that_raises_what_a_peers_loss_says_has_failed(work, monkeypatch):
    def fail(*_):
        raise RuntimeError("the gloo of the user's")

    monkeypatch.setattr(work.loaded().module, "train", fail)
    monkeypatch.setattr("trainables.distributed.world_size", lambda: 2)
    with pytest.raises(RuntimeError, match="the gloo of the user's"):
        execute.execute(work, lambda record: None)
    state = ReplicateFolder(work.folder, {}).state()
    assert state["state"] == "failed" and not state["is_lost"] and "in fail" in state["traceback"]
