"""One piece of work from start to end, wherever it runs: train, evaluate, and say how it ended.

Every process of a distributed run executes this; rank 0 writes, all pass each record on. From top to bottom: who may
write in the folder (`execute`), the course of the work (`_run`), then its steps in their order.
"""

import contextlib
import math
import platform
import re
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import torch

from orchestrator.journal.file_names import step_of
from orchestrator.journal.folder import ReplicateFolder, size_bytes
from orchestrator.journal.lines import Record
from orchestrator.journal.packed_folder import opened, remove_unpacked
from orchestrator.journal.summary import is_over, summarise
from orchestrator.machine.allocator import keep_freed_memory
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import check_is_no_link
from orchestrator.machine.process_lock import Lease
from orchestrator.machine.processes import peak_memory_bytes
from orchestrator.machine.waiting import wait_until
from orchestrator.worker.contract import unreported
from orchestrator.worker.failure import in_one_line, in_our_words, is_outside, is_unreadable, traceback_of, words
from orchestrator.worker.journal_trial import EvaluationTrial, JournalTrial, Send
from orchestrator.worker.trainable import Trainable
from orchestrator.worker.work import Work, evaluation_id, evaluation_ids
from search_spaces.redaction import redacted_text, redacted_value
from trainables import distributed
from trainables.config import AnyConfig
from trainables.errors import InputError

LEFTOVER_S: Final = 20.0
"""A worker of a driver that died ends by itself within seconds; one that still holds the folder then hangs."""

LEASE_TIMEOUT_S: Final = 120.0
"""How long to wait for a folder that another machine holds."""

WRITER_S: Final = 20.0
"""How long another process of a distributed run waits until the writer has set a checkpoint aside."""

CHECKPOINT_STEP: Final = "checkpoint_step"
"""The metric that says which checkpoint an evaluation tested; a trainable's own of that name takes its place."""

NOWHERE: Final[Mapping[str, Any]] = {}


def execute(work: Work, send: Send, is_writer: bool = True, process: Mapping[str, Any] = NOWHERE) -> None:
    """Runs `work` to its end; the last record passed on has kind `state`: complete or failed.

    `process` tells the driver where to find this one.

    An exception of the trainable is recorded with its traceback and makes the work failed for good, because running it
    once more would end the same way; it is raised again only to take the other processes of a distributed run down.
    The loss of another process is no fault of the work: it is raised, so that Ray Train starts all of them again.
    """
    keep_freed_memory()
    trainable, config = work.loaded(), work.typed_config()
    folder = ReplicateFolder(work.folder, trainable.selection(config), work.shared, must_answer=True)
    torch.set_num_threads(work.resources.cpus_per_worker)
    check_is_no_link(work.folder)
    lease = Lease(work.folder / "in_use")
    if is_writer:
        if not lease.acquire():
            until = time.strftime("%H:%M:%S", time.localtime(time.time() + LEFTOVER_S))
            said = f"waits until {until} at most for {lease.holder()}, which an earlier driver has left at work on it"
            send({"kind": "waiting", "said": said})
        try:
            lease.wait(LEFTOVER_S)
        except TimeoutError:
            # A worker of a dead driver does not let go. No other can have a right to the folder: a driver hands work
            # out only under the lease of its sweep or prerequisite.
            lease.end_holder()
            lease.wait(LEASE_TIMEOUT_S)
    try:
        _run(work, trainable, config, folder, send, is_writer, process)
    finally:
        with contextlib.suppress(OSError, InputError):  # what could not be sent is made again
            folder.close()
        lease.release()


def _run(
    work: Work,
    trainable: Trainable,
    config: AnyConfig,
    folder: ReplicateFolder,
    send: Send,
    is_writer: bool,
    process: Mapping[str, Any],
) -> None:
    """The course of the work: each step is left out that an earlier session has done."""
    is_one_of_many = distributed.world_size() > 1  # asked now: where a peer is lost, the group may be gone
    under_test = ""  # the evaluation that a failure belongs to

    def write(record: Record) -> None:
        send(folder.append(record) if is_writer else record)

    try:
        evaluations = trainable.evaluations(config)
        damage, unsent = _begin(work, folder, is_writer, has_tests=bool(evaluations))
        folder.look()
        # Ray Train starts all processes again where one is lost, also one that was lost behind this record.
        if folder.state().get("attempt") == work.attempt:
            return
        done = folder.evaluations()
        identity = {"attempt": work.attempt, "code_version": work.code_version, "resources": asdict(work.resources)}
        identity |= {"config": redacted_value("", work.config), **work.part}
        identity |= {"evaluations": sorted(evaluation_ids(trainable, config))}
        write({"kind": "started"} | identity | _place() | dict(process))
        if damage:
            write({"kind": "set_aside", "said": damage})
        for record in unsent:
            send(record)

        if not folder.is_trained(work.num_steps):
            _train(work, trainable, config, folder, send, is_writer)
            if work.num_steps is None:
                write({"kind": "trained"})
            distributed.gather("the writer has kept the last checkpoint")  # before any process looks for it
            folder.look()
        summary = summarise(folder.records())
        if is_writer:
            if summary.step < 0:
                raise ValueError("`train` returned without a report; it must call `trial.report`.")
            if work.num_steps is not None and summary.step < work.num_steps:
                said = f"but its `num_steps` says {work.num_steps}"
                raise ValueError(f"`train` returned after step {summary.step}, {said}.")
            if fault := _fault_of_training(work, folder, has_tests=bool(evaluations)):
                raise fault
            if fault_of_selection := unreported(trainable, config, summary.histories):
                raise InputError(fault_of_selection)

        for evaluation in evaluations:
            under_test = evaluation_id(evaluation)
            # One that is done is made again where it lacks an objective that the sweep has by now.
            if under_test not in done or work.lacking(summary.metrics, evaluation.name):
                step, metrics, artifacts = result_of(work, folder, evaluation, send, is_writer)
                if lacking := work.lacking(summary.metrics | metrics, evaluation.name):
                    raise ValueError(lacking)
                if is_writer:
                    _check_artifacts(folder, evaluation.name, artifacts)
                    folder.keep_artifacts(artifacts)
                kept = {"artifacts": sorted(artifacts)} if artifacts else {}
                write({"kind": "evaluation", "id": under_test, "step": step, "metrics": metrics} | kept)
        under_test = ""

        # The record of the end comes last: it names the checkpoints that stay, and says what they take.
        best = {n: path.name for n in folder.selection if (path := folder.best(n))} if is_writer else {}
        products = best | {n: name for n, name in folder.products().items() if n not in best}
        if is_writer and not work.keep_last:
            folder.keep_best()
        final = {"kind": "state", "state": "complete", "attempt": work.attempt, "products": products}
        final |= {"selected_by": {name: best.metric for name, best in folder.selection.items() if name in products}}
        write(final | _footprint(folder))
    except Exception as error:
        _fail(error, work, folder, under_test, send, is_writer, is_one_of_many)


def _fail(
    error: Exception,
    work: Work,
    folder: ReplicateFolder,
    under_test: str,
    send: Send,
    is_writer: bool,
    is_one_of_many: bool,
) -> None:
    """Records how the work failed, in the handler of `error`, and takes the other processes of its run down."""
    if is_one_of_many and distributed.is_peer_failure(error):
        if is_writer and not isinstance(error, distributed.PeerLostError):  # which says itself what was
            lost = {"kind": "peer_lost", "error": in_one_line(error), "traceback": traceback_of(error)}
            _append_if_possible(folder, lost | {"attempt": work.attempt})
        raise error
    failure = {
        "kind": "state",
        "state": "failed",
        "attempt": work.attempt,
        "code_version": work.code_version,
        "is_lost": is_outside(error),
        "error": in_one_line(error),
        "evaluation": under_test,
        "is_input_error": isinstance(error, InputError),
        "traceback": traceback_of(error),
    }
    failure = _append_if_possible(folder, failure | _footprint(folder))
    if is_one_of_many:
        raise RuntimeError(failure["error"]) from None  # Ray logs it, so without secrets
    send(failure)


def _begin(work: Work, folder: ReplicateFolder, is_writer: bool, has_tests: bool) -> tuple[str, list[Record]]:
    """Damage that was mended, in words, and records that were not sent; the same in all processes.

    No process goes on before the writer has begun, and so they read the same journal.
    """
    begun: tuple[str, list[Record]] | None = None
    if is_writer:
        damage = folder.begin(work.attempt)
        remove_unpacked(folder.path)
        has_ended = folder.state()["state"] != "new" and folder.state().get("attempt") != work.attempt
        # Training that is over and left no result has no step from which to go on.
        if has_ended and (fault := _fault_of_training(work, folder, has_tests)):
            damage = f"{damage} {fault} So training starts anew.".strip()
            folder.begin_anew(damage)
        # The last session of this attempt could not send what one process alone wrote: reports must be in step.
        records = folder.records()
        starts = [
            i for i, record in enumerate(records) if record["kind"] == "started" and record["attempt"] == work.attempt
        ]
        begun = damage, [record for record in records[starts[-1] :] if record.get("is_untold")] if starts else []
    every_process: list[tuple[str, list[Record]] | None] = distributed.gather(begun)
    return next(of_writer for of_writer in every_process if of_writer)


def _train(
    work: Work, trainable: Trainable, config: AnyConfig, folder: ReplicateFolder, send: Send, is_writer: bool
) -> None:
    """Trains on from the newest checkpoint; where that cannot be read, from the one before, and then anew.

    Where training fails without it before any report, too, the fault is not the checkpoint's: it is put back.
    """
    unread: list[str] = []
    while True:
        trial = JournalTrial(folder, work, send, is_writer)
        try:
            with contextlib.closing(trial):
                trainable.train(config, trial)
            return
        except Exception as error:
            if not (is_writer or trial.has_reported) and trial.restored and folder.is_aside(trial.restored):
                raise _started_again(trial.restored) from None  # read while the writer set it aside
            # Where training failed by the same before, it had not read the checkpoint.
            may_be_read = trial.has_reported or folder.state().get("error") == in_one_line(error)
            if trial.restored and not may_be_read and not is_outside(error) and is_unreadable(error):
                unread.append(_set_aside(trial.restored, error, folder, send, is_writer))
                continue
            for name in () if trial.has_reported else unread:
                folder.put_back(name)
            if (clear := in_our_words(error, trial.opened)) is error:
                raise
            raise clear from None


def _set_aside(checkpoint: Path, error: Exception, folder: ReplicateFolder, send: Send, is_writer: bool) -> str:
    """Sets a checkpoint aside that cannot be read, and says so; returns its new name.

    Raises:
        PeerLostError: where several processes train together, for all of them have to start again; the next session
            says it.
    """
    if not is_writer:
        wait_until(lambda: not checkpoint.exists(), WRITER_S)
        raise _started_again(checkpoint)
    name = folder.set_aside(checkpoint)
    newest = folder.newest()
    whence = f"goes on after step {step_of(newest.name)}" if newest else "starts anew"
    event = f"{checkpoint} cannot be read ({words(error)}). It is set aside as {name}, and training {whence}."
    is_one_of_many = distributed.world_size() > 1
    record = folder.append({"kind": "set_aside", "said": redacted_text(event), "is_untold": is_one_of_many})
    if is_one_of_many:
        raise distributed.PeerLostError(record["said"])
    send(record)
    return name


def _started_again(checkpoint: Path) -> distributed.PeerLostError:
    return distributed.PeerLostError(f"The writer starts again, because {checkpoint.name} cannot be read.")


def _fault_of_training(work: Work, folder: ReplicateFolder, has_tests: bool) -> Exception | None:
    """Why training that is over left no result where no evaluation makes it; None where it did, or is not over."""
    records = folder.records()
    if has_tests or not is_over(records, work.num_steps):
        return None
    summary = summarise(records)
    for metric, value in summary.metrics.items():
        if not math.isfinite(value):
            return ArithmeticError(f"The metric {metric} is {value} at step {summary.step}.")
    lacking = work.lacking(summary.metrics)
    return ValueError(lacking) if lacking else None


def result_of(
    work: Work, folder: ReplicateFolder, evaluation: Any, send: Send, is_writer: bool
) -> tuple[int, dict[str, float], dict[str, bytes]]:
    """Tests the checkpoint that was best under `evaluation`; an evaluation added later tries every kept checkpoint.

    Returns:
        Its step, its metrics by `NAME@EVALUATION`, and its files by name.
    """
    name: str = evaluation.name
    selector = name if name in folder.selection or len(folder.selection) != 1 else next(iter(folder.selection))
    best, selecting = folder.best(selector), folder.selection.get(selector)
    seen = summarise(folder.records()).histories.get(selecting.metric, {}) if selecting else {}
    if selecting and seen and all(map(math.isnan, seen.values())):
        raise ArithmeticError(
            f"The metric {selecting.metric}, by which a checkpoint is selected, is nan at every step."
        )
    if best is None and (step := folder.best_step(selector)) is not None:
        raise OSError(f"The checkpoint of step {step}, which is the best by {selector}, is gone or damaged")
    candidates = [best] if best else list(folder.whole().values())
    if not candidates:
        raise InputError("`evaluate` needs a checkpoint, but `train` reported none; give one to `trial.report`.")
    if selecting is None:  # nothing could choose between several
        candidates = candidates[-1:]
    tried = []
    for candidate in candidates:
        with (
            contextlib.closing(EvaluationTrial(folder, work, send, is_writer)) as trial,
            opened(candidate, folder.path) as checkpoint,
        ):
            try:
                work.loaded().evaluate(work.typed_config(), checkpoint, evaluation, trial)
            except Exception as error:
                if (clear := in_our_words(error, candidate.name)) is error:
                    raise
                raise clear from None
        if not trial.reported or not trial.reported[1]:
            raise ValueError(f"`evaluate` ended without a report under {name!r}; it must call `trial.report`.")
        step, metrics, artifacts = trial.reported
        tried.append((step, {CHECKPOINT_STEP: step_of(candidate.name)} | metrics, artifacts))
    if len(tried) > 1 and selecting:
        metric = selecting.metric.partition("@")[0]
        if any(metric not in metrics for _, metrics, _ in tried):
            raise ValueError(
                f"Of several checkpoints the best is wanted, but `train` gave no checkpoint in a report with "
                f"{selecting.metric!r}, and `evaluate` does not report {metric!r}; put both into one report of `train`."
            )
        tried.sort(key=lambda result: selecting.cost(result[1][metric]))  # stable: of equals the earliest
    step, metrics, artifacts = tried[0]
    bad = [metric for metric, value in metrics.items() if not math.isfinite(value)]
    if bad:
        raise ArithmeticError(f"The metric {bad[0]}@{name} is {metrics[bad[0]]} at step {step}.")
    return step, {f"{metric}@{name}": float(value) for metric, value in metrics.items()}, artifacts


def _check_artifacts(folder: ReplicateFolder, evaluation: str, artifacts: Collection[str]) -> None:
    """Raises ValueError where training, or another evaluation, has kept a file of one of these names."""
    for record in folder.records():
        other = record.get("id", "").rpartition(".")[0]
        if other != evaluation and (doubled := sorted({*record.get("artifacts", ())} & {*artifacts})):
            by = f"`evaluate` under {other!r}" if other else "`train`"
            raise ValueError(
                f"{by} and `evaluate` under {evaluation!r} gave a file {doubled[0]!r}, of which one would be lost; put "
                "the evaluation's name into the file's."
            )


def _append_if_possible(folder: ReplicateFolder, record: Record) -> Record:
    """A full disk, or a bucket, may not take the record that says so; the driver still hears of it."""
    try:
        return folder.append(record)
    except (OSError, InputError):
        return record | {"time_ms": now_ms()}


def _footprint(folder: ReplicateFolder) -> dict[str, int]:
    gpu, size = torch.cuda.max_memory_reserved() if torch.cuda.is_available() else 0, size_bytes(folder.path)
    return {"peak_host_bytes": peak_memory_bytes(), "peak_gpu_bytes": gpu, "size_bytes": size}


def _place() -> dict[str, Any]:
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:  # the name, and which of the processor's instructions torch uses: others round sums in another way
        info = Path("/proc/cpuinfo")
        names = re.findall(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else []
        device = f"{names[0] if names else platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"
    return {"host": socket.gethostname(), "device": device, "threads": torch.get_num_threads()}
