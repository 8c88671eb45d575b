"""The command `ponderay plan`: what a run would do and cost, before it starts."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orchestrator.cli.options import AcceptCode, Conditions, Grid, Resources, Seeds, Smoke, SweepName, Values, find
from orchestrator.console.errors import RefusedError
from orchestrator.console.printing import Format, OutputFormat, err, out, print_rows
from search_spaces.bounds import MOST_DEVICES, MOST_TIMEOUT_S
from trainables.errors import InputError, shown

if TYPE_CHECKING:
    from orchestrator.forecast.remaining_work import Snapshot
    from orchestrator.journal.folder import ReplicateFolder
    from orchestrator.journal.lines import Record

GRACE_S: Final = 30.0
POLL_S: Final = 0.1
TRAIN: Final = (sys.executable, "-c", "from orchestrator.cli.main import main; main()", "train")
NUMBERS: Final = {
    "wall_s": "wall time",
    "device_hours": "device hours",
    "money": "money",
    "kwh": "energy",
    "disk_bytes": "disk",
}


def _seconds(given: str | float) -> float:
    """No bound of a number keeps nan out."""
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= MOST_TIMEOUT_S:
        raise typer.BadParameter(f"It must be seconds from 1 to {MOST_TIMEOUT_S:,}, but got {shown(given)}.")
    return seconds


Cpus = Annotated[
    int | None, typer.Option(min=1, max=MOST_DEVICES, help="CPUs of the machine or cluster; default: this machine's.")
]
Gpus = Annotated[int, typer.Option(min=0, max=MOST_DEVICES, help="GPUs of the machine or cluster; default: none.")]
Calibrate = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        parser=_seconds,
        help="First train one remaining replicate for so long and forecast from that; `run` continues its work.",
    ),
]


def plan(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    conditions: Conditions = None,
    grid: Grid = None,
    resources: Resources = None,
    cpus: Cpus = None,
    gpus: Gpus = 0,
    calibrate: Calibrate = None,
    accept_code: AcceptCode = False,
    format: OutputFormat = Format.table,
) -> None:
    """Show what `run` would do, how long it would take and what it would cost, each with an interval.

    It changes nothing and refuses what `run` would refuse; with --calibrate it trains a little and keeps that work.
    """
    from orchestrator.checks.check import refuse_failed
    from orchestrator.checks.sweep import check_places
    from orchestrator.cluster.address import refuse_silent
    from orchestrator.environment.settings import read_settings
    from orchestrator.forecast.remaining_work import look
    from orchestrator.forecast.summary import describe

    settings, num_cpus = read_settings(), cpus or os.cpu_count() or 1
    sweep = find(name, smoke, values, seeds, resources, conditions, grid)
    refuse_failed(check_places(settings))
    refuse_silent()
    snapshot = look(sweep, settings, num_cpus, gpus, accept_code)
    if calibrate and grid:
        raise InputError(
            "--calibrate trains a condition that the sweep declares; leave --grid out, or plan without it."
        )
    if calibrate:
        arguments = [*(["--smoke"] if smoke else []), *(["--accept-code"] if accept_code else [])]
        arguments += [argument for value in values or [] for argument in ("--set", value)]
        _calibrate(snapshot, [name, *arguments], calibrate)
        snapshot = look(sweep, settings, num_cpus, gpus, accept_code)
    report = describe(snapshot, settings, num_cpus, gpus, calibrate)
    if os.environ.get("RAY_ADDRESS") and not cpus:
        report["notes"].append("the plan does not ask the cluster at RAY_ADDRESS; give its size with --cpus and --gpus")
    if format is Format.json:
        print(json.dumps(report, indent=2))
    elif format is Format.csv:
        print_rows(_csv_rows(report), format, "")
    else:
        _print_table(report)


def _calibrate(snapshot: "Snapshot", arguments: list[str], seconds: float) -> None:
    """Trains the first replicate that is left for `seconds` from when its work, or a prerequisite's, starts."""
    from orchestrator.journal.folder import ReplicateFolder

    if snapshot.sweep.search:
        raise InputError("--calibrate needs listed conditions; start the search, stop it with Ctrl-C and plan again.")
    status = next((replicate for replicate in snapshot.replicates if replicate.is_left), None)
    if status is None:
        return
    assert status.task.condition is not None
    which = ["--condition", status.task.condition.declared, "--seed", str(status.task.seed)]
    folders = [ReplicateFolder(path, {}) for path in (status.task.work.folder, *status.task.work.products.values())]
    with tempfile.TemporaryFile("w+") as messages:
        command = [*TRAIN, *arguments, *which]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=messages)  # noqa: S603
        try:
            _wait(process, folders, seconds)
        finally:
            was_stopped = _stop(process)
        if was_stopped:
            return
        messages.seek(0)
        lines = [line for line in messages.read().split("\n") if line.strip()]
    code = process.returncode
    message = lines[-1].removeprefix("ponderay: ") if lines else f"the calibration ended with code {code}"
    if code == 2:
        raise InputError(message)
    # A replicate that failed (1) shows in the plan; a warning may stand above what an unforeseen exception left.
    if code not in (0, 1) or (code == 1 and any(line.startswith("Traceback") for line in lines)):
        raise RefusedError(message)


def _wait(process: subprocess.Popen[bytes], folders: Sequence["ReplicateFolder"], seconds: float) -> None:
    """Until the process has worked for so long, and what it works on then has kept a report (else nothing is measured).

    Args:
        folders: of all replicates and prerequisites that it may work on.
    """
    before = [folder.records_after(0)[1] for folder in folders]
    deadline, is_late = None, False
    while process.poll() is None:
        if deadline is not None and time.monotonic() < deadline:
            time.sleep(POLL_S)  # to read all that is written would slow what is timed
            continue
        new = [folder.records_after(offset)[0] for folder, offset in zip(folders, before, strict=True)]
        kinds = [Counter(record["kind"] for record in records) for records in new]
        if deadline is None and any(num["started"] for num in kinds):
            deadline = time.monotonic() + seconds
        elif deadline is not None:
            # a prerequisite that has ended by then measures nothing of the replicate that starts after it
            at_work = [i for i, num in enumerate(kinds) if num["started"] > num["state"]]
            if at_work and all(_has_kept(folders[i], new[i]) for i in at_work):
                return
            if not is_late:
                is_late = True
                err.print(f"Nothing to measure is kept after {seconds:g} s; the calibration waits for a report.")
        time.sleep(POLL_S)


def _has_kept(folder: "ReplicateFolder", records: Iterable["Record"]) -> bool:
    """Whether one of the reports outlives a stop: its checkpoint, if it has one, is written after its record."""
    checkpoints = folder.checkpoints()
    reports = (record for record in records if record["kind"] == "metrics")
    return any(not record.get("kept", True) or record["step"] in checkpoints for record in reports)


def _stop(process: subprocess.Popen[bytes]) -> bool:
    """Ends the process, and returns whether it was still there."""
    if process.poll() is not None:
        return False
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return True


def _csv_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each condition and prerequisite, then a row for each case of the forecast."""
    rows = [{"kind": kind, "name": row[kind]} | row for kind, row in _kinds(report)]
    for row in rows:
        del row["unfinished"], row[row["kind"]]
    for case, numbers in report["forecast"].items():
        row = {"kind": "forecast", "name": case, "runs": numbers["runs"]}
        for number in NUMBERS:
            for end in ("low", "median", "high"):
                row[f"{number}_{end}"] = numbers[number][end] if numbers[number] else ""
        rows.append(row)
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column, "") for column in columns} for row in rows]


def _kinds(report: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [("prerequisite", row) for row in report["prerequisites"]] + [
        ("condition", row) for row in report["conditions"]
    ]


def _print_table(report: dict[str, Any]) -> None:
    for kind in ("prerequisite", "condition"):
        rows = [_readable(row) for its_kind, row in _kinds(report) if its_kind == kind]
        if rows:
            print_rows(rows, Format.table, f"{report['sweep']}: {kind}s", whole=(kind,))
    in_workers = any(row["workers"] for _, row in _kinds(report))
    in_trials = any(not row["workers"] for _, row in _kinds(report))
    trials = "in the Tune trial itself, because its num_workers is 0, which `auto` is without a GPU"
    workers = "in workers that Ray Train starts and joins, because its num_workers is not 0; `auto` is 1 with a GPU"
    reasons = [trials] * in_trials + [workers] * in_workers
    out.print(f"A run trains {', or '.join(reasons)}. CPUs and GPUs are of one run in all.", soft_wrap=True)
    machine, forecast = report["machine"], report["forecast"]
    basis = report["basis"]["text"] + "".join(f", on {device}" for device in report["basis"]["devices"])
    out.print(
        f"For {machine['cpus']:g} CPUs and {machine['gpus']:g} GPUs, based on: {basis}.", soft_wrap=True, markup=False
    )
    cases = forecast if forecast["least"] != forecast["most"] else {"left": forecast["most"]}
    rows = []
    for number, name in ({"runs": "runs"} | NUMBERS).items():
        cells = {case: _cell(number, numbers[number]) for case, numbers in cases.items()}
        rows += [{"": name} | cells] if any(cells.values()) else []
    print_rows(rows, Format.table, f"What is left, with {100 * report['level']:.0f} % intervals")
    for note in report["notes"]:
        out.print(f"Note: {note}.", markup=False, soft_wrap=True)


def _readable(row: dict[str, Any]) -> dict[str, str]:
    """A row for people: where the unfinished ones are, and no word twice."""
    places = ", ".join(f"seed {run['seed']} at {run['step']} of {run['num_steps']}" for run in row["unfinished"])
    partly = f"{row['partly_done']}{f' ({places})' if places else ''}"
    workers = f"{row['workers']} worker{'s' * (row['workers'] != 1)}" if row["workers"] else "trial"
    devices = f"{row['cpus']:g} CPU{'s' * (row['cpus'] != 1)}" + (f", {row['gpus']:g} GPU" if row["gpus"] else "")
    readable = row | {"partly_done": partly, "each": f"{workers}, {devices}"}
    hidden = ("unfinished", "workers", "cpus", "gpus", "runs_in")
    return {name.replace("_", " "): value for name, value in readable.items() if name not in hidden}


def _cell(number: str, value: Any) -> str:
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    low, median, high = (_with_unit(number, value[end]) for end in ("low", "median", "high"))
    return median if low == high else f"{median} ({low} to {high})"


def _with_unit(number: str, value: float) -> str:
    if number == "wall_s":  # in two units at most: `3 h 20 min`
        if value < 60:
            return f"{value:.0f} s"
        minutes = round(value / 60)
        if minutes < 60:
            return f"{minutes} min"
        hours = round(minutes / 60)
        return f"{minutes // 60} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
    if number == "disk_bytes":
        power = next((power for power in range(1, 4) if value < 999.5 * 1000**power), 4)
        return f"{_three_digits(value / 1000**power)} {'kMGT'[power - 1]}B"
    return f"{_three_digits(value)}{' kWh' if number == 'kwh' else ''}"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
