"""Inside Ray: a trial runs its work itself, or drives Ray Train workers that do."""

import json
import shutil
from typing import Any, Final

import ray
import ray.train
from ray import tune
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from ray.tune import PlacementGroupFactory

from orchestrator.storage import Record, ReplicateFolder
from orchestrator.work import Work

TRIAL_CPUS: Final = 0.1
"""A trial that drives workers must hold some CPU; its workers ask for as much less."""

NUM_RETRIES: Final = 3


def run_trial(params: dict[str, str]) -> None:
    """The Tune function: one piece of work, in this process or in Ray Train workers."""
    work = Work.model_validate_json(params["work"])
    if work.resources.num_workers:
        _run_workers(work)
        tune.report({"record": json.dumps(ReplicateFolder(work.folder, {}).state())})
    else:
        _run_here(work, is_train_worker=False)


def trial_resources(params: dict[str, str]) -> PlacementGroupFactory:
    """What Tune reserves for the trial itself; Ray Train reserves for its workers."""
    resources = Work.model_validate_json(params["work"]).resources
    cpus = TRIAL_CPUS if resources.num_workers else float(resources.num_cpus)
    return PlacementGroupFactory([{"CPU": cpus}])


def _trainer_type(num_workers: int) -> Any:
    """One worker needs no process group; without it neither trial nor controller loads torch, which takes seconds."""
    if num_workers == 1:
        return DataParallelTrainer
    from ray.train.torch import TorchTrainer

    return TorchTrainer


def _run_workers(work: Work) -> None:
    from ray.tune.integration.ray_train import TuneReportCallback

    resources = work.resources
    cpus = resources.cpus_per_worker - TRIAL_CPUS / resources.num_workers
    trainer = _trainer_type(resources.num_workers)(
        _run_in_worker,
        train_loop_config={"work": work.model_dump_json()},
        scaling_config=ray.train.ScalingConfig(
            num_workers=resources.num_workers,
            use_gpu=resources.gpus_per_worker > 0,
            resources_per_worker={"CPU": cpus}
            | ({"GPU": resources.gpus_per_worker} if resources.gpus_per_worker else {}),
        ),
        run_config=ray.train.RunConfig(
            name=work.key,
            storage_path=str(work.folder / "ray_train"),
            callbacks=[TuneReportCallback()],  # type: ignore[list-item, no-untyped-call]
            failure_config=ray.train.FailureConfig(max_failures=NUM_RETRIES),
        ),
    )
    trainer.fit()
    shutil.rmtree(work.folder / "ray_train", ignore_errors=True)


def _run_in_worker(loop_config: dict[str, str]) -> None:
    _run_here(Work.model_validate_json(loop_config["work"]), is_train_worker=True)


def _run_here(work: Work, is_train_worker: bool) -> None:
    import torch

    from orchestrator.execute import execute

    torch.set_num_threads(work.resources.cpus_per_worker)
    if work.resources.gpus_per_worker:
        from ray.train.torch import get_device

        torch.cuda.set_device(get_device())
    is_writer = not is_train_worker or ray.train.get_context().get_world_rank() == 0
    execute(work, _report_to_train if is_train_worker else _report_to_tune, is_writer)


def _report_to_tune(record: Record) -> None:
    tune.report({"record": json.dumps(record)})


def _report_to_train(record: Record) -> None:
    ray.train.report({"record": json.dumps(record)})
