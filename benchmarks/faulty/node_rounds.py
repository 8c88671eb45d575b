"""One round against what runs the work: a small sweep is struck, what is hurt is mended, and the sweep is run again."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.faulty import checks, strikes
from benchmarks.faulty.hosts import Nodes, Setup, holding, served
from benchmarks.faulty.processes import kill_all, num_reports
from benchmarks.faulty.rounds import LOOK_S, environment
from benchmarks.faulty.strikes import ImpossibleError, Stage
from benchmarks.faulty.sweeps import NUM_STEPS

LIMIT_S: Final = 300.0
"""A command that has not ended by then waits for ever."""

MOMENTS: Final = (0.15, 0.6)
"""Between which shares of the steps a strike falls."""

MAX_AGAIN: Final = 5
SWEEP: Final = "benchmarks.faulty.sweeps:small"
NEVER: Final = -1


@dataclass
class Verdict:
    """How a round went.

    Attributes:
        struck: what the strike did; why it could not be, where `is_possible` is false.
        code: exit code of the struck command.
        again: exit codes of the same command, run again until it was done.
        problems: everything that should not be.
    """

    struck: str = ""
    is_possible: bool = True
    code: int = NEVER
    duration_s: float = 0.0
    said: str = ""
    again: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def run(kind: str, setup: Setup, folder: Path, rng: random.Random) -> Verdict:
    """Runs a round in `folder`; ends all of its processes, however it ends."""
    verdict, stage = Verdict(), Stage(folder)
    folder.mkdir()
    folder.chmod(0o711)
    with environment(folder):
        os.environ |= {"HOME": str(folder / "home"), "PONDERAY_RUNS": str(stage.runs)}
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(folder.parent / "token")  # Ray reads it once in a process
        (folder / "home").mkdir()
        try:
            with strikes.prepared(kind, stage), _setup(kind, setup, stage):
                _course(kind, stage, verdict, rng.uniform(*MOMENTS))
        except ImpossibleError as error:
            verdict.struck, verdict.is_possible = str(error), False
        except (OSError, subprocess.SubprocessError) as error:
            verdict.problems.append(f"what is round the command failed: {error}")
        finally:
            verdict.problems += [*checks.leaks(folder), *holding(folder)]
            kill_all(folder)
    return verdict


@contextlib.contextmanager
def _setup(kind: str, setup: Setup, stage: Stage) -> Iterator[None]:
    """What the command finds; all of it has the round's clock, but only the second node where it is alone in that."""
    is_of_second = kind.startswith("second_")
    os.environ |= {} if is_of_second else stage.variables
    with contextlib.ExitStack() as stack:
        if setup == "server":
            stack.enter_context(served(stage.disk / "server"))
        if setup == "cluster":
            ahead = stage.group.ahead if stage.group else ()
            stage.nodes = Nodes(stage.folder, stage.variables if is_of_second else {}, ahead)
            stack.callback(stage.nodes.shutdown)
            os.environ["RAY_ADDRESS"] = stage.nodes.address
        yield


def _course(kind: str, stage: Stage, verdict: Verdict, moment: float) -> None:
    started = time.monotonic()
    ahead = stage.group.ahead if stage.group and not stage.nodes else ()
    verdict.code = _command(stage, verdict, ahead, lambda: _strike(kind, stage, verdict, moment))
    verdict.duration_s, verdict.said = time.monotonic() - started, _last_line(stage)
    strikes.release(stage)
    verdict.struck = stage.said or verdict.struck
    if not verdict.struck:
        verdict.problems.append("the strike met nobody")
    while 0 not in (verdict.code, *verdict.again) and len(verdict.again) < MAX_AGAIN:
        if stage.nodes:
            stage.nodes.mend()
        verdict.again.append(_command(stage, verdict, (), lambda: None))
    if 0 not in (verdict.code, *verdict.again):
        verdict.problems.append(f"not done by the same command: {_last_line(stage)}")
    else:
        verdict.problems += checks.check("small", stage.runs)
    if stage.nodes:
        stage.nodes.mend()
        verdict.problems += [f"{one} is left in the cluster" for one in _left(stage.nodes)]
    if "Traceback (most recent call last)" in _log(stage).read_text(encoding="utf-8", errors="replace"):
        verdict.problems.append("a traceback is in the output")


def _command(stage: Stage, verdict: Verdict, ahead: tuple[str, ...], look: Callable[[], None]) -> int:
    """`ponderay run` until it ends; its exit code, or NEVER."""
    of_ray = () if stage.nodes else ("--cpus", "2")
    command = [*ahead, sys.executable, "-m", "orchestrator", "run", SWEEP, *of_ray]
    with _log(stage).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=stage.folder
        )
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            verdict.problems.append(f"still waits after {LIMIT_S:.0f} s: {_last_line(stage)}")
            return NEVER
        look()
        if stage.released_s and time.monotonic() > stage.released_s:
            strikes.release(stage)
        time.sleep(LOOK_S)
    return process.returncode


def _strike(kind: str, stage: Stage, verdict: Verdict, moment: float) -> None:
    """Once, when its moment has come; a strike that met nobody is tried again."""
    if not verdict.struck and num_reports(stage.runs) >= moment * NUM_STEPS["small"]:
        verdict.struck = strikes.strike(kind, stage)


def _left(nodes: Nodes) -> list[str]:
    deadline = time.monotonic() + checks.LEFT_S
    while (left := nodes.left()) and time.monotonic() < deadline:
        time.sleep(1)
    return left


def _log(stage: Stage) -> Path:
    return stage.folder / "command.log"


def _last_line(stage: Stage) -> str:
    lines = _log(stage).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
