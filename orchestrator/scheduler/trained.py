"""A condition of a study and what was trained for it: its config, and its checkpoints."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.environment.settings import read_settings
from orchestrator.results.constraints import missed
from orchestrator.results.lookup import find_condition
from orchestrator.results.points import Point
from orchestrator.results.question import config_texts, config_value, key_paths
from orchestrator.results.study import Study
from orchestrator.scheduler.kept_checkpoint import kept_checkpoint
from orchestrator.statistics.summary import Summary
from orchestrator.tracking.load import load_constraints, load_directions, load_sweep
from orchestrator.tracking.named_sweep import find_named
from search_spaces.known_names import known_names
from search_spaces.sweep import Sweep
from trainables.config import AnyConfig, flatten, with_value
from trainables.errors import InputError


@dataclass(frozen=True)
class Trained:
    """A condition with its complete replicates.

    Attributes:
        evaluation: the one that it was chosen by; empty where there is none.
        seeds: of the complete replicates, in order.
    """

    study: Study
    condition: str
    evaluation: str
    seeds: tuple[int, ...]

    def config(self, seed: int | None = None) -> AnyConfig:
        """The typed config that a replicate was trained with.

        What is no part of the key, and cannot be read from its text, is as declared now, such as evaluations.

        Args:
            seed: default: the first of `seeds`.

        Raises:
            InputError: if the sweep's code is not here, or makes another config of what was recorded.
        """
        seed = self._seed(seed)
        recorded = self.study.configs.get(self.condition, {})
        kept = _recorded(self.study)
        sweep = find_named(kept.confirms.sweep if kept and kept.confirms else self.study.sweep)
        declared = next((one for one in sweep.conditions if one.name == self.condition), None)
        config = sweep.config(declared, seed) if declared else with_value(sweep.base, "seed", seed)
        own = config_texts(flatten(config))
        wanted = {
            path: config_value(text) for path, text in recorded.items() if path != "seed" and own.get(path) != text
        }
        left, num_before = [*wanted], math.inf
        while len(left) < num_before:  # some values are valid only beside others
            num_before, trying, left = len(left), left, []
            for path in trying:
                try:
                    config = with_value(config, path, wanted[path])
                except InputError:
                    left.append(path)
        # What is no part of the key, and of which the text is no value, such as evaluations, is as declared now.
        outside = own.keys() - key_paths(config)
        as_now = {path for path in left if path in outside and wanted[path] == recorded[path]}
        for path in left:
            if path not in as_now:
                config = with_value(config, path, wanted[path])  # says why not
        made = config_texts(flatten(config))
        if differing := [
            path for path, text in made.items() if recorded.get(path, text) != text and path not in as_now
        ]:
            raise InputError(
                f"The config of {self.condition!r} cannot be made again: `{differing[0]}` was {recorded[differing[0]]}."
                " Use the version of the code that it was trained with."
            )
        return config

    def checkpoint(self, seed: int | None = None) -> Path:
        """The best checkpoint of a replicate, as a local file; fetched where it is kept in a bucket.

        Args:
            seed: default: the first of `seeds`, so that no luck of a seed chooses.

        Raises:
            InputError: if the checkpoint is gone or damaged.
        """
        return kept_checkpoint(
            self.study, self.condition, self._seed(seed), self.evaluation or None, read_settings()
        ).path

    def summary(self, metric: str) -> Summary | None:
        """Mean, standard deviation and number of a metric over the complete replicates; None without a value."""
        return self.study.summary(self.condition, metric)

    def _seed(self, seed: int | None) -> int:
        if seed is None:
            return self.seeds[0]
        if seed not in self.seeds:
            raise InputError(
                f"{self.condition!r} has no complete seed {seed}; complete are {', '.join(map(str, self.seeds))}."
            )
        return seed


def trained(study: Study, condition: str | Point) -> Trained:
    """A condition of the study, by its name or as a point of a front.

    Raises:
        InputError: if there is no such condition, or no replicate of it is complete.
    """
    name = condition.condition if isinstance(condition, Point) else find_condition(study, condition)
    seeds = tuple(replicate.seed for replicate in study.of(name) if replicate.state == "complete")
    if not seeds:
        raise InputError(f"A replicate of {name!r} must be complete, but none is; run the sweep to its end.")
    return Trained(study, name, condition.evaluation if isinstance(condition, Point) else "", seeds)


def best(study: Study, metric: str, direction: Literal["minimize", "maximize"] | None = None) -> Trained:
    """The condition whose mean over its complete seeds is best; of equal ones the first.

    Of a search with constraints, one that keeps them all, if there is one.
    The mean of what is best of many looks better than it is; train it again on other seeds before you report it.

    Args:
        metric: `NAME`, or `NAME@EVALUATION` where several evaluations have it.
        direction: default: the metric's, as the sweep or its trainable declares it.

    Raises:
        InputError: if no complete replicate has the metric, several evaluations have it, or its direction is unknown.
    """
    known = study.metrics()
    columns = [metric] if metric in known else [name for name in known if name.partition("@")[0] == metric]
    if len(columns) > 1:
        raise InputError(f"{metric!r} is of several evaluations; name one of {', '.join(columns)}.")
    if not columns:
        raise InputError(f"{study.sweep} has no metric {metric!r}; it has {known_names(known, metric)}.")
    name, _, evaluation = columns[0].partition("@")
    sign = -1 if (direction or _direction(study, name)) == "maximize" else 1
    means = {c: found.mean for c in study.conditions if (found := study.summary(c, columns[0]))}
    if not means:
        raise InputError(f"{study.sweep} has no complete replicate with {columns[0]!r}; run the sweep to its end.")
    kept = None if study.question else _recorded(study)
    over = missed(study, load_constraints(kept, read_settings()) if kept else ())
    means = {condition: mean for condition, mean in means.items() if condition not in over} or means
    chosen = trained(study, min(means, key=lambda condition: sign * means[condition]))
    return Trained(study, chosen.condition, evaluation, chosen.seeds)


def _direction(study: Study, metric: str) -> str:
    objectives: Sequence[Any] = study.question.objectives if study.question else ()
    declared = {objective.metric: objective.direction for objective in objectives}
    if not declared:
        declared = dict(load_directions(_recorded(study) or find_named(study.sweep), read_settings()))
    if metric not in declared:
        raise InputError(f"Whether {metric!r} is to be small or large is not declared; give `direction`.")
    return str(declared[metric])


def _recorded(study: Study) -> Sweep | None:
    """The sweep of the study as it was recorded; None where it is not, or was put away."""
    try:
        return load_sweep(study.sweep, read_settings())
    except InputError:
        return None
