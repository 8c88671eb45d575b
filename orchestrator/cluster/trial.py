"""Inside Ray: a trial has its work done by a process that is forked for it, or drives Ray Train workers that do it."""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import ray
import ray.train
from ray import tune
from ray.tune import PlacementGroupFactory

from orchestrator.cluster.ray_internals import trainer
from orchestrator.cluster.worker_setup import enter, pin_cluster
from orchestrator.journal.folder import PRUNED_FILE, ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import check_is_no_link
from orchestrator.machine.processes import start_time
from orchestrator.machine.shared_folder_check import read_mark
from orchestrator.worker.code_version import code_version
from orchestrator.worker.template import Template, traceable
from orchestrator.worker.work import Work
from trainables.config import refuse_lacking_secrets
from trainables.errors import InputError
from trainables.importing import put_first

TRIAL_CPUS: Final = 0.0001
"""What a trial that drives workers holds: the least that Ray knows of."""

ROOM_CPUS: Final = 0.02
"""Each worker asks for so much less than it uses, so that no node of just its size is taken by a trial alone."""

NUM_RETRIES: Final = 3
GATHER_S: Final = 0.5

TEMPLATE: Final = Template()
"""The template of this process, in which Tune runs one piece of work after another."""


def run_trial(params: dict[str, str]) -> None:
    """The Tune function: one piece of work, in a process that is forked for it or in Ray Train workers."""
    work = Work.model_validate_json(params["work"])
    if fault := machine_fault(work):
        tune.report({"records": json.dumps([_refused(work, fault)])})
    elif not work.resources.num_workers:
        _hide_devices(work)
        records = Records(tune.report, GATHER_S)
        lost = TEMPLATE.run(work, records.send, _place())
        records.flush()
        if lost:
            tune.report({"lost": lost})
    else:
        _run_workers(work)
        final = ReplicateFolder(work.folder, {}, work.shared).state()
        tune.report({"records": json.dumps([final] if final.get("attempt") == work.attempt else [])})


def trial_resources(params: dict[str, str]) -> PlacementGroupFactory:
    """What Tune reserves for the trial itself; Ray Train reserves for its workers."""
    resources = Work.model_validate_json(params["work"]).resources
    cpus = TRIAL_CPUS if resources.num_workers else float(resources.num_cpus)
    return PlacementGroupFactory([{"CPU": cpus}])


class _Report(ray.train.UserCallback):
    """Passes on to Tune what the first worker reports, in the process of the trial."""

    def after_report(self, run_context: object, metrics: list[dict[str, Any]], checkpoint: object) -> None:
        tune.report(metrics[0])


def _run_workers(work: Work) -> None:
    for path in (work.folder, work.folder / "ray_train"):
        check_is_no_link(path)
    process = {"pid": os.getpid(), "process_started": start_time(os.getpid())} | _place()
    tune.report({"records": json.dumps([{"kind": "driving", "time_ms": now_ms()} | process])})
    resources = work.resources
    least, most = resources.min_workers, resources.num_workers
    trainer_type = trainer(  # only with a process group does the trial load torch
        has_process_group=resources.num_workers > 1,
        reserved=lambda group: tune.report({"reserved": group}),
    )
    trainer_type(
        _run_in_worker,
        train_loop_config={"work": work.model_dump_json()},
        scaling_config=ray.train.ScalingConfig(
            num_workers=most if least == most else (least, most),  # type: ignore[arg-type]
            use_gpu=resources.gpus_per_worker > 0,
            resources_per_worker={"CPU": resources.cpus_per_worker - ROOM_CPUS}
            | ({"GPU": resources.gpus_per_worker} if resources.gpus_per_worker else {}),
        ),
        run_config=ray.train.RunConfig(
            name=work.key,
            storage_path=str(work.folder / "ray_train"),
            callbacks=[_Report()],  # type: ignore[list-item]
            failure_config=ray.train.FailureConfig(max_failures=NUM_RETRIES),
        ),
    ).fit()
    shutil.rmtree(work.folder / "ray_train", ignore_errors=True)


def _run_in_worker(loop_config: dict[str, str]) -> None:
    """Does the work in a process that Ray has made for this replicate alone."""
    work = Work.model_validate_json(loop_config["work"])
    records = Records(_report_in_step, GATHER_S if work.resources.num_workers == 1 else 0.0)
    _hide_devices(work)
    import torch

    from orchestrator.worker.execute import execute
    from trainables.distributed import gather

    if work.resources.gpus_per_worker:
        from ray.train.torch import get_device

        torch.cuda.set_device(get_device())
    if faults := [fault for fault in gather(machine_fault(work)) if fault]:  # of any of them: reports are in step
        records.send(_refused(work, faults[0]))
        records.flush()
        return
    mark = work.folder / PRUNED_FILE
    if any(gather(mark.is_file() and mark.read_text() == work.attempt)):
        return
    is_writer = ray.train.get_context().get_world_rank() == 0
    with traceable(work.folder) as process:
        execute(work, records.send, is_writer, process | _place())
    records.flush()


def _report_in_step(message: dict[str, Any]) -> None:
    """Passes a message on once all processes of the replicate have theirs.

    Raises:
        PeerLostError: if another one has failed: Ray Train then ends what they meet in, and what it raises here would
            hide why.
    """
    from trainables.distributed import PeerLostError

    try:
        ray.train.report(message)
    except ray.exceptions.RayActorError as error:
        raise PeerLostError("Another process of this replicate has ended.") from error


def _hide_devices(work: Work) -> None:
    if not work.resources.gpus_per_worker:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a card that was not reserved is somebody else's


def machine_fault(work: Work) -> str:
    """Why this machine, which may have come after the sweep began, cannot do the work; empty where it can."""
    here = socket.gethostname()
    pin_cluster()
    enter(work.working_folder)
    put_first(work.root)
    if not work.shared and read_mark(work.folder.parent) != work.mark:
        return (
            f"{work.folder.parent} on {here} is not the folder that the driver writes. Set PONDERAY_RUNS to one that "
            "all machines mount, or PONDERAY_STORAGE."
        )
    try:
        version = _version_here(work.trainable, work.config_type)
    except InputError:  # it cannot be found: loading it says so, in the replicate's own words
        return ""
    if version != work.code_version:
        remedy = "Install the same sources on both."
        if here == work.host:
            remedy = "They were changed while the sweep ran; run it again, with --accept-code to mix both."
        whose = f"{here} has version {version} of {work.trainable}, and the driver on {work.host} {work.code_version}"
        return f"{whose}. {remedy}"
    try:
        refuse_lacking_secrets(work.config)
    except InputError as error:
        return f"{error} It is not on {here}."
    return ""


@cache
def _version_here(trainable: str, config_type: str) -> str:
    """The version of the sources that this process imports or has imported: it may outlive a change of them."""
    return code_version(trainable, config_type)


def _refused(work: Work, fault: str) -> Record:
    """How work ends that this machine cannot do; another may."""
    final = {"kind": "state", "state": "failed", "attempt": work.attempt, "time_ms": now_ms()}
    return final | {"error": fault, "is_input_error": True, "is_machine_fault": True}


def _place() -> dict[str, Any]:
    """The node's id, by which the driver finds its processes."""
    return {"node_id": ray.get_runtime_context().get_node_id()}


class Records:
    """Records on their way to the driver, several in one message where they come thick and fast.

    Only where one process does the work, because several have to report in step. Each message costs the driver some
    10 ms.
    """

    def __init__(self, report: Callable[[dict[str, Any]], None], gather_s: float) -> None:
        self._report, self._gather_s = report, gather_s
        self._held: list[Record] = []
        self._sent_s = time.monotonic()

    def send(self, record: Record) -> None:
        """Passes `record` on, now or with the next ones; the first at once, for the next may be an hour away."""
        self._held.append(record)
        if record["kind"] == "started" or time.monotonic() - self._sent_s >= self._gather_s:
            self.flush()

    def flush(self) -> None:
        """Passes on all that is held."""
        if self._held:
            self._report({"records": json.dumps(self._held)})
            self._held, self._sent_s = [], time.monotonic()
