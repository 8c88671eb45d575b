"""The command `status`: how a study stands, in tables of a size that can be read, then failures, code, disk, memory."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.options import Smoke, SweepName, Where, find_recorded, load_shown
from orchestrator.console.printing import Format, OutputFormat, print_rows, say
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.results.study import Replicate, Study
    from search_spaces.sweep import Objective

MAX_REPLICATES: Final = 60
MAX_CONDITIONS: Final = 60
MAX_FAILURES: Final = 50
MAX_NAMES: Final = 5
FIELDS: Final = (
    "condition", "seed", "state", "error", "key", "is_lost", "code_version", "run_id", "duration_s", "num_devices",
    "size_bytes", "peak_host_bytes", "peak_gpu_bytes", "host", "device",
)  # fmt: skip


def status(name: SweepName, smoke: Smoke = False, where: Where = None, format: OutputFormat = Format.table) -> None:
    """Show the state of a sweep: its replicates, or its conditions where they are many, and the errors of failed ones.

    json and csv always list every replicate.
    """
    from orchestrator.environment.settings import read_settings

    settings, sweep = read_settings(), find_recorded(name, smoke)
    study, shown_note = load_shown(sweep, settings, where)
    if format is Format.table:
        if shown_note:
            say(shown_note)
        show(study, sweep.objectives[0], settings)
        _show_driver(study, settings, shlex.join(["ponderay", "run", name, *(["--smoke"] if smoke else [])]))
    else:
        print_rows(replicate_rows(study), format, title=sweep.name)


def replicate_rows(study: "Study", fields: Sequence[str] = FIELDS) -> list[dict[str, Any]]:
    """One record a replicate."""
    return [{name: getattr(replicate, name) for name in fields} for replicate in study.replicates]


def show(study: "Study", objective: "Objective", settings: "Settings") -> None:
    """Prints every replicate, or the conditions where replicates are many, and then what people ask next."""
    if not study.replicates:
        say(f"{study.sweep}: no replicate is recorded yet")
        return
    if len(study.replicates) <= MAX_REPLICATES:
        rows = replicate_rows(study, ("condition", "seed", "state", "error"))
        print_rows(rows, Format.table, title=study.sweep, whole=("condition", "state"))
    else:
        _show_conditions(study, objective)
        _show_failures(study)
    _show_versions(study)
    counts = Counter(replicate.state for replicate in study.replicates)
    say(", ".join(f"{number:,} {state}" for state, number in counts.items()) + f"; {_disk(study, settings)}")
    _show_memory(study)
    _show_damage(study, settings)


def condition_rows(study: "Study", objective: "Objective") -> list[dict[str, Any]]:
    """One record for each of the conditions that changed last, in their order: states, mean, time, last change."""
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
        rows.append(
            {"condition": name}
            | {state: counts[state] or "" for state in states}
            | {metric: estimate(summary, decimals([summary])) if summary else ""}
            | {"time": _clock(sum(replicate.duration_s for replicate in replicates))}
            | {"last change": _moment(study.updated_ms.get(name))}
        )
    return rows


def _show_driver(study: "Study", settings: "Settings", command: str) -> None:
    """Whether somebody still runs what is not at its end, and how it goes on.

    Args:
        command: what goes on where the replicates' runs do not say by which command they were begun.
    """
    from orchestrator.tracking.load import load_holder, open_runs
    from orchestrator.tracking.names import COMMAND

    states = {replicate.state for replicate in study.replicates}
    if not states & {"running", "stopped"}:
        return
    run_ids = [one.run_id for one in study.replicates if one.state in ("running", "stopped") and one.run_id]
    begun_by = open_runs(study.sweep, settings).tags_of(run_ids[:MAX_REPLICATES], COMMAND)
    typed = (one.replace("__main__.py ", "ponderay ", 1) for one in begun_by)  # in a job Python runs the package
    commands = [one for one in typed if one.startswith(("ponderay run ", "ponderay train "))] or [command]
    listed, ending = " and ".join(f"`{one}`" for one in commands), "s" if len(commands) == 1 else ""
    holder = load_holder(study.sweep, settings)
    if "running" in states and holder and holder.is_silent and holder.silent_s is not None:
        say(
            f"By its clock {holder.who}, which runs the sweep, gave its last heartbeat {holder.silent_s / 60:.0f} min "
            f"ago; if it is gone, {listed} continue{ending}."
        )
    elif "stopped" in states and "running" not in states:
        gone = f"; {holder.who}, which ran the sweep last, is gone" if holder and holder.is_gone else ""
        say(f"What is stopped waits{gone}: {listed} continue{ending} it.")


def _show_conditions(study: "Study", objective: "Objective") -> None:
    rows, num_conditions = condition_rows(study, objective), len(study.conditions)
    print_rows(rows, Format.table, title=study.sweep, whole=("condition", "last change"))
    if len(rows) < num_conditions:
        say(
            f"Shown: the {len(rows)} of {num_conditions:,} conditions that changed last; --format csv lists every "
            "replicate."
        )


def _show_failures(study: "Study") -> None:
    failed = [replicate for replicate in study.replicates if replicate.state == "failed"]
    if not failed:
        return
    rows = [{"condition": r.condition, "seed": r.seed, "error": r.error} for r in failed[:MAX_FAILURES]]
    print_rows(rows, Format.table, title=f"{len(failed):,} failed", whole=("condition",))
    if len(failed) > MAX_FAILURES:
        say(f"{len(failed) - MAX_FAILURES:,} more; --format csv lists all.")


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
        say(f"  {version}: {_listed(conditions)}")


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MAX_NAMES:,} more" if len(listed) > MAX_NAMES else ""
    return "; ".join(listed[:MAX_NAMES]) + more


def _disk(study: "Study", settings: "Settings") -> str:
    """Measured where replicates are few; thousands of folders take long, so then what each said when it ended.

    What lies on another machine is not seen from here, and that is said.
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
        keys = [one.key for one in study.replicates if one.metrics]  # without a report there may be no folder yet
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
    found = [
        f"{one.condition} seed {one.seed}: {said}" for one in study.replicates for said in _damage(study, one, settings)
    ]
    for line in found[:MAX_FAILURES]:
        say(line)
    if len(found) > MAX_FAILURES:
        say(f"{len(found) - MAX_FAILURES:,} more damaged files")


def _damage(study: "Study", replicate: "Replicate", settings: "Settings") -> Iterator[str]:
    """What is complete is not read from its journal again."""
    from orchestrator.journal.folder import ReplicateFolder

    folder = ReplicateFolder(settings.replicates(study.sweep) / replicate.key, {})
    if asides := folder.asides():
        yield f"Damaged files were set aside in {folder.path} and may be deleted: {', '.join(asides)}."
    if replicate.state != "complete" and (warning := folder.warning()):
        yield warning


def _show_memory(study: "Study") -> None:
    found = []
    for field, what in (("peak_host_bytes", "of a process"), ("peak_gpu_bytes", "of a GPU")):
        most: Replicate | None = max(study.replicates, key=lambda r: getattr(r, field), default=None)
        if most is not None and getattr(most, field):
            size = getattr(most, field) / 1e6
            found.append(f"{size:,.0f} MB {what} ({most.condition} seed {most.seed})")
    if found:
        say(f"Peak memory: {', '.join(found)}")


def _clock(duration_s: float) -> str:
    """Hours:minutes:seconds; nothing where no time was recorded."""
    minutes, seconds = divmod(round(duration_s), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if duration_s else ""


def _moment(time_ms: int | None) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000):%Y-%m-%d %H:%M}" if time_ms else ""
