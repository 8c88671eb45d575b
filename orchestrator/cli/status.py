"""The command `status`: how a study stands, in tables of a size that can be read, then failures, code, disk, memory."""

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.options import OneSweepName, Smoke, Where, find_recorded, load_shown
from orchestrator.console.printing import Format, OutputFormat, print_rows, say
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.results.study import Replicate, Study
    from orchestrator.tracking.lease_holder import Holder
    from search_spaces.sweep import Objective, Sweep

MAX_REPLICATES: Final = 60
MAX_CONDITIONS: Final = 60
MAX_FAILURES: Final = 50
MAX_NAMES: Final = 5
FIELDS: Final = (
    "condition", "seed", "state", "error", "key", "is_lost", "code_version", "run_id", "duration_s", "num_devices",
    "size_bytes", "peak_host_bytes", "peak_gpu_bytes", "host", "device",
)  # fmt: skip


def status(
    name: OneSweepName = None, smoke: Smoke = False, where: Where = None, format: OutputFormat = Format.table
) -> None:
    """Show the state of a sweep: its replicates, or its conditions where they are many, and the errors of failed ones.

    Without a sweep it lists every study of this runs folder and of the tracking server. Of a sweep json and csv always
    list every replicate, with the values of its config as columns `config.PATH`.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.results.config_columns import config_columns
    from orchestrator.tracking.load import load_holder

    if name is None:
        if smoke or where:
            option = "--smoke" if smoke else "--where"
            raise InputError(f"{option} is of one sweep, but none is named; `ponderay status SWEEP {option} ...`.")
        from orchestrator.cli.status_of_all import show_studies

        show_studies(read_settings(), format)
        return
    settings, sweep = read_settings(), find_recorded(name, smoke)
    study, shown_note = load_shown(sweep, settings, where)
    if format is Format.table:
        if shown_note:
            say(shown_note)
        is_running = any(replicate.state == "running" for replicate in study.replicates)
        holder = load_holder(study.sweep, settings) if is_running else None
        silent = holder if holder and holder.is_silent else None  # its last heartbeat is old by its clock
        show(study, sweep.objectives[0], settings, silent)
        _show_left(study, sweep, settings, silent is not None)
        command = shlex.join(["ponderay", "run", name, *(["--smoke"] if smoke else [])])
        _show_driver(study, settings, command)
        _show_mirror(study, command)
    else:
        configs = config_columns(study.configs, [replicate.condition for replicate in study.replicates])
        rows = replicate_rows(study)
        print_rows(
            [row | {name: column[i] for name, column in configs.items()} for i, row in enumerate(rows)],
            format,
            title=sweep.name,
        )


def replicate_rows(study: "Study", fields: Sequence[str] = FIELDS) -> list[dict[str, Any]]:
    """A record for each replicate."""
    return [{name: getattr(replicate, name) for name in fields} for replicate in study.replicates]


def show(study: "Study", objective: "Objective", settings: "Settings", silent: "Holder | None" = None) -> None:
    """Prints every replicate, or the conditions where replicates are many, and then what people ask next.

    Args:
        silent: the driver, where it may be gone; then nothing is said to be running.
    """
    if not study.replicates:
        say(f"{study.sweep}: no replicate is recorded yet")
        return
    if len(study.replicates) <= MAX_REPLICATES:
        rows = replicate_rows(study, ("condition", "seed", "state", "error"))
        if silent:
            rows = [row | ({"state": "silent"} if row["state"] == "running" else {}) for row in rows]
        print_rows(rows, Format.table, title=study.sweep, whole=("condition", "state"))
    else:
        conditions, num_conditions = condition_rows(study, objective), len(study.conditions)
        print_rows(conditions, Format.table, title=study.sweep, whole=("condition", "last change"))
        if len(conditions) < num_conditions:
            shown = f"Shown: the {len(conditions)} of {num_conditions:,} conditions that changed last"
            say(f"{shown}; --format csv lists every replicate.")
        _show_failures(study)
    _show_versions(study)
    counts = Counter(replicate.state for replicate in study.replicates)
    words = {"running": "silent"} if silent else {}
    listed = ", ".join(f"{number:,} {words.get(state, state)}" for state, number in counts.items())
    say(f"{listed}; {_disk(study, settings)}")
    _show_memory(study)
    _show_damage(study, settings)


def condition_rows(study: "Study", objective: "Objective") -> list[dict[str, Any]]:
    """Records of the conditions that changed last, in their order: states, mean, time, last change."""
    from orchestrator.report.numerals import decimals, estimate

    newest = sorted(study.conditions, key=lambda name: study.updated_ms.get(name, 0), reverse=True)[:MAX_CONDITIONS]
    chosen = set(newest)
    states = list(dict.fromkeys(replicate.state for replicate in study.replicates))
    metric, known = "@".join([objective.metric, *study.evaluations()[:1]]), set(study.metrics())
    rows = []
    for name in (name for name in study.conditions if name in chosen):
        replicates = study.of(name)
        counts = Counter(replicate.state for replicate in replicates)
        found = (study.summary(name, one) for one in (metric, objective.metric) if one in known)
        summary = next(filter(None, found), None)
        duration_s, updated_ms = sum(replicate.duration_s for replicate in replicates), study.updated_ms.get(name)
        minutes, seconds = divmod(round(duration_s), 60)  # shown as hours:minutes:seconds
        rows.append(
            {"condition": name}
            | {state: counts[state] or "" for state in states}
            | {metric: estimate(summary, decimals([summary])) if summary else ""}
            | {"time": f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if duration_s else ""}
            | {"last change": f"{datetime.fromtimestamp(updated_ms / 1000):%Y-%m-%d %H:%M}" if updated_ms else ""}
        )
    return rows


def _show_driver(study: "Study", settings: "Settings", command: str) -> None:
    """Whether somebody still runs what is not at its end, and how it goes on.

    Args:
        command: what goes on where it is not recorded by which command the replicates were begun.
    """
    from orchestrator.tracking.load import load_holder, with_origins

    states = {replicate.state for replicate in study.replicates}
    if not states & {"running", "stopped"}:
        return
    origins = with_origins(study, settings).origins
    left = (replicate.key for replicate in study.replicates if replicate.state in ("running", "stopped"))
    begun_by = dict.fromkeys(origins[key].again for key in left if key in origins)
    begun = ("ponderay run ", "ponderay train ", "ponderay submit ", "python -m ponderay ")
    commands = [line for line in begun_by if line.startswith(begun)] or [command]
    listed, ending = " and ".join(f"`{line}`" for line in commands), "s" if len(commands) == 1 else ""
    holder = load_holder(study.sweep, settings)
    if "running" in states and holder and holder.is_silent and holder.silent_s is not None:
        say(
            f"By its clock {holder.who}, which runs the sweep, gave its last heartbeat {holder.silent_s / 60:.0f} min "
            f"ago; if it is gone, {listed} continue{ending}."
        )
    elif "stopped" in states and "running" not in states:
        gone = f"; {holder.who}, which ran the sweep last, is gone" if holder and holder.is_gone else ""
        say(f"What is stopped waits{gone}: {listed} continue{ending} it.")


def _show_left(study: "Study", sweep: "Sweep", settings: "Settings", is_silent: bool) -> None:
    """How far the replicates that run have come, how many are left, and which conditions have not begun."""
    from orchestrator.journal.folder import ReplicateFolder
    from orchestrator.journal.summary import summarise
    from orchestrator.tracking.load import load_declaration

    running = [replicate for replicate in study.replicates if replicate.state == "running"]
    steps = []
    for replicate in running[:MAX_FAILURES]:
        folder = settings.replicates(study.sweep) / replicate.key
        step = summarise(ReplicateFolder(folder, {}, settings.shared(folder)).records()).step
        steps.append(f"{replicate.condition} seed {replicate.seed} at step {max(step, 0):,}")
    if steps and not is_silent:
        more = f"; {len(running) - MAX_FAILURES:,} more" if len(running) > MAX_FAILURES else ""
        say(f"At work: {'; '.join(steps)}{more}.")
    declared = load_declaration(sweep.name, settings)
    seeds = json.loads(declared)["seeds"] if declared else sweep.seeds  # of the last `run`
    num_all = len({*study.conditions, *(one.name for one in sweep.conditions)}) * len(seeds)
    num_begun = {word: sum(one.state == word for one in study.replicates) for word in ("running", "stopped")}
    num_new = max(0, num_all - len(study.replicates))
    if num_begun["stopped"] and num_new and not (sweep.search or sweep.sequential):
        parts = [f"{number:,} {word}" for word, number in {**num_begun, "not begun": num_new}.items() if number]
        say(f"{sum(num_begun.values()) + num_new:,} left: {', '.join(parts)}.")
    left = [condition.name for condition in sweep.conditions if condition.name not in study.conditions]
    if left and study.replicates:
        more = f" and {len(left) - MAX_NAMES:,} more" if len(left) > MAX_NAMES else ""
        say(f"Not begun: {'; '.join(left[:MAX_NAMES])}{more}.")


def _show_mirror(study: "Study", command: str) -> None:
    """What the study file has and MLflow lacks, as its last driver knew it."""
    if not study.unmirrored:
        return
    num_ended = sum(one.state in ("complete", "failed", "pruned") for one in study.replicates)
    labels = [f"{condition} seed {seed}" for condition, seed in study.unmirrored]
    more = f" and {len(labels) - MAX_NAMES:,} more" if len(labels) > MAX_NAMES else ""
    is_running = any(one.state == "running" for one in study.replicates)
    remedy = "its driver still writes them" if is_running else f"`{command}` writes them"
    listed = "; ".join(labels[:MAX_NAMES])
    say(f"MLflow lacks {len(labels):,} of {num_ended:,} replicates that have ended ({listed}{more}); {remedy}.")


def _show_failures(study: "Study") -> None:
    for state in ("failed", "pruned"):
        ended = [replicate for replicate in study.replicates if replicate.state == state]
        rows = [{"condition": r.condition, "seed": r.seed, "error": r.error} for r in ended[:MAX_FAILURES]]
        if rows:
            print_rows(rows, Format.table, title=f"{len(ended):,} {state}", whole=("condition",))
        if len(ended) > MAX_FAILURES:
            say(f"{len(ended) - MAX_FAILURES:,} more; --format csv lists all.")


def _show_versions(study: "Study") -> None:
    """Which conditions have results of which code, where that differs."""
    versions: dict[str, dict[str, None]] = {}
    for replicate in study.replicates:
        if replicate.code_version:
            versions.setdefault(replicate.code_version, {})[replicate.condition] = None
    if len(versions) < 2:
        return
    say(f"Results of {len(versions)} versions of the trainable's code stand side by side:")
    for version, conditions in versions.items():
        more = f" and {len(conditions) - MAX_NAMES:,} more" if len(conditions) > MAX_NAMES else ""
        say(f"  {version}: {'; '.join(list(conditions)[:MAX_NAMES])}{more}")


def _disk(study: "Study", settings: "Settings") -> str:
    """The disk space of a study in words: measured where replicates are few, for thousands of folders take long.

    For many it is the sum of what was recorded at their ends. Of what lies on another machine it says so.
    """
    if len(study.replicates) > MAX_REPLICATES:
        recorded = sum(replicate.size_bytes for replicate in study.replicates) / 1e6
        return f"{recorded:,.1f} MB of checkpoints and journals, as recorded when each replicate ended"
    from orchestrator.journal.folder import ReplicateFolder
    from search_spaces.redaction import redacted_uri

    folder = settings.replicates(study.sweep)
    try:
        used = ReplicateFolder(folder, {}, settings.shared(folder)).size_bytes() / 1e6
    except (OSError, InputError) as error:
        return f"unknown: {error}"
    if settings.storage:
        num_away = 0 if used else len(study.replicates)
    else:
        keys = [
            r.key for r in study.replicates if (r.metrics or r.host) and r.code_version
        ]  # of one that never started there may be no folder
        num_away = sum(not (folder / key).exists() for key in keys)
    if not num_away:
        return f"{used:,.1f} MB of checkpoints and journals"
    whose = f"{num_away:,} of {len(study.replicates):,} replicates"
    place = redacted_uri(settings.shared(folder) or str(folder))
    here = f"{used:,.1f} MB of checkpoints and journals here; " if used else ""
    return f"{here}the checkpoints and journals of {whose} are elsewhere, not in {place}"


def _show_damage(study: "Study", settings: "Settings") -> None:
    """Journals and checkpoints that are damaged or were; on this machine, and where replicates are few."""
    if settings.storage or len(study.replicates) > MAX_REPLICATES:
        return
    from orchestrator.journal.folder import ReplicateFolder

    lines = []
    for replicate in study.replicates:
        folder = ReplicateFolder(settings.replicates(study.sweep) / replicate.key, {})
        label = f"{replicate.condition} seed {replicate.seed}"
        if names := folder.asides():
            sentence = f"Damaged files were set aside in {folder.path} and may be deleted: {', '.join(names)}."
            lines.append(f"{label}: {sentence}")
        if replicate.state != "complete" and (warning := folder.warning()):  # a complete journal is not read again
            lines.append(f"{label}: {warning}")
    for line in lines[:MAX_FAILURES]:
        say(line)
    if len(lines) > MAX_FAILURES:
        say(f"{len(lines) - MAX_FAILURES:,} more damaged files")


def _show_memory(study: "Study") -> None:
    peaks = []
    for field, what in (("peak_host_bytes", "of a process"), ("peak_gpu_bytes", "of a GPU")):
        most: Replicate | None = max(study.replicates, key=lambda r: getattr(r, field), default=None)
        if most is not None and getattr(most, field):
            size = getattr(most, field) / 1e6
            peaks.append(f"{size:,.0f} MB {what} ({most.condition} seed {most.seed})")
    if peaks:
        say(f"Peak memory: {', '.join(peaks)}")
