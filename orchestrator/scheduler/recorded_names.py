"""Conditions that ran before keep the names under which they were recorded, whatever `--set` would call them now."""

from dataclasses import replace

from orchestrator.results.study import Study
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.sweep import Condition


def under_recorded_names(factory: TaskFactory, known: Study) -> TaskFactory:
    """A factory of the same sweep; each condition with settings is called as `known` calls its replicates.

    Which they are their keys tell, for names are no part of a key. So no replicate is recorded under two names.

    Raises:
        InputError: if the sweep's data are missing or broken, or two conditions would have one name.
    """
    names = {c.name: _recorded_name(factory, c, known) for c in factory.sweep.conditions if c.settings}
    if all(name == recorded for name, recorded in names.items()):
        return factory
    sweep = factory.sweep
    conditions = tuple(replace(c, name=names.get(c.name, c.name)) for c in sweep.conditions)
    reference = names.get(sweep.reference or "", sweep.reference)
    return replace(factory, sweep=replace(sweep, conditions=conditions, reference=reference))


def _recorded_name(factory: TaskFactory, condition: Condition, known: Study) -> str:
    """Found by any recorded seed: the sweep may ask for others now."""
    if condition.name in known.conditions or not known.replicates:
        return condition.name
    by_key = {replicate.key: replicate.condition for replicate in known.replicates}
    prerequisites = factory.prerequisites(condition)
    for seed in sorted({replicate.seed for replicate in known.replicates}):
        key = factory.replicate(condition, seed, prerequisites).work.key
        if key in by_key:
            return by_key[key]
    return condition.name
