"""Conditions that ran before keep the names under which they were recorded, whatever `--set` would call them now."""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.names import condition_name_of
from search_spaces.sweep import Condition


def under_recorded_names(factory: TaskFactory, known: Study) -> TaskFactory:
    """A factory of the same sweep; each condition with settings is called as `known` calls its replicates.

    Which they are their keys tell, for names are no part of a key. So no replicate is recorded under two names.

    Raises:
        InputError: if the sweep's data are missing or broken, or two conditions would have one name.
    """
    by_key, recorded = {replicate.key: replicate for replicate in known.replicates}, set(known.conditions)
    changed = (c for c in factory.sweep.conditions if c.settings)
    names = {c.name: c.name if c.name in recorded else _recorded_name(factory, c, by_key) for c in changed}
    if all(new == old for new, old in names.items()):
        return factory
    sweep = factory.sweep
    conditions = tuple(replace(c, name=names.get(c.name, c.name)) for c in sweep.conditions)
    reference = names.get(sweep.reference or "", sweep.reference)
    return replace(factory, sweep=replace(sweep, conditions=conditions, reference=reference))


def _recorded_name(factory: TaskFactory, condition: Condition, by_key: Mapping[str, Replicate]) -> str:
    """Found by any recorded seed: the sweep may ask for others now."""
    for seed in sorted({replicate.seed for replicate in by_key.values()}):
        known = by_key.get(factory.replicate(condition, seed, factory.prerequisites(condition, seed)).work.key)
        if known:
            return condition_name_of(known.condition)
    return condition.name
