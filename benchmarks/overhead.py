"""What a sweep costs beside its replicates' own work: no-op replicates against plain Ray Tune's no-op trials.

python benchmarks/overhead.py [--replicates 200] [--workers 4]

All of it on one Ray instance of two CPUs, started before. Plain Tune is measured as it comes (a new process for each
trial) and with `reuse_actors=True`, which is what Ponderay uses; it records nothing but Tune's own files, Ponderay also
a journal, a checkpoint, MLflow's runs, metrics and parameters. Then the start-up of replicates in Ray Train workers.
"""

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path

from rich.console import Console

REPEATED_CONDITIONS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4, help="Replicates in Ray Train workers.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PONDERAY_RUNS"] = folder
        _start_ray()
        measure(arguments.replicates, arguments.workers, Path(folder))


def measure(num_replicates: int, num_in_workers: int, folder: Path) -> None:
    """Prints seconds and ratios."""
    _plain_tune(4, True, folder)  # what is loaded once is nobody's cost
    new = _plain_tune(num_replicates, False, folder)
    reused = _plain_tune(num_replicates, True, folder)
    ours = _sweep(num_replicates, 0)
    print(f"{num_replicates} no-op pieces of work on two CPUs, seconds:")
    print(f"  plain Ray Tune, as it comes          {new:7.1f}  ({1000 * new / num_replicates:.0f} ms each)")
    print(f"  plain Ray Tune, reuse_actors=True    {reused:7.1f}  ({1000 * reused / num_replicates:.0f} ms each)")
    print(f"  ponderay, everything recorded        {ours:7.1f}  ({1000 * ours / num_replicates:.0f} ms each)")
    print(
        f"  ponderay / plain as it comes {ours / new:.2f} (expected: below 1.3); / reusing actors {ours / reused:.2f}"
    )
    if num_in_workers:
        trainer = _plain_train(folder)
        in_workers = _sweep(num_in_workers, 1) / num_in_workers
        seconds = f"plain TorchTrainer {trainer:.1f} s, ponderay {in_workers:.1f} s"
        print(f"one no-op in a Ray Train worker: {seconds}, ponderay / plain {in_workers / trainer:.2f}")


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
        runtime_env=runtime_environment() | {"env_vars": {"PYTHONPATH": str(Path(__file__).parent.parent)}},
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


def _sweep(num_replicates: int, num_workers: int) -> float:
    from benchmarks.noop import NoopConfig
    from orchestrator.driver import run_on_ray
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.task_factory import TaskFactory
    from search_spaces.sweep import Condition, Objective, Resources, Sweep

    seeds = REPEATED_CONDITIONS if num_replicates % REPEATED_CONDITIONS == 0 else 1
    sweep = Sweep(
        name=f"noop.workers_{num_workers}",
        description="Does nothing.",
        trainable="benchmarks.noop",
        base=NoopConfig(),
        objectives=(Objective("error"),),
        conditions=tuple(Condition(f"c{i}", {"number": i}) for i in range(num_replicates // seeds)),
        seeds=tuple(range(1, seeds + 1)),
        resources=Resources(num_workers=num_workers),
    )
    began = time.perf_counter()
    outcome = run_on_ray(TaskFactory(sweep, read_settings(), 0), Console(quiet=True), None, accept_code=False)
    seconds = time.perf_counter() - began
    assert [replicate.state for replicate in outcome.replicates] == ["complete"] * num_replicates, outcome
    return seconds


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
