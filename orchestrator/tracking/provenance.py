"""Where a study's results came from, read from its runs: few queries, however many replicates there are.

Of each replicate's run only the tags named here are read, and the parameters; passwords and tokens are redacted.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from orchestrator.environment.redaction import redacted_setting, redacted_source, redacted_text, without_secrets
from orchestrator.results.provenance import StudyProvenance, provenance_in
from orchestrator.tracking import names
from orchestrator.tracking.pages import REPLICATES, SWEEP_RUNS
from orchestrator.tracking.store import address

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.results.study import Study

MOST_VALUES: Final = 25
"""Of a tag; each takes one query."""

MOST_CONFIGS: Final = 300
MOST_DIFFS: Final = 50
MOST_DIFF_BYTES: Final = 2_000_000


def provenance_of(study: "Study", settings: "Settings", conditions: Sequence[str] = ()) -> StudyProvenance:
    """`read_provenance` from the tracking store that `settings` name."""
    return read_provenance(MlflowClient(tracking_uri=address(settings.tracking_uri)), study, conditions)


def read_provenance(client: MlflowClient, study: "Study", conditions: Sequence[str] = ()) -> StudyProvenance:
    """What the runs of `study` say of how it was made.

    Args:
        conditions: whose configs matter most; they come first where not all are read.
    """
    found = client.get_experiment_by_name(study.sweep)
    experiment = str(found.experiment_id) if found else ""
    notes: list[str] = []
    commits, packages, commands = (
        _values_of(client, experiment, tag, notes) for tag in ("git_commit", "packages", "command")
    )
    return replace(
        provenance_in(study),
        commits=commits,
        packages=packages,
        commands=tuple(dict.fromkeys(without_secrets(command) for command in commands if command)),
        configs=_configs(client, experiment, study, conditions, notes),
        diffs=_diffs(client, experiment, notes),
        notes=tuple(notes),
    )


def _values_of(client: MlflowClient, experiment: str, tag: str, notes: list[str]) -> tuple[str, ...]:
    """The distinct values of `ponderay.TAG` over the replicates' runs, by their start; each query asks for another.

    MLflow has no way to quote a value with both kinds of quotes; nothing that comes after it is found.
    """
    values: list[str] = []
    while experiment and len(values) < MOST_VALUES and not (values and _quoted(values[-1]) is None):
        known = [f"tags.`{names.PREFIX}{tag}` != {_quoted(value)}" for value in values]
        value = _first_value(client, experiment, f"{names.PREFIX}{tag}", known)
        if value is None or value in values:
            return tuple(values)
        values.append(value)
    if experiment:
        notes.append(f"Of `ponderay.{tag}` the first {len(values)} distinct values are listed; there may be more.")
    return tuple(values)


def _first_value(client: MlflowClient, experiment: str, tag: str, known: Sequence[str]) -> str | None:
    wanted = " and ".join([REPLICATES, f"tags.`{tag}` != ''", *known])
    runs = client.search_runs([experiment], wanted, max_results=1, order_by=["attributes.start_time ASC"])
    return str(runs[0].data.tags[tag]) if runs else None


def _quoted(value: str) -> str | None:
    """`value` as MLflow's filters take it; None where they cannot."""
    if '"' in value and "'" in value:
        return None
    return f'"{value}"' if "'" in value else f"'{value}'"


def _configs(
    client: MlflowClient, experiment: str, study: "Study", conditions: Sequence[str], notes: list[str]
) -> Mapping[str, Mapping[str, str]]:
    """Parameters of one replicate of each condition, without the seed."""
    runs: dict[str, str] = {}
    for condition in dict.fromkeys((*conditions, *study.conditions)):
        run_ids = [replicate.run_id for replicate in study.of(condition) if replicate.run_id]
        if run_ids and len(runs) < MOST_CONFIGS:
            runs[run_ids[0]] = condition
    if len(study.conditions) > MOST_CONFIGS:
        notes.append(f"Configs of {len(runs):,} of {len(study.conditions):,} conditions are listed.")
    if not runs or not experiment:
        return {}
    listed = ", ".join(f"'{run_id}'" for run_id in runs)
    found = client.search_runs([experiment], f"attributes.run_id IN ({listed})", max_results=MOST_CONFIGS)
    params = {runs[run.info.run_id]: run.data.params for run in found}
    return {
        condition: {path: redacted_setting(path, value) for path, value in sorted(values.items()) if path != "seed"}
        for condition in runs.values()
        if (values := params.get(condition))
    }


def _diffs(client: MlflowClient, experiment: str, notes: list[str]) -> Mapping[str, str]:
    """What drivers of the sweep stored as `uncommitted/NAME.diff`, one of those that are alike.

    A store of artifacts that is away is noted.
    """
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    names: dict[str, str] = {}
    try:
        runs = client.search_runs([experiment], SWEEP_RUNS, max_results=1) if experiment else []
        files = [file for run in runs for file in client.list_artifacts(run.info.run_id, "uncommitted")]
        files = [file for file in files if file.path.endswith(".diff")]
        for file in files[:MOST_DIFFS]:
            if (file.file_size or 0) > MOST_DIFF_BYTES:
                notes.append(f"{file.path} has {file.file_size:,} bytes and is not shown; MLflow has it.")
                continue
            with tempfile.TemporaryDirectory() as folder:
                local = Path(client.download_artifacts(runs[0].info.run_id, file.path, folder))
                diff = redacted_source(local.read_text(encoding="utf-8", errors="replace"))
            names.setdefault(diff, PurePosixPath(file.path).stem)
        if len(files) > MOST_DIFFS:
            notes.append(f"{MOST_DIFFS} of {len(files)} diffs were read; MLflow has all.")
    except (MlflowException, OSError) as error:
        said = (redacted_text(str(error)).splitlines() or [type(error).__name__])[0]
        notes.append(f"Uncommitted changes could not be read: {said}")
    return {name: diff for diff, name in names.items()}
