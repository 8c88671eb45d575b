"""Studies of runs that others logged with plain MLflow: a parameter or tag is the seed, others make the condition."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.environment.settings import Settings
from orchestrator.results.foreign_study import Run, comparable, parts_of_condition, study_of
from orchestrator.results.study import State, Study
from orchestrator.tracking.mlflow_internals import PARENT
from orchestrator.tracking.store import has_store
from search_spaces.redaction import redacted_uri
from search_spaces.sweep import Objective
from trainables.errors import InputError

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

STATES: Final[Mapping[str, State]] = {"FAILED": "failed", "KILLED": "stopped"}
"""By MLflow's status; a finished run is complete where it has every objective, and any other is still running."""

FINISHED: Final = "FINISHED"
MOST_NAMED: Final = 12


@dataclass(frozen=True)
class Logged:
    """What is wanted of a run of MLflow.

    Attributes:
        named: parameters and tags by name; a parameter comes before a tag of the same name.
        parent: the id of the run that it is nested in; empty where it is in none.
    """

    run_id: str
    status: str
    named: Mapping[str, str]
    metrics: Mapping[str, float]
    parent: str
    duration_s: float


def read_foreign_study(
    settings: Settings,
    experiment: str,
    seed: str,
    condition: str | Sequence[str],
    objectives: Sequence[Objective],
    reference: str | None,
    test: str,
) -> Study:
    """The study of an experiment in the tracking store that `settings` name, in as few queries as it has pages of runs.

    Runs that others are nested in are passed over where they name no seed or no condition. Of several runs of a
    condition under one seed the finished one counts, or else the newest.

    Raises:
        InputError: if the store cannot be read, there is no such experiment or no run in it, a run names no seed or
            condition, or two finished ones are the same.
    """
    if not has_store(settings.tracking_uri):
        raise InputError(f"There is no tracking store at {redacted_uri(settings.tracking_uri)}.")
    from orchestrator.tracking.client import Tracking

    logged = [_logged(run) for run in Tracking(settings).runs_of(experiment)]
    names = parts_of_condition(condition)
    kept = _counting(list(_identified(logged, [*names, seed])), [*names, seed])
    runs = [
        Run(
            place=f"run {one.run_id}",
            setting={name: one.named[name] for name in names},
            seed=one.named[seed],
            metrics=one.metrics,
            state=None if one.status == FINISHED else STATES.get(one.status, "running"),
            fields={"run_id": one.run_id, "duration_s": one.duration_s},
        )
        for one in kept
    ]
    return study_of(runs, experiment, objectives, reference, test, "")


def _logged(run: "MlflowRun") -> Logged:
    info, data = run.info, run.data
    duration_ms = (info.end_time or info.start_time or 0) - (info.start_time or 0)
    named = {**data.tags, **data.params}
    metrics = {str(name): _unclamped(float(value)) for name, value in data.metrics.items()}
    return Logged(info.run_id, info.status, named, metrics, data.tags.get(PARENT, ""), duration_ms / 1000)


def _unclamped(value: float) -> float:
    """Infinity, in whose place MLflow's database holds the largest number."""
    return math.copysign(math.inf, value) if abs(value) >= sys.float_info.max else value


def _identified(logged: Sequence[Logged], names: Sequence[str]) -> Iterator[Logged]:
    """The runs that have all the parameters and tags `names`."""
    parents = {one.parent for one in logged}
    for one in logged:
        missing = [name for name in names if not one.named.get(name, "").strip()]
        if not missing:
            yield one
        elif one.run_id not in parents:
            known = sorted(name for name in one.named if not name.startswith("mlflow."))
            listed = ", ".join(known[:MOST_NAMED]) + (" and more" if len(known) > MOST_NAMED else "")
            raise InputError(
                f"Each run must have a parameter or tag {missing[0]!r}, but run {one.run_id} has {listed or 'none'}; "
                "log it there, or delete the run."
            )


def _counting(logged: Sequence[Logged], names: Sequence[str]) -> list[Logged]:
    """Without the attempts that other attempts have made needless; `logged` begins with the oldest."""
    identities = [tuple(comparable(one.named[name]) for name in names) for one in logged]
    pairs = list(zip(identities, logged, strict=True))
    finished = {identity for identity, one in pairs if one.status == FINISHED}
    newest = dict(pairs)
    return [
        one
        for identity, one in pairs
        if one.status == FINISHED or (identity not in finished and newest[identity] is one)
    ]
