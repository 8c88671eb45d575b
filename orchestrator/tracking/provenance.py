"""Where a study's results came from, with the uncommitted changes that its drivers stored; secrets are redacted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator.environment.settings import Settings
from orchestrator.results.provenance import StudyProvenance, provenance_in
from orchestrator.tracking.load import load_files
from search_spaces.redaction import redacted_leaves, redacted_source, redacted_text

if TYPE_CHECKING:
    from orchestrator.results.study import Study

MOST_VALUES: Final = 25
"""The most commits, packages and commands that are named."""

MOST_CONFIGS: Final = 300
MOST_DIFFS: Final = 50
MOST_DIFF_BYTES: Final = 2_000_000


def read_provenance(study: "Study", settings: Settings, conditions: Sequence[str] = ()) -> StudyProvenance:
    """What `study` and the files of its runs say of how it was made.

    Args:
        conditions: whose configs matter most; they come first where not all are listed.
    """
    notes: list[str] = []
    found = provenance_in(study)
    return replace(
        found,
        commits=_first(found.commits, "commits", notes),
        packages=_first(found.packages, "sets of packages", notes),
        commands=_first(found.commands, "commands", notes),
        configs=_configs(study, conditions, notes),
        diffs=_diffs(study.sweep, settings, notes),
        notes=tuple(notes),
    )


def _first(values: tuple[str, ...], what: str, notes: list[str]) -> tuple[str, ...]:
    if len(values) > MOST_VALUES:
        notes.append(f"Of {len(values):,} {what} the first {MOST_VALUES} are listed.")
    return values[:MOST_VALUES]


def _configs(study: "Study", conditions: Sequence[str], notes: list[str]) -> Mapping[str, Mapping[str, str]]:
    """The config of each condition, without the seed."""
    every = [name for name in dict.fromkeys((*conditions, *study.conditions)) if study.configs.get(name)]
    if len(every) > MOST_CONFIGS:
        notes.append(f"Configs of {MOST_CONFIGS:,} of {len(every):,} conditions are listed.")
    return {
        name: redacted_leaves({path: str(text) for path, text in sorted(study.configs[name].items()) if path != "seed"})
        for name in every[:MOST_CONFIGS]
    }


def _diffs(sweep: str, settings: Settings, notes: list[str]) -> Mapping[str, str]:
    """What drivers of the sweep stored as `uncommitted/NAME.diff`, one of those that are alike.

    A store of artifacts that is away is noted.
    """
    found: dict[str, str] = {}
    try:
        files = [file for file in load_files(sweep, "uncommitted", settings) if file.path.endswith(".diff")]
        for file in files[:MOST_DIFFS]:
            if file.num_bytes > MOST_DIFF_BYTES:
                notes.append(f"{file.path} has {file.num_bytes:,} bytes and is not shown; MLflow has it.")
                continue
            diff = redacted_source(file.read().decode("utf-8", "replace"))
            found.setdefault(diff, PurePosixPath(file.path).stem)
        if len(files) > MOST_DIFFS:
            notes.append(f"{MOST_DIFFS} of {len(files)} diffs were read; MLflow has all.")
    except OSError as error:
        said = (redacted_text(str(error)).splitlines() or [type(error).__name__])[0]
        notes.append(f"Uncommitted changes could not be read: {said}")
    return {name: diff for diff, name in found.items()}
