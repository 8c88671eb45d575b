"""Curves of validation of a study, by which answers say whether training was long enough."""

from collections.abc import Mapping
from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import name_of
from orchestrator.results.study import Study
from orchestrator.results.validations import SeedCurve, Validations, foreseeing
from orchestrator.tracking.curves import load_curves
from orchestrator.worker.trainable import load
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError
from trainables.metric import Best

MOST_REPLICATES: Final = 1000
"""Of a larger study no curves are read: of old ones the store is asked for each one by itself."""


def read_validations(sweep: Sweep, study: Study, settings: Settings) -> Validations:
    """The validations of the complete replicates; none of a large study, or where the trainable's code is not here."""
    replicates = [one for one in study.replicates if one.state == "complete" and one.key]
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
    found = load_curves(sweep.name, replicates, settings, metrics)
    curves = tuple(
        SeedCurve(one.condition, one.seed, metric, tuple(kept), tuple(kept.values()))
        for metric in sorted(metrics)
        for one in replicates
        if name_of(one) in found and (kept := found[name_of(one)].of(metric))
    )
    return Validations(selected, curves) if curves else Validations()


def with_validations(sweep: Sweep, study: Study, settings: Settings) -> Study:
    """The study with its validations, beside those that bundles have brought."""
    return study.with_validations(read_validations(sweep, study, settings).joined(study.validations))


def _selected(sweep: Sweep, study: Study) -> dict[str, Mapping[str, Best]]:
    """By recorded condition and evaluation; one that is not listed, as those of a search, is taken to be as the base.

    Raises:
        InputError: if the trainable cannot be loaded, or does not say.
    """
    trainable = load(sweep.trainable)
    listed = {condition.name: condition for condition in sweep.conditions}
    configs = ((name, sweep.config(listed.get(name, Condition("base")), sweep.seeds[0])) for name in study.conditions)
    return {name: trainable.selection(config) for name, config in configs}
