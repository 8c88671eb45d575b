"""What commands cost before and beside their work: CPU seconds on a small recorded study, and of refusals.

python -m benchmarks.commands [--repeats 3]

Each call is a process of its own; the least of the repeats counts, with the processes that it started. The floors are
measured in the same run: an empty Python, and Python that imports torch, MLflow or Ray. Prints ratios to the empty
Python and to `import torch`. The study is of a toy sweep that learns nothing; asr.demo, which ships, has not run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.bad.places import TOY, environment, record

FLOORS: Final = {
    "python -c pass": ("-c", "pass"),
    "import torch": ("-c", "import torch"),
    "import mlflow": ("-c", "import mlflow"),
    "import ray": ("-c", "import ray"),
}
ANSWERS: Final = (
    "--help", "sweeps", "show asr.demo", "plan asr.demo", "plan act.tau_parity --smoke", "doctor", "status toy.py:toy",
    "plan toy.py:toy", "run toy.py:toy", "compare toy.py:toy", "pareto toy.py:toy", "report toy.py:toy",
)  # fmt: skip
REFUSALS: Final = (
    "status asr.demo", "report asr.demo", "pareto asr.demo", "analyse asr.demo surprisal", "plan asr.nothing",
    "plan asr.demo --cpus 99999999999999", "show asr.demo --seeds 10000000", "train asr.demo --condition nobody",
    "run asr.demo --set training.nothing=1", "run asr.demo --max-device-hours nan", "ui --port 70000", "serve --port 0",
    "jobs --address foo", "verify toy.py", "data get nothing",
)  # fmt: skip
BROKEN: Final = {
    "run asr.demo, PONDERAY_RUNS is a file": ("run asr.demo", {"PONDERAY_RUNS": "toy.py"}),
    "run asr.demo, PONDERAY_SEARCH_URI=foo": ("run asr.demo", {"PONDERAY_SEARCH_URI": "foo"}),
    "run asr.demo, PONDERAY_TRACKING_URI=foo": ("run asr.demo", {"PONDERAY_TRACKING_URI": "foo"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="ponderay-commands-") as name:
        folder = Path(name)
        record(folder / "recorded").rename(folder / "runs")
        (folder / "toy.py").write_text(TOY)
        floors = {what: _least(list(command), folder, {}, repeats, {0}) for what, command in FLOORS.items()}
        empty, torch = floors["python -c pass"], floors["import torch"]
        print(f"{'':48} {'CPU, s':>7} {'/ python':>9} {'/ import torch':>15}")
        for what, cpu_s in floors.items():
            _row(what, cpu_s, empty, torch)
        for command in ANSWERS:
            _row(command, _least(_program(command), folder, {}, repeats, {0}), empty, torch)
        for command in REFUSALS:
            _row(f"refused: {command}", _least(_program(command), folder, {}, repeats, {2, 3}), empty, torch)
        for what, (command, variables) in BROKEN.items():
            _row(f"refused: {what}", _least(_program(command), folder, variables, repeats, {2, 3}), empty, torch)


def _program(command: str) -> list[str]:
    return ["-m", "orchestrator", *command.split()]


def _least(arguments: list[str], folder: Path, variables: dict[str, str], repeats: int, codes: set[int]) -> float:
    """CPU seconds of the cheapest of the calls, the first of which may write caches."""
    found = []
    for _ in range(repeats):
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, *arguments],
            cwd=folder,
            env=environment(folder) | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise SystemExit(f"{' '.join(arguments)} ended with exit code {process.returncode}, not {sorted(codes)}")
        found.append(used.ru_utime + used.ru_stime)
    return min(found)


def _row(what: str, cpu_s: float, empty: float, torch: float) -> None:
    print(f"{what:48} {cpu_s:7.2f} {cpu_s / empty:9.1f} {cpu_s / torch:15.2f}", flush=True)


if __name__ == "__main__":
    main()
