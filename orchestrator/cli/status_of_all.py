"""`ponderay status` without a sweep: every study of the runs folder, and of the tracking server where there is one."""

import warnings
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from orchestrator.console.printing import Format, print_rows, say
from trainables.errors import DataWarning, InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings

STATES: Final = ("complete", "running", "stopped", "failed", "pruned")


def show_studies(settings: "Settings", format: Format) -> None:
    """Prints a row for each study, the one that changed last first."""
    from orchestrator.tracking.load import load_holder, load_if_run

    rows: list[tuple[int, dict[str, Any]]] = []
    for name in _names(settings):
        study = load_if_run(name, settings)
        if study is None:
            continue
        counts = Counter(replicate.state for replicate in study.replicates)
        holder = load_holder(name, settings) if counts["running"] else None
        run_by = ""
        if holder and not holder.is_gone:
            silent = f", silent for {holder.silent_s / 60:.0f} min" if holder.is_silent and holder.silent_s else ""
            run_by = holder.who + silent
        updated_ms = max(study.updated_ms.values(), default=0)
        row = {
            "study": name,
            "conditions": len(study.conditions),
            **{state: counts[state] for state in STATES},
            "last change": f"{datetime.fromtimestamp(updated_ms / 1000):%Y-%m-%d %H:%M}" if updated_ms else "",
            "MB": round(sum(replicate.size_bytes for replicate in study.replicates) / 1e6, 1),
            "run by": run_by,
        }
        rows.append((updated_ms, row))
    listed = [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
    if format is not Format.table:
        print_rows(listed, format, "Studies")
    elif listed:
        readable = [
            {
                "study": row["study"],
                "replicates": ", ".join(f"{row[state]:,} {state}" for state in STATES if row[state]),
                "last change": row["last change"],
                "MB": row["MB"] or "",  # recorded at the ends of replicates: nothing before the first end
                "run by": row["run by"],
            }
            for row in listed
        ]
        print_rows(readable, format, "Studies", whole=("study", "last change"))
    else:
        say("No study is recorded yet; `ponderay run asr.demo --smoke` makes a first one in some minutes.")


def _names(settings: "Settings") -> list[str]:
    """The studies with a study file here, and those of a server; a silent server is no reason to say nothing."""
    from orchestrator.journal.study_file import read_study_file
    from orchestrator.tracking.store import store_kind

    here = (read_study_file(folder) for folder in sorted((settings.runs / "replicates").glob("*")))
    names = [content.sweep["name"] for content in here if content and content.sweep]
    if store_kind(settings.tracking_uri) != "sqlite":
        from orchestrator.tracking.client import Tracking

        try:
            names += [sweep.name for sweep in Tracking(settings).sweeps()]
        except InputError as error:
            if not names:  # nobody knows whether there is a study
                raise
            warnings.warn(f"Only what this machine has is listed. {error}", DataWarning, stacklevel=2)
    return list(dict.fromkeys(names))
