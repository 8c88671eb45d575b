"""A plan in words and numbers: what stands how, what a run would do, and the forecast with what it is based on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.environment.settings import Settings
from orchestrator.forecast import model as forecast
from orchestrator.forecast.model import Forecast, Interval, Measurement, PendingRun
from orchestrator.forecast.remaining_work import STATES, RunStatus, Snapshot
from orchestrator.scheduler.task import Task


def describe(
    snapshot: Snapshot, settings: Settings, num_cpus: float, num_gpus: float, calibrated_s: float | None
) -> dict[str, Any]:
    """The plan as stable JSON: sweep, machine, conditions, prerequisites, basis, notes, level, forecast.

    Its `forecast` has `least` and `most`, which differ for seeds by need and pruned searches only; each number of them
    is an object of low, median and high, or null where nothing was measured or set.
    """
    everything = snapshot.prerequisites + snapshot.replicates
    measured = _measurements(everything)
    handover_s = forecast.handover_s([status.records for status in everything])
    sizes = [status.checkpoint_bytes for status in snapshot.replicates if status.checkpoint_bytes]
    running = 0.0 if snapshot.sweep.keep_last or not sizes else 2 * sum(sizes) / len(sizes)
    cases, notes = {}, _notes(snapshot, num_gpus, calibrated_s)
    for case in ("least", "most"):
        left = _runs(snapshot, num_cpus, num_gpus, case)
        expected = forecast.forecast(measured, left, num_cpus, num_gpus, handover_s, running)
        cases[case] = _numbers(expected, settings)
        if expected.wall_s is not None:
            doubts = [f"not in the forecast, because none was timed yet: {kind}" for kind in expected.unknown]
            doubts += forecast.assumptions(measured, left)
            notes += [note for note in doubts if note not in notes]
    rows = [_row("condition", replicates) for replicates in _grouped(snapshot.replicates)]
    if snapshot.undrawn:
        count = {"to_do": snapshot.num_undrawn * len(snapshot.sweep.seeds)}
        rows.append(_row("condition", [RunStatus(snapshot.undrawn, "to do")]) | count)
    return {
        "sweep": snapshot.sweep.name,
        "machine": {"cpus": num_cpus, "gpus": num_gpus},
        "conditions": rows,
        "prerequisites": [_row("prerequisite", runs) for runs in _grouped(snapshot.prerequisites)],
        "basis": _basis(snapshot, calibrated_s),
        "notes": notes,
        "level": forecast.LEVEL,
        "forecast": cases,
    }


def _measurements(standings: Sequence[RunStatus]) -> list[Measurement]:
    """The runs that were timed; an unfinished run gets the share that finished ones spend after training besides."""
    measured, tails = [], _tails(standings)
    for status in standings:
        work, whole_s = status.task.work, status.timing.whole_s if status.timing else None
        if whole_s and status.state != "failed":
            is_whole = status.state == "complete" or _is_trained(status)
            size = status.size_bytes if is_whole else status.checkpoint_bytes * max(1, len(status.task.evaluations))
            tail = tails.get(work.trainable, 0.0)
            whole_s /= 1.0 if is_whole or tail == 1 else 1.0 - tail
            measured.append(Measurement(work.trainable, status.group, work.planned_steps, whole_s, size))
    return measured


def _is_trained(status: RunStatus) -> bool:
    num_steps = status.task.work.num_steps
    return num_steps is not None and status.step >= num_steps


def _tails(standings: Sequence[RunStatus]) -> dict[str, float]:
    """The mean share of a run's time after its last step, by trainable, where it was measured."""
    tails: dict[str, list[float]] = {}
    for status in standings:
        if status.timing and status.timing.tail_share > 0:
            tails.setdefault(status.task.work.trainable, []).append(status.timing.tail_share)
    return {kind: sum(shares) / len(shares) for kind, shares in tails.items()}


def _runs(snapshot: Snapshot, num_cpus: float, num_gpus: float, case: str) -> list[PendingRun]:
    """What is left, in the order in which it is handed out; `least` leaves out the seeds that may not be needed."""
    sweep, everything = snapshot.sweep, snapshot.prerequisites + snapshot.replicates
    optional: Sequence[int] = ()
    if case == "least" and (sweep.sequential or sweep.is_pruned):
        optional = sweep.seeds[sweep.sequential.minimum if sweep.sequential else 1 :]
    runs, tails = [], _tails(everything)
    for status in everything:
        is_optional = status.task.condition and status.task.seed in optional and status.state == "to do"
        if not status.is_left or (is_optional and status.group not in snapshot.kept):
            continue
        tail, num_steps = tails.get(status.task.work.trainable, 0.0), status.task.work.planned_steps
        rest = 0.0 if _is_trained(status) else (1 - tail) * (1 - (status.step / num_steps if num_steps else 0.0))
        run = _run(status.task, status.task.work.key, status.group, num_cpus, num_gpus)
        runs.append(replace(run, share=rest + tail * status.missing, held_bytes=status.size_bytes))
    return [*runs, *_undrawn_runs(snapshot, num_cpus, num_gpus, case)]


def _undrawn_runs(snapshot: Snapshot, num_cpus: float, num_gpus: float, case: str) -> Iterator[PendingRun]:
    """The runs of conditions not drawn yet; each waits for an earlier one, for a search opens only so many at once.

    Where a search prunes, the first of them gets all seeds at least: before that nothing can prune another.
    """
    every, is_pruned = snapshot.sweep.seeds, snapshot.sweep.is_pruned
    max_open = max(1, int(num_cpus) // (1 if is_pruned else len(every)))
    has_whole = any(run.task.seed in every[1:] and run.state == "complete" for run in snapshot.replicates)
    num_whole = 1 if not (snapshot.kept or has_whole) else 0
    num_seeds = [
        1 if is_pruned and case == "least" and i >= num_whole else len(every) for i in range(snapshot.num_undrawn)
    ]
    for number in range(snapshot.num_undrawn if snapshot.undrawn else 0):
        assert snapshot.undrawn is not None
        earlier = number - max_open
        waits = [f"trial {earlier} seed {seed}" for seed in every[: num_seeds[earlier]]] if earlier >= 0 else []
        for seed in every[: num_seeds[number]]:
            run = _run(snapshot.undrawn, f"trial {number} seed {seed}", f"trial {number}", num_cpus, num_gpus)
            yield replace(run, needs=(*run.needs, *waits))


def _run(task: Task, key: str, condition: str, num_cpus: float, num_gpus: float) -> PendingRun:
    """The whole of a run; one that can do with fewer workers takes what there is."""
    work = task.work
    cpus, gpus = min(work.resources.num_cpus, num_cpus), min(work.resources.num_gpus, num_gpus)
    return PendingRun(key, work.trainable, condition, work.planned_steps, cpus, gpus, needs=task.prerequisites)


def _numbers(expected: Forecast, settings: Settings) -> dict[str, Any]:
    def in_unit(interval: Interval | None, factor: float | None) -> dict[str, float] | None:
        return None if interval is None or factor is None else vars(interval.times(factor))

    price, watts, hours = settings.price_per_device_hour, settings.watts_per_device, 1 / 3600
    return {
        "runs": expected.num_left,
        "wall_s": in_unit(expected.wall_s, 1.0),
        "device_hours": in_unit(expected.device_s, hours),
        "money": in_unit(expected.device_s, None if price is None else price * hours),
        "kwh": in_unit(expected.device_s, None if watts is None else watts / 1000 * hours),
        "disk_bytes": in_unit(expected.disk_bytes, 1.0),
    }


def _basis(snapshot: Snapshot, calibrated_s: float | None) -> dict[str, Any]:
    """What the forecast of the replicates rests on."""
    timed = [run for run in snapshot.replicates if run.timing and run.timing.whole_s and run.state != "failed"]
    finished = [run for run in timed if run.state == "complete"]
    num_conditions = len({run.group for run in finished})
    unfinished = len(timed) - len(finished)
    parts = []
    if finished:
        parts.append(f"{_count(len(finished), 'finished replicate')} of {_count(num_conditions, 'condition')}")
    if unfinished:
        parts.append(f"the steps of {_count(unfinished, 'unfinished replicate')}")
    if calibrated_s:
        parts.append(f"a calibration of {calibrated_s:g} s")
    return {
        "finished": len(finished),
        "conditions": num_conditions,
        "unfinished": unfinished,
        "calibration_s": calibrated_s,
        "devices": sorted({record["device"] for run in timed for record in run.records if record.get("device")}),
        "text": ", ".join(parts) if timed else "nothing was measured yet",
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _notes(snapshot: Snapshot, num_gpus: float, calibrated_s: float | None) -> list[str]:
    """What the numbers cannot say by themselves."""
    notes = []
    timed = [run for run in snapshot.replicates if run.timing and run.timing.whole_s]
    if not timed and (snapshot.undrawn or any(run.is_left for run in snapshot.replicates)):
        way = "`--calibrate SECONDS` trains one replicate for so long and keeps its work"
        if snapshot.sweep.search:
            way = "start the search, stop it with Ctrl-C, which keeps its work, and plan again"
        notes.append(f"no step was timed yet: {way}")
    if timed and num_gpus and not any(run.task.work.resources.num_gpus for run in timed):
        notes.append("the replicates use no GPU; more GPUs do not help")
    if snapshot.sweep.sequential:
        question = snapshot.sweep.sequential.question
        notes.append(f"seeds by need: the question {question!r} takes a number of seeds between the least and the most")
    if snapshot.sweep.search and snapshot.sweep.search.halving:
        notes.append(f"curves are halved, which is not in the forecast: {snapshot.sweep.search.halving}")
    if snapshot.sweep.search and snapshot.sweep.search.pruned:
        notes.append("a pruned search gives a condition its other seeds only if nothing dominates its first")
    num_workers = max((run.task.work.resources.num_workers for run in snapshot.replicates if run.is_left), default=0)
    if calibrated_s and (num_workers > 1 or num_gpus):
        notes.append(
            "the calibration ran in one process on this machine, so it says little about workers or other GPUs"
        )
    failed = sum(run.state == "failed" for run in snapshot.replicates)
    if failed:
        notes.append(f"{_count(failed, 'failed replicate')} will not run again: their own code failed")
    return notes


def _grouped(standings: Sequence[RunStatus]) -> list[list[RunStatus]]:
    """The runs by the name of their condition or prerequisite, in order."""
    groups: dict[str, list[RunStatus]] = {}
    for status in standings:
        groups.setdefault(_name(status), []).append(status)
    return list(groups.values())


def _name(status: RunStatus) -> str:
    condition = status.task.condition
    return condition.name if condition else status.task.work.label.removeprefix("prerequisite ")


def _row(kind: str, standings: Sequence[RunStatus]) -> dict[str, Any]:
    """Numbers of replicates by state, and what one of them takes."""
    resources = standings[0].task.work.resources
    counts = {state.replace(" ", "_"): sum(run.state == state for run in standings) for state in STATES}
    unfinished = [
        {"seed": run.task.seed, "step": run.step, "num_steps": run.task.work.num_steps}
        for run in standings
        if run.state == "partly done"
    ]
    runs_in = "Ray Train's workers" if resources.num_workers else "the Tune trial"
    takes = {
        "workers": resources.num_workers,
        "cpus": resources.num_cpus,
        "gpus": resources.num_gpus,
        "runs_in": runs_in,
    }
    return {kind: _name(standings[0])} | counts | {"unfinished": unfinished} | takes
