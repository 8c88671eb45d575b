"""Where a study's results came from, read from its runs.

Of each replicate's run only the tags named here are read, and the parameters; passwords and tokens are redacted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.results.provenance import StudyProvenance, provenance_in
from orchestrator.tracking import names
from search_spaces.redaction import redacted_setting, redacted_source, redacted_text, without_secrets

if TYPE_CHECKING:
    from orchestrator.results.study import Study
    from orchestrator.tracking.study_runs import StoredFile, StudyRuns

MOST_VALUES: Final = 25
"""Of a tag; each takes one query."""

MOST_CONFIGS: Final = 300
MOST_DIFFS: Final = 50
MOST_DIFF_BYTES: Final = 2_000_000


def read_provenance(runs: "StudyRuns", study: "Study", conditions: Sequence[str] = ()) -> StudyProvenance:
    """What the runs of `study` say of how it was made.

    Args:
        conditions: whose configs matter most; they come first where not all are read.
    """
    notes: list[str] = []
    commits, packages, commands = (_values_of(runs, tag, notes) for tag in ("git_commit", "packages", "command"))
    return replace(
        provenance_in(study),
        commits=commits,
        packages=packages,
        commands=tuple(dict.fromkeys(without_secrets(command) for command in commands if command)),
        configs=_configs(runs, study, conditions, notes),
        diffs=_diffs(runs, notes),
        notes=tuple(notes),
    )


def _values_of(runs: "StudyRuns", tag: str, notes: list[str]) -> tuple[str, ...]:
    values, is_all = runs.values_of(f"{names.PREFIX}{tag}", MOST_VALUES)
    if not is_all:
        notes.append(f"Of `ponderay.{tag}` the first {len(values)} distinct values are listed; there may be more.")
    return tuple(values)


def _configs(
    runs: "StudyRuns", study: "Study", conditions: Sequence[str], notes: list[str]
) -> Mapping[str, Mapping[str, str]]:
    """Parameters of one replicate of each condition, without the seed."""
    chosen: dict[str, str] = {}
    for condition in dict.fromkeys((*conditions, *study.conditions)):
        run_ids = [replicate.run_id for replicate in study.of(condition) if replicate.run_id]
        if run_ids and len(chosen) < MOST_CONFIGS:
            chosen[run_ids[0]] = condition
    if len(study.conditions) > MOST_CONFIGS:
        notes.append(f"Configs of {len(chosen):,} of {len(study.conditions):,} conditions are listed.")
    params = runs.params_of(chosen)
    return {
        condition: {path: redacted_setting(path, value) for path, value in sorted(values.items()) if path != "seed"}
        for run_id, condition in chosen.items()
        if (values := params.get(run_id))
    }


def _diffs(runs: "StudyRuns", notes: list[str]) -> Mapping[str, str]:
    """What drivers of the sweep stored as `uncommitted/NAME.diff`, one of those that are alike.

    A store of artifacts that is away is noted.
    """
    found: dict[str, str] = {}
    try:
        files = [file for file in runs.files_of("uncommitted") if file.path.endswith(".diff")]
        for file in files[:MOST_DIFFS]:
            _add_diff(file, found, notes)
        if len(files) > MOST_DIFFS:
            notes.append(f"{MOST_DIFFS} of {len(files)} diffs were read; MLflow has all.")
    except OSError as error:
        said = (redacted_text(str(error)).splitlines() or [type(error).__name__])[0]
        notes.append(f"Uncommitted changes could not be read: {said}")
    return {name: diff for diff, name in found.items()}


def _add_diff(file: "StoredFile", found: dict[str, str], notes: list[str]) -> None:
    if file.num_bytes > MOST_DIFF_BYTES:
        notes.append(f"{file.path} has {file.num_bytes:,} bytes and is not shown; MLflow has it.")
        return
    diff = redacted_source(file.read().decode("utf-8", "replace"))
    found.setdefault(diff, PurePosixPath(file.path).stem)
