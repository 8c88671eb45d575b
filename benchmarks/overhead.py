"""What a sweep costs beside its replicates' own work: no-op replicates against plain Ray Tune's no-op trials.

python benchmarks/overhead.py [--replicates 200 1000] [--workers 4] [--start] [--as-it-comes] [--json]

On one Ray instance of two CPUs, started before. The peer is plain Tune with `reuse_actors=True`, which is what Ponderay
uses; it records nothing but Tune's own files, Ponderay also a journal, a checkpoint, MLflow's runs, metrics and
parameters. Then the start-up of replicates in Ray Train workers beside that of a plain TorchTrainer. `--start` measures
the command `ponderay run` until its first replicate is at work, on a Ray and a store of its own.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parent.parent
REPEATED_CONDITIONS = 5
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, nargs="*", default=[200], help="One comparison for each number.")
    parser.add_argument("--workers", type=int, default=4, help="Replicates in Ray Train workers.")
    parser.add_argument("--start", action="store_true", help="Measure the start of `ponderay run` too.")
    parser.add_argument("--as-it-comes", action="store_true", help="Also Tune with a new process for each trial: slow.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object instead of lines.")
    arguments = parser.parse_args()
    found = measure(arguments.replicates, arguments.workers, arguments.start, arguments.as_it_comes)
    print(json.dumps(found) if arguments.json else "\n".join(_lines(found)))


def measure(sizes: list[int], num_in_workers: int, has_start: bool, is_slow_too: bool) -> Row:
    """Seconds and ratios, by what was measured."""
    found: Row = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in [name for name in os.environ if name.startswith("PONDERAY_")]:
            del os.environ[name]  # another store or bucket would be timed, and filled
        os.environ["PONDERAY_RUNS"] = folder
        if has_start:
            found["start"] = _start_of_run()
        _start_ray()
        if sizes:
            _plain_tune(4, True, Path(folder))  # what this process loads once is nobody's cost
            _sweep(4, 0)
            found["replicates"] = [_replicates(size, Path(folder), is_slow_too) for size in sizes]
        if num_in_workers:
            plain, ours = _plain_train(Path(folder)), _sweep(num_in_workers, 1)[0] / num_in_workers
            found["train_worker"] = {"plain_s": plain, "ponderay_s": ours, "ratio": ours / plain}
    return found


def _replicates(size: int, folder: Path, is_slow_too: bool) -> Row:
    plain, plain_cpu = _timed(lambda: _plain_tune(size, True, folder))
    ours, ours_cpu = _sweep(size, 0)
    row = {"num_replicates": size, "plain_reusing_s": plain, "ponderay_s": ours, "ratio_to_reusing": ours / plain}
    row |= {"plain_driver_cpu_s": plain_cpu, "ponderay_driver_cpu_s": ours_cpu}
    if is_slow_too:
        new = _plain_tune(size, False, folder)
        row |= {"plain_as_it_comes_s": new, "ratio_to_as_it_comes": ours / new}
    return row


def _lines(found: Row) -> list[str]:
    lines = []
    if start := found.get("start"):
        seconds = f"{start['first_replicate_s']:.1f} s, {start['driver_cpu_s']:.1f} s of the driver's CPU in all"
        lines.append(f"`ponderay run` to its first replicate at work: {seconds}")
    for row in found.get("replicates", []):
        size, plain, ours = row["num_replicates"], row["plain_reusing_s"], row["ponderay_s"]
        each = f"{1000 * plain / size:.0f} and {1000 * ours / size:.0f} ms each"
        cpu = f"driver's CPU {row['plain_driver_cpu_s']:.1f} and {row['ponderay_driver_cpu_s']:.1f} s"
        lines.append(
            f"{size} no-op replicates: plain Tune reusing actors {plain:.1f} s, ponderay {ours:.1f} s ({each}; {cpu})"
        )
        lines.append(f"  ponderay / reusing actors {row['ratio_to_reusing']:.2f} (wanted: at most 1.3)")
        if "ratio_to_as_it_comes" in row:
            lines.append(f"  ponderay / plain as it comes {row['ratio_to_as_it_comes']:.2f}")
    if worker := found.get("train_worker"):
        seconds = f"plain TorchTrainer {worker['plain_s']:.1f} s, ponderay {worker['ponderay_s']:.1f} s"
        lines.append(f"one no-op in a Ray Train worker: {seconds}, ponderay / plain {worker['ratio']:.2f}")
    return lines


def _start_of_run() -> Row:
    """From the start of the command to the first line of the first journal, by the clock of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PONDERAY_RUNS": folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "orchestrator", "run", "benchmarks/noop_sweep.py:four"]
        began = time.time()
        before = os.times()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)  # noqa: S603
        after = os.times()
        journals = [path.read_text().splitlines()[0] for path in Path(folder).rglob("journal.jsonl")]
    first_s = min(json.loads(line)["time_ms"] for line in journals) / 1000 - began
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"first_replicate_s": first_s, "driver_cpu_s": cpu_s}


def _timed(work: Any) -> tuple[float, float]:
    """Seconds, and those of this process's CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def _start_ray() -> None:
    import ray

    from orchestrator.cluster.session import RAY_SETTINGS
    from orchestrator.cluster.worker_setup import runtime_environment
    from orchestrator.environment.settings import read_settings

    read_settings()
    os.environ.update(RAY_SETTINGS)
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        runtime_env=runtime_environment() | {"env_vars": {"PYTHONPATH": str(ROOT)}},
        logging_level=logging.ERROR,
        log_to_driver=False,
    )


def _plain_tune(num_trials: int, reuse_actors: bool, folder: Path) -> float:
    from ray import tune

    def noop(config: dict[str, int]) -> None:
        tune.report({"error": float(config["number"])})

    began = time.perf_counter()
    tune.Tuner(
        noop,
        param_space={"number": tune.grid_search(list(range(num_trials)))},
        tune_config=tune.TuneConfig(reuse_actors=reuse_actors),
        run_config=tune.RunConfig(name=f"plain-{reuse_actors}-{num_trials}", storage_path=str(folder), verbose=0),
    ).fit()
    return time.perf_counter() - began


def _plain_train(folder: Path) -> float:
    import ray.train
    from ray.train.torch import TorchTrainer

    def noop() -> None:
        ray.train.report({"error": 0.0})

    began = time.perf_counter()
    TorchTrainer(
        noop,
        scaling_config=ray.train.ScalingConfig(num_workers=1),
        run_config=ray.train.RunConfig(name="plain-train", storage_path=str(folder)),
    ).fit()
    return time.perf_counter() - began


def _sweep(num_replicates: int, num_workers: int) -> tuple[float, float]:
    from benchmarks.noop_sweep import noops
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run as run_sweep

    seeds = REPEATED_CONDITIONS if num_replicates % REPEATED_CONDITIONS == 0 else 1
    sweep = noops(f"noop.{num_replicates}_in_{num_workers}_workers", num_replicates // seeds, seeds, num_workers)

    def run() -> None:
        outcome = run_sweep(sweep, read_settings(), Console(quiet=True), None, accept_code=False)
        assert [replicate.state for replicate in outcome.replicates] == ["complete"] * num_replicates, outcome

    return _timed(run)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
