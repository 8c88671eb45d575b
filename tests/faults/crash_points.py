"""Every moment at which a replicate may be cut off, tried: whenever it is, the replicate comes to the same end.

    python -m tests.faults.crash_points [--pairs 60] [--workers 2]

A replicate with a prerequisite (`replicate.py`) is run in a forked process that ends before the nth of its operations
on files, for each n: killed; killed in the middle of a write; with a loss of power after which only that is there which
was synced, contents and names; with one that keeps names and loses contents. Then the sweep is run again. Must hold:

    all that the work had reported is in its journal; journals, checkpoints, files for people, metrics and what
    `ponderay.checkpoint` gives are those of a run that nothing disturbed; a further run does nothing.

The same for pairs of crashes, the second one in what went on behind the first. Then with a bucket: each of its requests
fails once, is answered too late, or has its effect twice, or the process ends before it, and goes on on this machine or
on another. Then, at ten of the operations, with MLflow, whose rows must be equal, too.
Ends with 1 where something did not hold.
"""

import argparse
import gc
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "OMP_NUM_THREADS": "1"}

from tests.faults.course import MEMORY, Course, Crash, Loss, Way, course, undisturbed
from tests.faults.replicate import Run
from tests.faults.stored import StoredRun

ANSWERS: Final[tuple[Loss, ...]] = ("fails", "late", "twice", "killed", "moved")
NUM_WITH_ROWS: Final = 10


def of_files(operations: Sequence[str]) -> list[tuple[Crash, ...]]:
    """Every loss that leaves something else than the ones before it do.

    A write alone can be torn. What a loss of power leaves is another thing only behind a sync, and most has been
    reported before the next one; if names are kept, writes change nothing either.
    """
    verbs = [operation.partition(" ")[0] for operation in [*operations, "end"]]
    chosen = {
        "killed": verbs,
        "torn": [verb for verb in verbs if verb == "write"],
        "power": [verb for verb in verbs if verb in ("fsync", "end")],
        "contents": [verb for verb in verbs if verb not in ("write", "truncate")],
    }
    return [
        (Crash(number, loss),)
        for loss, kept in chosen.items()
        for number, verb in enumerate(verbs, start=1)
        if verb in kept
    ]


def pairs(courses: Sequence[Course], number: int, rng: random.Random) -> list[tuple[Crash, ...]]:
    """Some of these, each with a second crash in what went on behind it."""
    chosen = rng.sample([one for one in courses if one.num_operations], number)
    losses: tuple[Loss, ...] = ("killed", "power", "contents")
    return [(one.crashes[0][0], Crash(rng.randint(1, one.num_operations), rng.choice(losses))) for one in chosen]


def spread(operations: Sequence[str]) -> list[tuple[Crash, ...]]:
    """Kills at equal distances, the last one at the end."""
    steps = range(1, NUM_WITH_ROWS + 1)
    return [(Crash(1 + len(operations) * step // NUM_WITH_ROWS, "killed"),) for step in steps]


def tried(points: Iterable[tuple[Crash, ...]], way: Way, expected: Any, num_workers: int) -> list[Course]:
    """What comes of each; tells those after which something does not hold."""
    courses = []
    with multiprocessing.get_context("fork").Pool(num_workers) as pool:
        for one in pool.imap(partial(course, way=way, expected=expected), points, chunksize=2):
            courses.append(one)
            if one.problems:
                told = ", then ".join(f"{crash.loss} before {crash.number} ({name})" for crash, name in one.crashes)
                print(f"{way}, {told}:", *(f"\n    {problem[:400]}" for problem in one.problems), flush=True)
    return courses


def main() -> None:
    """Tries all, and prints how many there were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    started_s = time.monotonic()
    for number, made in enumerate((Run, StoredRun)):  # what a process loads once
        with tempfile.TemporaryDirectory() as folder:
            made(Path(folder), f"warm{number}").to_its_end()
    gc.collect()
    gc.freeze()
    ways: tuple[Way, ...] = ("folder", "bucket", "MLflow")
    expected, operations = zip(*map(undisturbed, ways), strict=True)
    courses = tried(of_files(operations[0]), "folder", expected[0], chosen.workers)
    courses += tried(pairs(courses, chosen.pairs, random.Random(1)), "folder", expected[0], chosen.workers)
    requests = [(Crash(number, loss),) for loss in ANSWERS for number in range(1, len(operations[1]) + 1)]
    courses += tried(requests, "bucket", expected[1], chosen.workers)
    courses += tried(spread(operations[2]), "MLflow", expected[2], chosen.workers)
    print(f"{len(operations[0])} operations on files, {len(operations[1])} requests to a bucket")
    counts = Counter((one.way, "pairs" if len(one.crashes) > 1 else one.crashes[0][0].loss) for one in courses)
    for (way, loss), number in counts.items():
        print(f"{way:8}{loss:10}{number:5}")
    num_bad = sum(bool(one.problems) for one in courses)
    print(f"{len(courses)} courses, {num_bad} with problems, {time.monotonic() - started_s:.0f} s")
    sys.exit(num_bad > 0)


if __name__ == "__main__":
    # What a killed process leaves goes with the folder.
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as tempfile.tempdir:
        main()
