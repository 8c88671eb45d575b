"""Time and memory of `ponderay status` and `ponderay pareto` on 10,000 recorded replicates.

    python benchmarks/ten_thousand.py [--conditions 2000] [--seeds 5] [--repeats 3]

Writes a study of made-up numbers straight into the tables of a fresh SQLite store, laid out as a driver leaves it: a
run for each condition, with its replicates in tags, and a run for each replicate. The study file stands in the runs
folder. Every command is a process of its own. First figures: they are to be drawn and stored in MLflow, whose import
alone takes seconds. The last row reads the study as a command does that has no study file: through MLflow. Ratios are
over the floor: a process of Python that does nothing but parse the lines of the study file.
"""

import argparse
import gzip
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import STUDY_FILE, StudyFile, to_record
from orchestrator.results.study import Replicate
from orchestrator.tracking.replicate_tags import encode
from search_spaces.find import find_sweep
from trainables.config import flatten

SWEEP = "asr.lambda_grid"
EVALUATIONS = ("deterministic", "stochastic")
OTHERS = ("substitution_rate", "insertion_rate", "deletion_rate", "routing_rate")
MAIN = "from orchestrator.cli.main import main; main()"
ROOT = Path(__file__).parents[1]
MAKE = (
    "import pathlib, sys; from orchestrator.environment.settings import read_settings; "
    "from orchestrator.tracking.client import Tracking; from orchestrator.tracking.lease import StoreLease; "
    "from orchestrator.tracking.lease_holder import FolderLeases; "
    "settings = read_settings(); Tracking(settings).open_experiment(sys.argv[1]); "
    "lease = StoreLease(FolderLeases(settings), f'sweep {sys.argv[1]}'); lease.acquire(); lease.release(); "
    "pathlib.Path('lease').write_text(lease.token); from search_spaces.find import find_sweep; "
    "from orchestrator.tracking.declaration import text_of; "
    "pathlib.Path('declaration').write_text(text_of(find_sweep(sys.argv[1])))"
)
FLOOR = "import json, sys; found = [json.loads(line) for line in open(sys.argv[1])]"
READ = (
    "import pathlib, sys; from orchestrator.environment.settings import read_settings; "
    "from orchestrator.tracking.mlflow_reader import read_study; "
    "from mlflow import MlflowClient; client = MlflowClient(tracking_uri=read_settings().tracking_uri); "
    "read_study(client, 'x', client.get_experiment_by_name(sys.argv[1]).experiment_id)"
)


def replicates(number: int, num_seeds: int, drawn: random.Random) -> Iterator[Replicate]:
    """The replicates of one condition: dearer ones err less; one in two hundred has failed."""
    cost = 1e5 * 10 ** drawn.random()
    error = 0.2 + 2e4 / cost + 0.1 * drawn.random()
    for seed in range(1, num_seeds + 1):
        is_failed = drawn.random() < 0.005
        metrics = {f"{other}@{evaluation}": drawn.random() for other in OTHERS for evaluation in EVALUATIONS}
        for evaluation in EVALUATIONS:
            metrics[f"per@{evaluation}"] = error + drawn.gauss(0, 0.005)
            metrics[f"macs_per_frame@{evaluation}"] = cost * (1 + drawn.gauss(0, 0.01))
        yield Replicate(
            key=f"{drawn.getrandbits(64):016x}",
            condition=f"lambda_{number:04d}",
            seed=seed,
            state="failed" if is_failed else "complete",
            metrics={} if is_failed else metrics,
            error="DivergedError: The loss is nan at epoch 3, batch 1." if is_failed else "",
            code_version="f3a9c1d2e4b5",
            run_id=f"{drawn.getrandbits(128):032x}",
            evaluations=frozenset(f"{evaluation}.0123456789ab" for evaluation in EVALUATIONS),
            data_fingerprint="d" * 64,
            duration_s=600.0,
            num_devices=1.0,
            size_bytes=20_000_000,
            peak_host_bytes=1_500_000_000,
            host="made-up",
            device="cpu",
        )


def record(
    database: sqlite3.Connection, file: StudyFile, experiment_id: str, num_conditions: int, num_seeds: int
) -> None:
    """Fills the tables and the study file."""
    drawn, params = random.Random(1), {k: str(v) for k, v in flatten(find_sweep(SWEEP).base).items()}
    file.put("origin", "made up", dict.fromkeys(("commit", "packages", "command"), "made up"))
    start_ms = time.time_ns() // 1_000_000 - num_conditions
    for number in range(num_conditions):
        found, run_id = list(replicates(number, num_seeds, drawn)), f"{drawn.getrandbits(128):032x}"
        tags = {"ponderay.kind": "condition", "ponderay.condition": found[0].condition, "ponderay.state": "complete"}
        file.put("condition", found[0].condition, {"settings": {}, "config": params})
        for replicate in found:
            tags |= encode(replicate)
            place = {"condition": replicate.condition, "seed": replicate.seed}
            file.put("replicate", replicate.key, place | to_record(replicate) | {"origin": "made up"})
        metrics = {name.replace("@", "/"): value for name, value in found[0].metrics.items()}
        spread = {name + end: value for name, value in metrics.items() for end in ("", ".std", ".n")}
        updated = {"ponderay.updated": float(start_ms + number)}
        write_run(database, experiment_id, run_id, start_ms + number, tags, params, spread | updated)
        for replicate in found:
            tags = {"ponderay.kind": "replicate", "ponderay.key": replicate.key, "mlflow.parentRunId": run_id}
            tags |= {f"ponderay.{name}": "made up" for name in ("command", "packages", "git_commit", "host", "device")}
            metrics = {name.replace("@", "/"): value for name, value in replicate.metrics.items()}
            write_run(database, experiment_id, replicate.run_id, start_ms + number, tags, params, metrics)


def write_run(
    database: sqlite3.Connection,
    experiment_id: str,
    run_id: str,
    start_ms: int,
    tags: dict[str, str],
    params: dict[str, str],
    metrics: dict[str, float],
) -> None:
    """One run, as MLflow stores it."""
    database.execute(
        "INSERT INTO runs (run_uuid, name, source_type, user_id, status, start_time, end_time, lifecycle_stage, "
        "artifact_uri, experiment_id) VALUES (?, 'made up', 'LOCAL', 'nobody', 'FINISHED', ?, ?, 'active', '', ?)",
        (run_id, start_ms, start_ms, int(experiment_id)),
    )
    rows = [(name, value, run_id) for name, value in tags.items()]
    database.executemany("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)", rows)
    rows = [(name, value, run_id) for name, value in params.items()]
    database.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)", rows)
    values = [(name, value, start_ms, run_id) for name, value in metrics.items()]
    for table in ("metrics", "latest_metrics"):
        statement = f"INSERT INTO {table} (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, 0, 0)"
        database.executemany(statement, values)


def make_store(folder: Path, num_conditions: int, num_seeds: int) -> None:
    """An MLflow store in `folder`, with the study in it.

    A process of its own loads MLflow: what this one holds would count as its children's memory.
    """
    measure(folder, MAKE, SWEEP)
    with sqlite3.connect(folder / "mlflow.db") as database:
        ((experiment_id,),) = database.execute("SELECT experiment_id FROM experiments WHERE name = ?", (SWEEP,))
        file = StudyFile(Settings(folder, "").replicates(SWEEP), "")
        record(database, file, str(experiment_id), num_conditions, num_seeds)
        file.put("sweep", SWEEP, {name: (folder / name).read_text() for name in ("lease", "declaration")})
        file.close()


def measure(folder: Path, code: str, *arguments: str) -> tuple[float, float]:
    """Seconds and peak MB of a process."""
    environment = os.environ | {"PONDERAY_RUNS": str(folder), "PONDERAY_CACHE": str(folder / "cache")}
    environment.pop("PONDERAY_TRACKING_URI", None)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    started = time.perf_counter()
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603
    _, ended, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode:
        raise SystemExit(f"{arguments} ended with {process.returncode}.")
    return time.perf_counter() - started, usage.ru_maxrss / 1000


def show(what: str, found: list[tuple[float, float]], floor_s: float = 0.0) -> float:
    """Prints a row, the longest time and the largest memory, and returns the time; the floor itself is given none."""
    duration_s, peak_mb = max(time_s for time_s, _ in found), max(memory_mb for _, memory_mb in found)
    ratio = duration_s / (floor_s or duration_s)
    print(f"{what:40} {duration_s:7.2f} s {peak_mb:7.0f} MB {ratio:8.1f} over the floor", flush=True)
    return duration_s


def main() -> None:
    """Prints a row for each command; the longest of the repeats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conditions", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        make_store(folder, chosen.conditions, chosen.seeds)
        size_mb = (folder / "mlflow.db").stat().st_size / 1e6
        study_file = Settings(folder, "").replicates(SWEEP) / STUDY_FILE
        content = study_file.read_bytes()
        print(
            f"{chosen.conditions * chosen.seeds:,} replicates of {chosen.conditions:,} conditions recorded in "
            f"{time.perf_counter() - started:.0f} s, {size_mb:.0f} MB; study file {len(content) / 1e6:.1f} MB, "
            f"{len(gzip.compress(content, 6)) / 1e6:.1f} compressed; load {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} CPUs"
        )
        floor = [measure(folder, FLOOR, str(study_file)) for _ in range(chosen.repeats)]
        floor_s = show("floor: lines read and parsed", floor)
        show("pareto, first figures", [measure(folder, MAIN, "pareto", SWEEP)], floor_s)
        for command in ("status", "pareto"):
            for format in ("table", "json", "csv"):
                arguments = (command, SWEEP, "--format", format)
                found = [measure(folder, MAIN, *arguments) for _ in range(chosen.repeats)]
                show(f"{command} --format {format}", found, floor_s)
        show("read through MLflow's client", [measure(folder, READ, SWEEP) for _ in range(chosen.repeats)], floor_s)


if __name__ == "__main__":
    main()
