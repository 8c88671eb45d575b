"""A model of the user's own in a file, and the real command in its folder."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
HANGS_S = 900
"""No command takes so long, on however busy a machine."""

PLAIN = """
import dataclasses
import json
import random
import tempfile
from pathlib import Path

import ponderay


@dataclasses.dataclass(frozen=True)
class Toy:
    width: int = 8
    num_steps: int = 6
    seed: int = 1


def train(config, trial):
    rng, loss, first = random.Random(config.seed), 1.0, 1
    if found := trial.restore():
        state = json.loads(found.read_text())
        loss, first = state["loss"], state["step"] + 1
        rng.setstate((state["rng"][0], tuple(state["rng"][1]), state["rng"][2]))
    for step in range(first, config.num_steps + 1):
        loss = 0.9 * loss + rng.random() / config.width  # NOISE
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "state.json"
            checkpoint.write_text(json.dumps({"loss": loss, "step": step, "rng": rng.getstate()}))
            trial.report({"loss": loss, "macs": config.width**2}, step=step, checkpoint=checkpoint)


toy = ponderay.Sweep(
    name="toy",
    description="A loss that falls with the width.",
    trainable=__name__,
    base=Toy(),
    conditions=ponderay.grid({"width": [4, 8]}),
    objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")),
    seeds=(1, 2, 3),
    reference="width=8",
)
"""


def write(folder: Path, source: str, name: str = "toy.py") -> Path:
    """The folder, with the file in it."""
    (folder / name).write_text(source)
    return folder


def ponderay(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the command says in the folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "PONDERAY_RUNS": str(folder / "runs")}
    command = [sys.executable, "-m", "orchestrator", *arguments]
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": HANGS_S}
    return subprocess.run(command, **options, check=False)  # noqa: S603


def of_a_page(line: str) -> tuple[str, str]:
    """A command of a page without its remark, and what it prints in the working folder.

    It is given in this process, which has loaded everything and may have a Ray. A sweep is run with two seeds of each
    condition, unless the line names CPUs.
    """
    from orchestrator.cli.main import app

    arguments = shlex.split(line, comments=True)
    few = ("--seeds", "2", "--cpus", "2") if arguments[0] == "run" and "--cpus" not in arguments else ()
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*arguments, *few], catch_exceptions=False)
    assert result.exit_code == 0, (line, result.output[-4000:])
    return " ".join(arguments[:2]), result.output
