"""Strikes at what runs the work: Ray's processes, the disk, the clock, memory.

    python -m tests.faults.surroundings [--seed 1] [--only KIND ...] [--setups local cluster server]

Each round runs `ponderay run` of a small sweep (2 conditions x 2 seeds) and strikes once, when a random share of its
steps is done: local, on the Ray that the command makes; on a cluster of two nodes made by `ray start`; or beside a
tracking server by `ponderay serve`. The command must end by itself within 600 s. What was struck is mended then, and
the same command is run again until one ends with 0. Then must hold:

    every replicate is there once, with the digits of a run without Ray and no step twice; no output has a traceback;
    no process, actor or placement group is left.

Kinds: head_raylet_killed; second_node_lost (under elastic replicates); agent_killed (of the dashboard);
log_monitor_killed (the second node's); disk_full (another fills the disk of runs and tracking server for 20 s);
clock_back (all clocks, by an hour); second_clock_behind, second_clock_ahead (an hour apart from the head's);
session_removed (Ray's temporary folder); memory_limit (a control group's, of the command or of the second node, for
20 s, while another process in it takes 240 MB). Those of the head and of the second node need the cluster, clocks
libfaketime and a C compiler, disk_full the right to mount, memory_limit that to make a control group. A fault that
cannot be says so. What `test_matrix.py` and `test_lost_ray.py` try is not tried here.
Prints a Markdown table. Ends with 1 where a check failed.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}

from tests.faults import strikes
from tests.faults.hosts import Nodes, Setup, holding, served
from tests.faults.processes import MARK, kill_all, left_after, num_reports
from tests.faults.strikes import KINDS, ImpossibleError, Stage
from tests.integration.test_lost_ray import NUM_EPOCHS, SWEEP

LIMIT_S: Final = 600.0
"""A command that has not ended by then waits for ever."""

LEFT_S: Final = 20.0
"""How long Ray's agents may take to go."""

LOOK_S: Final = 0.15
STEP_S: Final = 2.0
MOMENTS: Final = (0.15, 0.6)
"""Between which shares of the steps a strike falls."""

MAX_AGAIN: Final = 5
NEVER: Final = -1
SAID_LENGTH: Final = 160
ROOT: Final = Path(__file__).parents[2]
CHECK: Final = "from tests.integration.test_lost_ray import check_digits; check_digits()"
ELASTIC: Final = """
def elastic():
    from dataclasses import replace
    from search_spaces.resources import Resources
    from tests.integration.sweeps import FIRST, IN_TRIAL

    first = replace(FIRST, resources=IN_TRIAL)
    return replace(sleepy(), prerequisites=(first,), resources=Resources(num_workers=(1, 2)))
"""
STRANGE: Final = (
    *(f"PONDERAY_{name}" for name in ("STORAGE", "TRACKING_URI", "SEARCH_URI")),
    *(f"RAY_{name}" for name in ("ADDRESS", "AUTH_MODE", "TMPDIR")),
)


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

    def row(self, kind: str, setup: str) -> str:
        """A line of the table."""
        if not self.is_possible:
            return f"| {setup} | {kind} | could not be: {self.struck} | | | | | |"
        code = "never" if self.code == NEVER else str(self.code)
        said = self.said.replace("|", "/")[:SAID_LENGTH]
        again = ", ".join(map(str, self.again)) or "-"
        held = f"failed ({len(self.problems)})" if self.problems else "held"
        return f"| {setup} | {kind} | {self.struck} | {code} | {self.duration_s:.0f} | {said} | {again} | {held} |"


def run(kind: str, setup: Setup, folder: Path, rng: random.Random) -> Verdict:
    """Runs a round in `folder`; ends all of its processes, however it ends."""
    verdict, stage = Verdict(), Stage(folder)
    folder.mkdir()
    folder.chmod(0o711)
    with environment(folder, stage.runs):
        (folder / "sleepy.py").write_text(SWEEP % STEP_S + ELASTIC)
        (folder / "home").mkdir()
        try:
            with strikes.prepared(kind, stage), _setup(kind, setup, stage):
                _course(kind, stage, verdict, rng.uniform(*MOMENTS))
        except ImpossibleError as error:
            verdict.struck, verdict.is_possible = str(error), False
        except (OSError, subprocess.SubprocessError) as error:
            verdict.problems.append(f"what is round the command failed: {error}")
        finally:
            left = left_after(folder, LEFT_S)
            verdict.problems += [f"process {number} is left: {command}" for number, command in left.items()]
            verdict.problems += holding(folder)
            kill_all(folder)
    return verdict


@contextlib.contextmanager
def environment(folder: Path, runs: Path) -> Iterator[None]:
    """Every process started in the block belongs to the round."""
    before = dict(os.environ)
    for name in STRANGE:
        os.environ.pop(name, None)
    places = {"PONDERAY_RUNS": runs, "PONDERAY_CACHE": folder / "cache", "TMPDIR": folder, "HOME": folder / "home"}
    places |= {MARK: folder, "RAY_AUTH_TOKEN_PATH": folder.parent / "token"}  # Ray reads it once in a process
    os.environ |= {name: str(place) for name, place in places.items()}
    os.environ |= {"PONDERAY_CLUSTER_WAIT": "1", "OMP_NUM_THREADS": "1"}  # of minutes: a killed head stays away
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), before.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


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
    def strike() -> None:
        """Once, when its moment has come; a strike that met nobody is tried again."""
        if not verdict.struck and num_reports(stage.runs) >= moment * 4 * NUM_EPOCHS:
            verdict.struck = strikes.strike(kind, stage)

    started, log = time.monotonic(), stage.folder / "command.log"
    ahead = stage.group.ahead if stage.group and not stage.nodes else ()
    sweep = "sleepy.py:elastic" if kind == "second_node_lost" else "sleepy.py:sleepy"
    command = [sys.executable, "-m", "orchestrator", "run", sweep, *(() if stage.nodes else ("--cpus", "2"))]
    verdict.code = _ended([*ahead, *command], stage, verdict, strike)
    verdict.duration_s, verdict.said = time.monotonic() - started, _last_line(log)
    strikes.release(stage)
    verdict.struck = stage.said or verdict.struck
    if not verdict.struck:
        verdict.problems.append("the strike met nobody")
    while 0 not in (verdict.code, *verdict.again) and len(verdict.again) < MAX_AGAIN:
        if stage.nodes:
            stage.nodes.mend()
        verdict.again.append(_ended(command, stage, verdict, lambda: None))
    check = [sys.executable, "-c", CHECK]
    checked = subprocess.run(check, cwd=stage.disk, capture_output=True, text=True, check=False)  # noqa: S603
    if checked.returncode:
        verdict.problems.append(f"the last command said {_last_line(log)}; {checked.stderr[-400:]}")
    if stage.nodes:
        stage.nodes.mend()
        deadline = time.monotonic() + LEFT_S
        while (left := stage.nodes.left()) and time.monotonic() < deadline:
            time.sleep(1)
        verdict.problems += [f"{one} is left in the cluster" for one in left]
    if "Traceback (most recent call last)" in log.read_text(errors="replace"):
        verdict.problems.append("a traceback is in the output")


def _ended(command: list[str], stage: Stage, verdict: Verdict, look: Callable[[], None]) -> int:
    """The exit code of a command, or NEVER; looks often until it ends."""
    with (stage.folder / "command.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=stage.folder
        )
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None:
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            verdict.problems.append(f"still waits after {LIMIT_S:.0f} s")
            return NEVER
        look()
        if stage.released_s and time.monotonic() > stage.released_s:
            strikes.release(stage)
        time.sleep(LOOK_S)
    return process.returncode


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs the rounds; Ctrl-C and SIGTERM end the one under way, with all of its processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--setups", nargs="+", choices=get_args(Setup), default=list(get_args(Setup)), metavar="SETUP")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    folder, rng, is_failed = Path(tempfile.mkdtemp(prefix="f-")), random.Random(chosen.seed), False
    folder.chmod(0o711)  # started by root, PostgreSQL runs as another user
    print("| setup | fault | strike | code | s | last sentence of the struck command | run again | verdict |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    try:
        for setup in chosen.setups:
            for kind in chosen.only:
                if kind.startswith(("head_", "second_")) and setup != "cluster":
                    continue
                place = folder / f"{setup[0]}{KINDS.index(kind)}"
                verdict = run(kind, setup, place, rng)
                print(verdict.row(kind, setup), flush=True)
                for problem in verdict.problems:
                    print(f"    {problem[:600]}", file=sys.stderr, flush=True)
                is_failed |= bool(verdict.problems)
                if verdict.problems:
                    print(f"    its folder: {place}", file=sys.stderr, flush=True)
                else:
                    shutil.rmtree(place, ignore_errors=True)
    except KeyboardInterrupt:
        sys.exit(f"Interrupted; what is left is in {folder}.")
    if not is_failed:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(is_failed)


if __name__ == "__main__":
    main()
