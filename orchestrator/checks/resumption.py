"""Whether a replicate gives the same digits again, behind another one, and killed and resumed: by its first reports.

What they kept is tested too, so that a mistake in `evaluate` shows before the training, and not behind it.
"""

import contextlib
import json
import math
import multiprocessing
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.machine.processes import kill
from orchestrator.scheduler.task import Task
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.template import Template
from orchestrator.worker.work import Work
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError

TIMED: Final = re.compile(r"(_s|_ms|_mb|_per_s|_per_second|real_time_factor)(@.*)?$")
"""Metrics that no run repeats."""

TESTED: Final = "tested.json"

Numbers = Mapping[tuple[int, str], float]
"""Values by step and metric; those of evaluations have the step they were made at."""


@dataclass(frozen=True)
class Trials:
    """What four runs of the same replicate reported, as far as they were let.

    Attributes:
        whole, again: uninterrupted ones.
        behind: one that `run` would make behind another replicate on the same machine.
        before: the label of that other replicate.
        resumed: one that was killed after `killed_at` and went on.
        has_checkpoint: whether there was one to go on from.
        tested, tested_again: results of `evaluate` on the last checkpoint, in the process that had trained it and in
            another one; nothing where training was over, whose numbers have them, or where nothing is evaluated.
        test_fault: why there are none of one of them.
    """

    whole: Numbers
    again: Numbers
    behind: Numbers
    before: str
    resumed: Numbers
    killed_at: int
    has_checkpoint: bool
    tested: Numbers
    tested_again: Numbers
    test_fault: str


@dataclass(frozen=True)
class Difference:
    """The first number that is not what it was."""

    metric: str
    step: int
    expected: float
    found: float | None


class _EnoughError(BaseException):
    """Not for `except Exception` of a trainable."""


def try_out(
    sweep: Sweep, condition: Condition, settings: Settings, num_reports: int, tell: Callable[[str], None]
) -> Trials:
    """Runs the condition's first seed four times in folders below `settings.runs`, in processes of their own.

    Raises:
        InputError: if the replicate fails.
    """
    factory = TaskFactory(sweep, settings, num_gpus=0)
    needed = factory.prerequisites(condition, sweep.seeds[0])
    for task in needed.values():
        tell(f"Running {task.work.label}")
        _run(task.work, None, None)
    work = factory.replicate(condition, sweep.seeds[0], needed).work
    whole, again, behind, cut = (in_folder(work, settings.runs / name) for name in ("whole", "again", "behind", "cut"))
    for uninterrupted in (whole, again):
        tell(f"Running {work.label} to report {num_reports}")
        _run(uninterrupted, num_reports, None, is_tested=uninterrupted is whole)
    if (whole.folder / TESTED).exists():
        tell("Testing what it has kept")
        _in_process(_test, again)
    reported = [record["step"] for record in _folder(whole).records() if record["kind"] == "metrics"]
    if not reported:
        raise InputError(f"{work.label} ended without a report; `train` must call `trial.report`.")
    killed_at = reported[max(0, len(reported) // 2 - 1)]
    tell(f"Running {work.label}, killed after step {killed_at}")
    _run(cut, None, killed_at)
    has_checkpoint = bool(_folder(cut).checkpoints())
    tell(f"Running {work.label} on from there")
    _run(cut, len([step for step in reported if step > killed_at or not has_checkpoint]), None)
    before = in_folder(_another(factory, condition, needed).work, settings.runs / "before")
    tell(f"Running {work.label} behind {before.label}")
    with contextlib.closing(Template()) as template:
        for following in (before, behind):
            run_forked(template, following, num_reports)
    numbers, of_again, of_behind = numbers_of(whole), numbers_of(again), numbers_of(behind)
    (tested, fault), (tested_again, other_fault) = _tested(whole), _tested(again)
    return Trials(
        whole=numbers,
        again=of_again,
        behind=of_behind,
        before=before.label,
        resumed=numbers_of(cut),
        killed_at=killed_at,
        has_checkpoint=has_checkpoint,
        tested=tested,
        tested_again=tested_again,
        test_fault=fault or other_fault,
    )


def _another(factory: TaskFactory, condition: Condition, needed: Mapping[str, Task]) -> Task:
    """A replicate of another condition, else under another seed, else the same, that needs no more prerequisites."""
    seeds, others = factory.sweep.seeds, [other for other in factory.sweep.conditions if other.name != condition.name]
    keys = {task.work.key for task in needed.values()}
    for other, seed in [*((other, seeds[0]) for other in reversed(others)), *((condition, seed) for seed in seeds[1:])]:
        prerequisites = factory.prerequisites(other, seed)
        if {task.work.key for task in prerequisites.values()} <= keys:
            return factory.replicate(other, seed, prerequisites)
    return factory.replicate(condition, seeds[0], needed)


def run_forked(template: Template, work: Work, num_reports: int | None) -> None:
    """Runs a replicate as `run` does on a CPU, and ends it after so many reports; its journal says how it ended."""
    num_seen = 0
    process, started = 0, ""

    def send(record: Record) -> None:
        nonlocal num_seen, process, started
        process, started = record.get("pid", process), record.get("process_started", started)
        num_seen += record["kind"] == "metrics"
        if num_seen == num_reports and record["kind"] == "metrics" and not _is_last(work, record["step"]):
            kill(process, started)  # which may have ended meanwhile

    template.run(work, send, {})


def differences(expected: Numbers, found: Numbers) -> Iterator[Difference]:
    """Numbers of `expected` that `found` lacks or has otherwise, in order of steps; times are left out."""
    for (step, metric), value in sorted(untimed(expected).items()):
        other = found.get((step, metric))
        if other is None or not (other == value or (math.isnan(other) and math.isnan(value))):
            yield Difference(metric, step, value, other)


def untimed(numbers: Numbers) -> Numbers:
    """The numbers that a run repeats."""
    return {key: value for key, value in numbers.items() if not TIMED.search(key[1])}


def in_folder(work: Work, folder: Path) -> Work:
    """The same work in another folder."""
    return work.model_copy(update={"folder": folder, "shared": "", "attempt": folder.name})


def _folder(work: Work) -> ReplicateFolder:
    return ReplicateFolder(work.folder, {})


def numbers_of(work: Work) -> Numbers:
    """What its journal has."""
    records = [record for record in _folder(work).records() if record["kind"] in ("metrics", "evaluation")]
    return {(record["step"], name): value for record in records for name, value in record["metrics"].items()}


def _tested(work: Work) -> tuple[Numbers, str]:
    """The results of `_test`, and why there are none."""
    file = work.folder / TESTED
    if not file.exists():
        return {}, ""
    found = json.loads(file.read_text())
    return {(step, name): value for step, name, value in found["numbers"]}, found["fault"]


def _in_process(target: Callable[..., None], *arguments: object) -> int | None:
    """Calls `target` in a process of its own, and returns the exit code."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    try:
        process.join()
    finally:
        process.kill()
    return process.exitcode


def _run(work: Work, num_reports: int | None, kill_after: int | None, is_tested: bool = False) -> None:
    """Runs a replicate in a process of its own: until so many reports, or killed after a step, or to the end.

    Args:
        is_tested: whether the process then tests what it has kept.

    Raises:
        InputError: if it fails.
    """
    code = _in_process(_work, work, num_reports, kill_after, is_tested)
    reasons = [record["said"] for record in _folder(work).records() if record["kind"] == "set_aside"]
    if reasons:
        raise InputError(f"{work.label} cannot go on from what it reported: {reasons[0]}")
    refuse_failed(work)
    if code not in (0, -signal.SIGKILL if kill_after is not None else 0):
        raise InputError(f"{work.label} ended with exit code {code}, without a word of why.")


def refuse_failed(work: Work) -> None:
    """Raises InputError where the work has failed."""
    final = _folder(work).state()
    if final["state"] == "failed":
        raise InputError(f"{work.label} fails: {final['error']}")


def _work(work: Work, num_reports: int | None, kill_after: int | None, is_tested: bool) -> None:
    from orchestrator.worker.execute import execute

    num_seen = 0

    def send(record: Record) -> None:
        nonlocal num_seen
        if record["kind"] != "metrics":
            return
        num_seen += 1
        if record["step"] == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        if num_seen == num_reports and not _is_last(work, record["step"]):
            raise _EnoughError

    try:
        execute(work.model_copy(update={"attempt": f"{work.attempt} {os.getpid()}"}), send)  # a session of its own
    except _EnoughError:
        if is_tested:
            _test(work)


def _test(work: Work) -> None:
    """Tests the best checkpoint so far in every way that is wanted, and leaves the results in the work's folder."""
    from orchestrator.worker.execute import result_of
    from orchestrator.worker.failure import in_one_line

    trainable, config = work.loaded(), work.typed_config()
    folder = ReplicateFolder(work.folder, trainable.selection(config))
    numbers: list[tuple[int, str, float]] = []
    fault = ""
    for evaluation in trainable.evaluations(config) if folder.whole() else ():
        try:
            step, metrics, _ = result_of(work, folder, evaluation, lambda record: None, is_writer=True)
        except ArithmeticError:  # of a model that has hardly begun a metric may be infinite
            continue
        except Exception as error:
            fault = f"{evaluation.name!r} fails: {in_one_line(error)}"
            break
        numbers += [(step, name, value) for name, value in metrics.items()]
    if numbers or fault:
        (work.folder / TESTED).write_text(json.dumps({"fault": fault, "numbers": numbers}))


def _is_last(work: Work, step: int) -> bool:
    """Whether training is over, so that the evaluations belong to what is compared."""
    return work.num_steps is not None and step >= work.num_steps
