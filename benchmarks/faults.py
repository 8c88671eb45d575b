"""A campaign of faults: sweeps under every fault at random moments, after which nothing is lost and nothing doubled.

    python -m benchmarks.faults [--rounds 20] [--seed 1] [--store sqlite|postgresql] [--only KIND ...]

Each round runs one sweep of a tiny trainable on two CPUs (`faulty/sweeps.py`): listed (6 conditions x 5 seeds, of which
one condition diverges and one raises), searched by Optuna (16 trials x 2 seeds), or elastic (3 conditions x 2 seeds:
fewer than 30 replicates, since Ray Train takes 10 to 25 s to start each). Two to four faults befall it when a
random share of its steps is done; whenever its driver has ended, the same command is started again. Then must hold:

    every replicate is there once, with its key, its state and every metric equal, digit for digit, to what its config
    comes to when its trainable is run alone; the journals, the study and MLflow's own runs agree; no step is recorded
    twice; no run is RUNNING, none doubled; Optuna's trials are complete, each with the mean over its seeds; no process,
    actor or placement group is left.

Kinds: worker_killed, driver_killed, driver_and_worker_killed (SIGKILL); worker_stopped (SIGSTOP) and hung (sleeps for
ever), ended by the report timeout; host_memory (a true MemoryError), cuda_memory (raised by hand); disk_full (a
file-size limit, while a checkpoint is saved or copied, or the journal written); process_changed (at its end a replicate
changes seeding, default dtype and environment of its process, which no later one may see); damaged_newest, damaged_best
(bytes of a checkpoint flipped, its worker killed); driver_sigterm; driver_sigint (to its whole group, as Ctrl-C does);
node_lost (in rounds on a cluster of two nodes); tracking_away (in rounds beside an MLflow server, killed for 10 to 20
s); database_away (with --store postgresql, where tracking and searches are kept in databases of a PostgreSQL server: it
crashes, and is back after 10 to 20 s; tracking_away then takes it too); nan and exception (conditions of the listed
sweep). A fault that met nobody is injected again in a later round. Behind the rounds, bit_flips reads a replicate's
journal with each of its bits flipped, with and without the checksums of its lines.
Ends with 1 where a check failed, a kind that was injected never struck, or a flipped bit changed a record unseen.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1"}

from benchmarks.faulty import bit_flips, rounds, schedule
from benchmarks.faulty.injectors import ALWAYS, KINDS
from benchmarks.faulty.places import Store
from benchmarks.faulty.rounds import Course
from benchmarks.faulty.schedule import Deck, Round


class Tally:
    """How often each kind was injected, struck, and was in a round that failed."""

    def __init__(self) -> None:
        self.injected: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def add(self, one: Round, course: Course) -> None:
        """Takes in a round."""
        always = ALWAYS if one.sweep == "listed" else ()
        injected = [fault.kind for fault in one.faults if fault.is_injected]
        struck = [fault.kind for fault in one.faults if fault.is_struck]
        self.injected.update([*injected, *always])
        self.struck.update([*struck, *always])
        self.failed.update({*injected, *always} if course.problems else ())

    def show(self) -> None:
        """The table."""
        print(f"\n{'kind':26}{'injected':>9}{'struck':>8}{'in failed rounds':>18}")
        for kind in KINDS:
            print(f"{kind:26}{self.injected[kind]:9}{self.struck[kind]:8}{self.failed[kind]:18}")

    def is_idle(self) -> bool:
        """Whether some kind was injected and never struck."""
        return any(not self.struck[kind] for kind in self.injected)


def line(one: Round, course: Course) -> str:
    """One round for people: each kind with how often it struck of how often it was due."""
    due = Counter(fault.kind for fault in one.faults)
    struck = Counter(fault.kind for fault in one.faults if fault.is_struck)
    faults = ", ".join(f"{kind} {struck[kind]}/{number}" for kind, number in due.items()) or "only those it holds"
    verdict = "passed" if not course.problems else f"FAILED ({len(course.problems)})"
    where = f"{one.sweep}, {one.place}"
    return f"{one.number:5}  {where:17} {course.num_drivers:7} {course.duration_s:7.0f} s  {verdict:11} {faults}"


def campaign(number: int, only: list[str], store: Store, seed: int, folder: Path) -> int:
    """Runs the rounds; returns the exit code."""
    rng, tally, is_failed = random.Random(seed), Tally(), False
    deck = Deck(rng)
    print(
        f"{'round':>5}  {'sweep, place':17} {'drivers':>7} {'time':>9}  {'verdict':11} faults (struck/due)", flush=True
    )
    try:
        for one in schedule.rounds(number, only, store, rng, deck):
            place = folder / f"{one.number:02d}"
            course = rounds.run(one, place, rng)
            tally.add(one, course)
            print(line(one, course), flush=True)
            for problem in course.problems[:20]:
                print(f"         {problem[:600]}", flush=True)
            if course.problems:
                is_failed = True
                print(f"         its folder: {place}", flush=True)
            else:
                shutil.rmtree(place, ignore_errors=True)
            for fault in one.faults:
                if not fault.is_struck:
                    deck.put_back(fault.kind)
    finally:
        tally.show()
        if not any(folder.iterdir()):
            folder.rmdir()
    return int(is_failed or tally.is_idle())


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs the campaign; Ctrl-C and SIGTERM end the round under way, with all of its processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--only", nargs="+", choices=(*KINDS, "bit_flips"), default=[], metavar="KIND")
    chosen = parser.parse_args()
    if "database_away" in chosen.only and chosen.store != "postgresql":
        parser.error("database_away befalls a server: --store postgresql.")
    only = [kind for kind in chosen.only if kind != "bit_flips"]
    if chosen.only and not only:
        sys.exit(bool(bit_flips.show()))
    signal.signal(signal.SIGTERM, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    folder.chmod(0o711)  # started by root, PostgreSQL runs as another user
    try:
        code = campaign(chosen.rounds, only, chosen.store, chosen.seed, folder)
        if not chosen.only or "bit_flips" in chosen.only:
            code |= bool(bit_flips.show())
        sys.exit(code)
    except KeyboardInterrupt:
        print(f"Interrupted; what is left is in {folder}.", flush=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
