"""A plan in words and numbers: what stands how, what a run would do, and the forecast with what it is based on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.environment.settings import Settings
from orchestrator.forecast import model as forecast
from orchestrator.forecast.model import Forecast, Interval, Measurement, PendingRun
from orchestrator.forecast.remaining_work import STATES, RunStatus, Snapshot
from orchestrator.scheduler.task import Task
from search_spaces.sweep import Sweep


def describe(
    snapshot: Snapshot, settings: Settings, num_cpus: float, num_gpus: float, calibrated_s: float | None
) -> dict[str, Any]:
    """The plan as stable JSON: sweep, machine, conditions, prerequisites, basis, notes, level, forecast.

    Its `forecast` has `least` and `most`, which differ for seeds by need and pruned searches only; each number of them
    is an object of low, median and high, or null where nothing was measured or set.
    """
    everything = snapshot.prerequisites + snapshot.replicates
    measured = _measurements(everything)
    handover_s = forecast.handover_s([one.records for one in everything])
    sizes = [one.checkpoint_bytes for one in snapshot.replicates if one.checkpoint_bytes]
    running = 0.0 if snapshot.sweep.keep_last or not sizes else 2 * sum(sizes) / len(sizes)
    cases, notes = {}, _notes(snapshot, num_gpus, calibrated_s)
    for case in ("least", "most"):
        left = _runs(snapshot, num_cpus, num_gpus, case)
        expected = forecast.forecast(measured, left, num_cpus, num_gpus, handover_s, running)
        cases[case] = _numbers(expected, settings)
        notes += [note for note in _doubts(expected, measured, left) if note not in notes]
    rows = [_row("condition", one) for one in _grouped(snapshot.replicates)]
    if snapshot.undrawn:
        count = {"to_do": snapshot.num_undrawn * len(snapshot.sweep.seeds)}
        rows.append(_row("condition", [RunStatus(snapshot.undrawn, "to do")]) | count)
    return {
        "sweep": snapshot.sweep.name,
        "machine": {"cpus": num_cpus, "gpus": num_gpus},
        "conditions": rows,
        "prerequisites": [_row("prerequisite", one) for one in _grouped(snapshot.prerequisites)],
        "basis": _basis(snapshot, calibrated_s),
        "notes": notes,
        "level": forecast.LEVEL,
        "forecast": cases,
    }


def _measurements(standings: Sequence[RunStatus]) -> list[Measurement]:
    """One for each run that was timed; to an unfinished one comes the share that finished ones spend after training."""
    found, tails = [], _tails(standings)
    for one in standings:
        work, whole_s = one.task.work, one.timing.whole_s if one.timing else None
        if whole_s and one.state != "failed":
            is_whole = one.state == "complete" or _is_trained(one)
            size = one.size_bytes if is_whole else one.checkpoint_bytes * max(1, len(one.task.evaluations))
            tail = tails.get(work.trainable, 0.0)
            whole_s /= 1.0 if is_whole or tail == 1 else 1.0 - tail
            found.append(Measurement(work.trainable, _group(one), work.planned_steps, whole_s, size))
    return found


def _is_trained(status: RunStatus) -> bool:
    num_steps = status.task.work.num_steps
    return num_steps is not None and status.step >= num_steps


def _tails(standings: Sequence[RunStatus]) -> dict[str, float]:
    """By trainable, the mean share of a run's time after its last step, where any was seen."""
    tails: dict[str, list[float]] = {}
    for one in standings:
        if one.timing and one.timing.tail_share > 0:
            tails.setdefault(one.task.work.trainable, []).append(one.timing.tail_share)
    return {kind: sum(shares) / len(shares) for kind, shares in tails.items()}


def _group(status: RunStatus) -> str:
    """What shares a mean: a condition; each prerequisite stands for itself."""
    return status.task.condition.name if status.task.condition else status.task.work.key


def _runs(snapshot: Snapshot, num_cpus: float, num_gpus: float, case: str) -> list[PendingRun]:
    """What is left, in the order in which it is handed out; `least` leaves out the seeds that may not be needed."""
    sweep, everything = snapshot.sweep, snapshot.prerequisites + snapshot.replicates
    optional = _optional_seeds(sweep) if case == "least" else ()
    runs, tails = [], _tails(everything)
    for one in everything:
        is_optional = one.task.condition and one.task.seed in optional and one.state == "to do"
        is_optional = is_optional and _group(one) not in snapshot.kept
        if one.is_left and not is_optional:
            tail = tails.get(one.task.work.trainable, 0.0)
            num_steps = one.task.work.planned_steps
            rest = 0.0 if _is_trained(one) else (1 - tail) * (1 - (one.step / num_steps if num_steps else 0.0))
            run = _run(one.task, one.task.work.key, _group(one), num_cpus, num_gpus)
            runs.append(replace(run, share=rest + tail * one.missing, held_bytes=one.size_bytes))
    return [*runs, *_undrawn_runs(snapshot, num_cpus, num_gpus, case)]


def _optional_seeds(sweep: Sweep) -> Sequence[int]:
    """Those that a condition may not need."""
    if sweep.sequential:
        return sweep.seeds[sweep.sequential.minimum :]
    return sweep.seeds[1:] if sweep.is_pruned else ()


def _undrawn_runs(snapshot: Snapshot, num_cpus: float, num_gpus: float, case: str) -> Iterator[PendingRun]:
    """Of conditions not drawn yet: only as many are open at once as a search allows, so each waits for an earlier.

    Where a search prunes, the first of them gets all seeds at least: before that nothing can prune another.
    """
    every, is_pruned = snapshot.sweep.seeds, snapshot.sweep.is_pruned
    max_open = max(1, int(num_cpus) // (1 if is_pruned else len(every)))
    has_whole = any(one.task.seed in every[1:] and one.state == "complete" for one in snapshot.replicates)
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
    def told(interval: Interval | None, factor: float | None) -> dict[str, float] | None:
        return None if interval is None or factor is None else vars(interval.times(factor))

    watts, hours = settings.watts_per_device, 1 / 3600
    return {
        "runs": expected.num_left,
        "wall_s": told(expected.wall_s, 1.0),
        "device_hours": told(expected.device_s, hours),
        "money": told(expected.device_s, None if (price := settings.price_per_device_hour) is None else price * hours),
        "kwh": told(expected.device_s, None if watts is None else watts / 1000 * hours),
        "disk_bytes": told(expected.disk_bytes, 1.0),
    }


def _basis(snapshot: Snapshot, calibrated_s: float | None) -> dict[str, Any]:
    """What the forecast of the replicates rests on."""
    timed = [one for one in snapshot.replicates if one.timing and one.timing.whole_s and one.state != "failed"]
    finished = [one for one in timed if one.state == "complete"]
    num_conditions = len({_group(one) for one in finished})
    unfinished = len(timed) - len(finished)
    said = (
        [f"{_count(len(finished), 'finished replicate')} of {_count(num_conditions, 'condition')}"] if finished else []
    )
    said += [f"the steps of {_count(unfinished, 'unfinished replicate')}"] if unfinished else []
    said += [f"a calibration of {calibrated_s:g} s"] if calibrated_s else []
    return {
        "finished": len(finished),
        "conditions": num_conditions,
        "unfinished": unfinished,
        "calibration_s": calibrated_s,
        "devices": sorted({r["device"] for one in timed for r in one.records if r.get("device")}),
        "text": ", ".join(said) if timed else "nothing was measured yet",
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _notes(snapshot: Snapshot, num_gpus: float, calibrated_s: float | None) -> list[str]:
    """What the numbers cannot say by themselves."""
    notes = []
    timed = [one for one in snapshot.replicates if one.timing and one.timing.whole_s]
    if not timed and (snapshot.undrawn or any(one.is_left for one in snapshot.replicates)):
        notes.append("no step was timed yet: `--calibrate SECONDS` trains one replicate for so long and keeps its work")
    if timed and num_gpus and not any(one.task.work.resources.num_gpus for one in timed):
        notes.append("the replicates use no GPU; more GPUs do not help")
    if snapshot.sweep.sequential:
        question = snapshot.sweep.sequential.question
        notes.append(f"seeds by need: the question {question!r} takes a number of seeds between the least and the most")
    if snapshot.sweep.is_pruned:
        notes.append("a pruned search gives a condition its other seeds only if nothing dominates its first")
    num_workers = max((one.task.work.resources.num_workers for one in snapshot.replicates if one.is_left), default=0)
    if calibrated_s and (num_workers > 1 or num_gpus):
        notes.append(
            "the calibration ran in one process on this machine, so it says little about workers or other GPUs"
        )
    failed = sum(one.state == "failed" for one in snapshot.replicates)
    if failed:
        notes.append(f"{_count(failed, 'failed replicate')} will not run again: their own code failed")
    return notes


def _doubts(expected: Forecast, measured: Sequence[Measurement], left: Sequence[PendingRun]) -> list[str]:
    """What the forecast leaves out or assumes."""
    if expected.wall_s is None:
        return []
    return [
        f"not in the forecast, because none was timed yet: {kind}" for kind in expected.unknown
    ] + forecast.assumptions(measured, left)


def _grouped(standings: Sequence[RunStatus]) -> list[list[RunStatus]]:
    """By the name of the condition or prerequisite, in order."""
    groups: dict[str, list[RunStatus]] = {}
    for one in standings:
        groups.setdefault(_name(one), []).append(one)
    return list(groups.values())


def _name(status: RunStatus) -> str:
    condition = status.task.condition
    return condition.name if condition else status.task.work.label.removeprefix("prerequisite ")


def _row(kind: str, standings: Sequence[RunStatus]) -> dict[str, Any]:
    """Numbers of replicates by state, and what one of them takes."""
    resources = standings[0].task.work.resources
    counts = {state.replace(" ", "_"): sum(one.state == state for one in standings) for state in STATES}
    unfinished = [
        {"seed": one.task.seed, "step": one.step, "num_steps": one.task.work.num_steps}
        for one in standings
        if one.state == "partly done"
    ]
    takes = {"workers": resources.num_workers, "cpus": resources.num_cpus, "gpus": resources.num_gpus}
    return {kind: _name(standings[0])} | counts | {"unfinished": unfinished} | takes
