"""Digits of runs that are tried again, and that are killed and go on."""

import math
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from orchestrator.checks.resumption import Difference, differences, run_forked
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.task_factory import TaskFactory
from tests.door import PLAIN, write
from tests.integration.sweeps import tiny


def test_numbers_that_differ_or_lack_come_in_order_of_steps_and_times_do_not_count():
    expected = {
        (2, "loss"): 1.0,
        (1, "loss"): 2.0,
        (1, "step_s"): 0.1,
        (1, "frames_per_s@test"): 5.0,
        (3, "x"): math.nan,
    }
    found = {(2, "loss"): 1.0 + 1e-15, (1, "step_s"): 0.2, (3, "x"): math.nan}
    first, second = differences(expected, found)
    assert first == Difference("loss", 1, 2.0, None)
    assert second.step == 2 and second.found == 1.0 + 1e-15


def test_a_replicate_that_has_ended_before_it_is_to_be_ended_is_no_fault(workplace):
    """As on a busy machine, where its records are read late."""
    sweep = tiny({"a": {}})
    work = TaskFactory(sweep, read_settings(), 0).replicate(sweep.conditions[0], 1, {}).work
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()

    class Late:
        def run(self, work, send, place):
            for record in (
                {"kind": "started", "pid": ended.pid, "process_started": "1"},
                {"kind": "metrics", "step": 1},
            ):
                send(record)

    run_forked(Late(), work, 1)


NOISY = PLAIN.replace("  # NOISE", " + random.Random().random()")
KEEPS = PLAIN.replace(
    "    for step in",
    """    kept = Path("kept.txt")  # as a cache that does not know what it is of
    if config.width == 8:
        kept.touch()
    elif kept.exists():
        loss = 2.0
    for step in""",
)
FORGETS_AND_KEEPS = KEEPS.replace("rng.setstate(", "tuple(")

TESTED = PLAIN.replace("    rng, loss", "    globals()['scale'] = 3.0\n    rng, loss").replace(
    "toy = ponderay",
    """scale = 1.0


def evaluate(config, checkpoint, evaluation, trial):
    trial.report({"loss": ERROR, "macs": 1.0}, step=json.loads(checkpoint.read_text())["step"])


toy = ponderay""",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            FORGETS_AND_KEEPS,
            (
                "independent of what ran before (behind width=8 seed 1) differs in 4 of 8 numbers, first loss at step",
                "resumed (killed after step 2) differs in 2 of 8 numbers, first loss at step 3",
            ),
        ),
        (
            TESTED.replace("ERROR", "scale * random.random()"),
            ("evaluated (where it was trained, and in another process) differs in 1 of 3 numbers, first loss@test",),
        ),
        (TESTED.replace("ERROR", "no_such"), ("evaluation 'test' fails: NameError: name 'no_such' is not defined",)),
        (NOISY, ("repeated differs in 4 of 8 numbers, first loss at step 1",)),
    ],
    ids=["forgets its random stream and keeps a file", "needs what training sets", "fails where it is tested", "noisy"],
)
def test_a_replicate_is_tried_again_and_behind_another_and_killed_and_resumed(workplace, source, said):
    """One whose digits are the same is checked in the page about models of one's own."""
    write(workplace, source)
    found = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["check", "toy.py:toy"])
    assert found.exit_code == 1 and all(text in found.stdout for text in said), found.output
    assert "contract ok: toy, 2 conditions" in found.stdout
    assert not (workplace / "runs").exists(), "nothing is recorded"
