"""Reads curves of validation out of the runs of replicates."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from orchestrator.results.study import Replicate, Study
from orchestrator.results.validations import ValidationCurve, Validations, foreseeing
from orchestrator.tracking.names import stored_name
from orchestrator.worker.trainable import load
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError
from trainables.metric import Best

if TYPE_CHECKING:
    from orchestrator.tracking.study_runs import CurveRuns

MOST_REPLICATES: Final = 1000
"""Of a larger study no curves are read: a server is asked for each one by itself."""


def read_validations(runs: "CurveRuns", sweep: Sweep, study: Study) -> Validations:
    """The validations of the complete replicates; none of a large study, or where the trainable's code is not here."""
    replicates = {one.run_id: one for one in study.replicates if one.state == "complete" and one.run_id}
    if len(replicates) > MOST_REPLICATES:
        return Validations()
    try:
        selected = _selected(sweep, study)
    except InputError:
        return Validations()
    metrics = {one.metric for named in selected.values() for one in named.values()}
    for objective in sweep.objectives:
        for evaluation in (*study.evaluations(), ""):
            metrics.update(foreseeing(objective.metric, evaluation))
    curves = [
        _curve(replicates[run_id], metric, history)
        for metric in sorted(metrics)
        for run_id, history in runs.histories_of(list(replicates), stored_name(metric)).items()
    ]
    found = tuple(curve for curve in curves if curve.steps)
    return Validations(selected, found) if found else Validations()


def with_validations(runs: "CurveRuns", sweep: Sweep, study: Study) -> Study:
    """The study with its validations, beside those that bundles have brought."""
    return study.with_validations(read_validations(runs, sweep, study).joined(study.validations))


def _selected(sweep: Sweep, study: Study) -> dict[str, Mapping[str, Best]]:
    """By recorded condition and evaluation; one that is not listed, as those of a search, is taken to be as the base.

    Raises:
        InputError: if the trainable cannot be loaded, or does not say.
    """
    trainable = load(sweep.trainable)
    listed = {condition.name: condition for condition in sweep.conditions}
    configs = ((name, sweep.config(listed.get(name, Condition("base")), sweep.seeds[0])) for name in study.conditions)
    return {name: trainable.selection(config) for name, config in configs}


def _curve(replicate: Replicate, metric: str, history: Mapping[int, float]) -> ValidationCurve:
    steps = tuple(sorted(step for step, value in history.items() if math.isfinite(value)))
    values = tuple(history[step] for step in steps)
    return ValidationCurve(replicate.condition, replicate.seed, metric, steps, values)
