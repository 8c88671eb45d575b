"""A campaign of strikes at what runs the work: Ray's processes, the disk, the clock, memory.

    python -m benchmarks.node_faults [--seed 1] [--only KIND ...] [--setups local cluster server]

Each round runs `ponderay run` of a small sweep (`faulty/sweeps.py`: 3 conditions x 2 seeds) and strikes once, when a
random share of its steps is done: local, on the Ray that the command makes; on a cluster of two nodes made by `ray
start`; or beside a tracking server by `ponderay serve`. The command must end by itself within 300 s. What was struck is
mended then, and the same command is run again until one ends with 0. Then must hold:

    every replicate is there once, with every metric equal, digit for digit, to what its config comes to when its
    trainable is run alone; journals, study and MLflow's runs agree; no output has a traceback; no process, actor or
    placement group is left.

Kinds: raylet_killed, gcs_killed (on a cluster the head's), agent_killed (of the dashboard), log_monitor_killed (the
second node's); disk_full (another fills the disk of runs and tracking server for 20 s); clock_back (all clocks, by
an hour); second_clock_behind, second_clock_ahead (an hour apart from the head's); session_removed (Ray's temporary
folder); memory_limit (a control group's, of the command or of the second node, for 20 s, while another process in it
takes 240 MB). Clocks need libfaketime and a C compiler, disk_full the right to mount, memory_limit that to make a
control group; a fault that cannot be says so.
Prints a Markdown table. Ends with 1 where a check failed.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}

from benchmarks.faulty import node_rounds
from benchmarks.faulty.hosts import Setup
from benchmarks.faulty.node_rounds import NEVER, Verdict
from benchmarks.faulty.strikes import KINDS

SETUPS: tuple[Setup, ...] = ("local", "cluster", "server")
SAID_LENGTH = 160


def row(kind: str, setup: str, verdict: Verdict) -> str:
    """One round as a line of the table."""
    if not verdict.is_possible:
        return f"| {setup} | {kind} | could not be: {verdict.struck} | | | | | |"
    code = "never" if verdict.code == NEVER else str(verdict.code)
    said = verdict.said.replace("|", "/")[:SAID_LENGTH]
    again = ", ".join(map(str, verdict.again)) or "-"
    held = f"failed ({len(verdict.problems)})" if verdict.problems else "held"
    return f"| {setup} | {kind} | {verdict.struck} | {code} | {verdict.duration_s:.0f} | {said} | {again} | {held} |"


def campaign(kinds: list[str], setups: list[Setup], seed: int, folder: Path) -> int:
    """Runs the rounds; returns the exit code."""
    rng, is_failed = random.Random(seed), False
    print("| setup | fault | strike | code | s | last sentence of the struck command | run again | verdict |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for setup in setups:
        for kind in kinds:
            if kind.startswith("second_") and setup != "cluster":
                continue
            place = folder / f"{setup[0]}{KINDS.index(kind)}"
            verdict = node_rounds.run(kind, setup, place, rng)
            print(row(kind, setup, verdict), flush=True)
            for problem in verdict.problems:
                print(f"    {problem[:600]}", file=sys.stderr, flush=True)
            is_failed |= bool(verdict.problems)
            if verdict.problems:
                print(f"    its folder: {place}", file=sys.stderr, flush=True)
            else:
                shutil.rmtree(place, ignore_errors=True)
    return int(is_failed)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs the campaign; Ctrl-C and SIGTERM end the round under way, with all of its processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--setups", nargs="+", choices=SETUPS, default=list(SETUPS), metavar="SETUP")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="nf-"))
    folder.chmod(0o711)  # started by root, PostgreSQL runs as another user
    try:
        sys.exit(campaign(chosen.only, chosen.setups, chosen.seed, folder))
    except KeyboardInterrupt:
        print(f"Interrupted; what is left is in {folder}.", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
