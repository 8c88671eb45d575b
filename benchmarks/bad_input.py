"""Generated bad input over every command: arguments, environment, settings file, stored files; and edges of float64.

And every documented variable as junk, before cheap commands. `--cases 0`: edges and variables alone.

python -m benchmarks.bad_input [--cases 500] [--seed 20] [--only COMMAND] [--limit 5] [--jobs 1]

Each case is a process group of its own, with a limit of time. It must end with exit code 0 and an answer, or with 2 or
3 (1 where the command says that something failed) and one sentence, without a traceback, in less than `--limit` seconds
of CPU. Of a study whose numbers lie at the edges of float64, every output must be an answer. Prints what did not, then
a table by command; exit code 1 if anything did not.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.bad.cases import STARTS, Case, cases, edge_cases, variable_cases
from benchmarks.bad.places import environment, make, record

WALL_S: Final = 300.0
EDGES: Final = "edges"
FAILS: Final = frozenset({"verify", "logs"})
"""Commands whose exit code 1 is an answer here."""

SAYS_IN_TABLE: Final = frozenset({"doctor", "data check"})
"""What is wrong stands in what they print."""

NEVER_MADE: Final = (Path("/nonexistent-ponderay"), Path("/dev/null-x"))
USAGE: Final = re.compile(r"Invalid value|Missing |No such |Got unexpected|requires |takes ", re.IGNORECASE)


@dataclass(frozen=True)
class Ended:
    """How a case ended; `code` is None where it had to be killed."""

    code: int | None
    cpu_s: float
    out: str
    err: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--only", default="", help="Only the cases of this command.")
    parser.add_argument("--limit", type=float, default=5.0, help="Seconds of CPU.")
    parser.add_argument("--jobs", type=int, default=1, help="How many cases run at once.")
    arguments = parser.parse_args()
    drawn = cases(arguments.cases, arguments.seed) if arguments.cases else []
    every = [*drawn, *edge_cases(), *variable_cases()]
    chosen = [one for one in every if arguments.only in ("", one.command.name)]
    ends: dict[str, list[Ended]] = defaultdict(list)
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="ponderay-bad-") as folder:
        recorded = record(Path(folder) / "recorded")

        def try_out(number: int, case: Case) -> Ended:
            place = Path(folder) / f"case{number}"
            make(case, place, recorded)
            return run(case, place)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            for number, (case, ended) in enumerate(zip(chosen, pool.map(try_out, count(), chosen), strict=False)):
                ends[case.command.name].append(ended)
                if found := fault(case, ended, arguments.limit):
                    faults[case.command.name] += 1
                    _tell(number, case, ended, found)
    made = [str(place) for place in NEVER_MADE if place.exists()]
    _print_table(ends, faults)
    num_edges = sum(case.stored == EDGES for case in chosen)
    print(
        f"{len(chosen)} cases, {num_edges} of them at the edges of float64, seed {arguments.seed}: "
        f"{sum(faults.values())} faults; made in /: {made or 'nothing'}"
    )
    return 1 if faults or made else 0


def run(case: Case, place: Path) -> Ended:
    """One call, in a process group that is ended with it."""
    command = [sys.executable, "-m", "orchestrator", *case.command.words, *case.arguments]
    with (place / "stdout").open("wb") as out, (place / "stderr").open("wb") as err:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=place,
            env={**environment(place), **case.environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
        deadline, is_killed = time.monotonic() + WALL_S, False
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline and not is_killed:
                os.killpg(process.pid, signal.SIGKILL)
                is_killed = True
            time.sleep(0.02)
        code = process.returncode = None if is_killed else os.waitstatus_to_exitcode(status)
    said = ((place / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr"))
    return Ended(code, used.ru_utime + used.ru_stime, *said)


def fault(case: Case, ended: Ended, limit_s: float) -> str:
    """What is wrong with how the case ended; empty where nothing is."""
    name, said = case.command.name, ended.out + ended.err
    allowed = {0} if case.stored == EDGES else {2, 3} if name in STARTS else {0, 2, 3}
    if ended.code is None:
        return f"did not end within {WALL_S:g} s"
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    for_people = ended.err if "csv" in case.arguments else said  # a cell of csv is as it was written
    if strange := {sign for sign in for_people if not sign.isprintable()} - {"\n"}:
        return f"signs that a terminal obeys: {''.join(sorted(strange))!a}"
    if "sesame" in said:
        return "a password"
    if "RuntimeWarning" in said:
        return "a warning of numpy"
    if ended.code not in allowed | ({1} if name in FAILS else set()):
        return f"exit code {ended.code}"
    if ended.code == 0:
        return _answer_fault(case, ended) or _slow(ended, limit_s)
    sentences = ended.err.count("ponderay: ")
    is_told = sentences == 1 or USAGE.search(ended.err) or (name in SAYS_IN_TABLE and said.strip())
    if not is_told:
        return f"{sentences} sentences"
    return (
        "a sentence of more than 2,500 characters" if len(ended.err) > 2500 + 200 * sentences else _slow(ended, limit_s)
    )


def _answer_fault(case: Case, ended: Ended) -> str:
    if not ended.out.strip():
        return "exit code 0 without an answer"
    given = dict(zip(case.arguments, case.arguments[1:], strict=False))
    if given.get("--format") == "json":
        try:
            json.loads(ended.out, parse_constant=_refuse)
        except ValueError:
            return "an answer that is no JSON"
    return ""


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON knows no {constant}.")


def _slow(ended: Ended, limit_s: float) -> str:
    return f"{ended.cpu_s:.1f} s of CPU" if ended.cpu_s >= limit_s else ""


def _tell(number: int, case: Case, ended: Ended, found: str) -> None:
    words = " ".join(shlex.quote(word[:80]) for word in (*case.command.words, *case.arguments))
    about = f"{dict(case.environment)} settings={case.settings and case.settings[:40]!r} stored={case.stored}"
    lines = (ended.err or ended.out).strip().splitlines() or ["nothing"]
    text = f"case {number}: {found}: {words} | {about[:300]} | {ended.code} {lines[-1][:300]}"
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)


def _print_table(ends: dict[str, list[Ended]], faults: Counter[str]) -> None:
    print(f"{'command':12} {'cases':>5} {'exit 0':>6} {'1':>3} {'2':>4} {'3':>4} {'faults':>6} {'slowest CPU, s':>14}")
    for name, ended in ends.items():
        codes = Counter(one.code for one in ended)
        slowest = max(one.cpu_s for one in ended)
        counts = f"{len(ended):5} {codes[0]:6} {codes[1]:3} {codes[2]:4} {codes[3]:4} {faults[name]:6}"
        print(f"{name:12} {counts} {slowest:14.1f}")


if __name__ == "__main__":
    sys.exit(main())
