"""`status` on what a driver has left: only what was begun, and the command that goes on with it."""

import socket
import sys

import pytest
from rich.console import Console

from orchestrator.cli.status import status
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.run import run_here
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.tracking import checkout
from orchestrator.tracking.load import load_study
from orchestrator.worker import execute as worker
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings

SWEEP = tiny({"a": {}, "b": {"x": 0.75}}, name="tiny.left", seeds=(1, 2))


@pytest.fixture
def settings(workplace, monkeypatch):
    (workplace / "runs").mkdir()
    made = new_settings(workplace / "runs")
    monkeypatch.setenv("PONDERAY_TRACKING_URI", made.tracking_uri)
    return made


def stop(settings, *arguments: str, condition: str = "a") -> None:
    """A driver of this condition, begun by this command, is stopped under the second step of its first replicate."""

    def reported(scheduler, key, record):
        hear(scheduler, key, record)
        if record.get("step") == 2 and scheduler.tasks[key].condition:
            raise KeyboardInterrupt

    hear = Scheduler.reported
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sys, "argv", ["/usr/bin/ponderay", *arguments])
        patch.setattr(Scheduler, "reported", reported)
        drive(SWEEP.of_conditions([condition]), settings)


def test_it_is_continued_by_the_command_with_which_it_was_begun(settings, printed):
    stop(settings, "run", "sweeps.py:left", "--set", "sleep_s=0", "--condition", "b", condition="b")
    assert "What is stopped waits" in (shown := printed(status, name="tiny.left"))
    assert "`ponderay run sweeps.py:left --set sleep_s=0 --condition b` continues it.\n" in shown
    stop(settings, "run", "sweeps.py:left")
    assert "\n4 left: 2 stopped, 2 not begun.\n" in printed(status, name="tiny.left")
    assert (
        "`ponderay run sweeps.py:left --set sleep_s=0 --condition b` and `ponderay run sweeps.py:left` continue it.\n"
    ) in printed(status, name="tiny.left")


def test_what_a_job_began_is_continued_by_sending_the_job_again(settings, printed, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "4")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/shared/runs/.slurm-17-a1b2c3/auth_token")
    stop(settings, "run", "sweeps.py:left", "--set", "sleep_s=0")
    again = "`ponderay submit sweeps.py:left --set sleep_s=0 --slurm --nodes 4` continues it.\n"
    assert again in printed(status, name="tiny.left")


def test_where_no_command_is_recorded_the_sweeps_own_is_shown(settings, printed):
    stop(settings, "notebook")
    assert ": `ponderay run tiny.left` continues it.\n" in printed(status, name="tiny.left")


def test_what_was_handed_out_and_never_started_is_not_said_to_run(settings, monkeypatch):
    """As where it waits for its place on a cluster."""
    run, started = worker.execute, []

    def execute(work, send):
        if len(started) == 2:  # a prerequisite and the first replicate
            raise KeyboardInterrupt
        started.append(work.label)
        run(work, send)

    monkeypatch.setattr(worker, "execute", execute)
    with pytest.raises(KeyboardInterrupt):
        drive(SWEEP, settings)
    found = load_study("tiny.left", settings).replicates
    assert [(one.condition, one.seed, one.state) for one in found] == [("a", 1, "complete")]


def test_what_a_cluster_has_begun_is_not_trained_anew_elsewhere(settings, monkeypatch):
    """A laptop sees the store and not the folder of the checkpoints."""
    laptop = Settings(settings.runs.parent / "laptop", settings.tracking_uri)
    monkeypatch.setattr(socket, "gethostname", lambda: "node3")
    monkeypatch.setattr(checkout, "command", lambda: "python -m orchestrator run tiny.left --seeds 2")
    stop(settings)
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop")
    said = r"a seed 1 was last trained on node3, .* not in .*laptop.* `ponderay submit tiny.left --seeds 2` continues"
    with pytest.raises(RefusedError, match=said):
        drive(SWEEP, laptop)
    assert run_here(SWEEP, laptop, Console(quiet=True), is_anew=True).num_failed == 0
