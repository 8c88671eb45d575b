"""Curves of validation by seed, and whether what they select checkpoints by still got better when training ended."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.statistics.improving import Ending, ending
from search_spaces.sweep import Objective

if TYPE_CHECKING:
    from orchestrator.results.study import Study


@dataclass(frozen=True)
class ValidationCurve:
    """A metric of validation over the training of one replicate: its finite values, by step."""

    condition: str
    seed: int
    metric: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Validations:
    """The validations of a study.

    Attributes:
        selected: by condition and evaluation, what the tested checkpoint is the best of.
        curves: of these metrics and of those that foresee an objective (`foreseeing`), of complete replicates.
    """

    selected: Mapping[str, Mapping[str, Objective]] = field(default_factory=dict)
    curves: tuple[ValidationCurve, ...] = ()

    def of(self, condition: str, metric: str) -> tuple[ValidationCurve, ...]:
        """The curves of one metric of a condition, by seed."""
        return self._by_name.get((condition, metric), ())

    def selecting(self, condition: str, evaluation: str) -> Objective | None:
        """What an evaluation's checkpoint is the best of; where all are the best of one metric, it is that."""
        named = self.selected.get(condition, {})
        known = set(named.values())
        return known.pop() if len(known) == 1 else named.get(evaluation)

    def of_conditions(self, names: Collection[str]) -> "Validations":
        """Those of these conditions alone."""
        selected = {name: found for name, found in self.selected.items() if name in names}
        return replace(self, selected=selected, curves=tuple(one for one in self.curves if one.condition in names))

    def joined(self, other: "Validations") -> "Validations":
        """With what only `other` has."""
        known = {(one.condition, one.seed) for one in self.curves}
        new = tuple(one for one in other.curves if (one.condition, one.seed) not in known)
        return Validations({**other.selected, **self.selected}, (*self.curves, *new))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], tuple[ValidationCurve, ...]]:
        found: dict[tuple[str, str], list[ValidationCurve]] = {}
        for one in self.curves:
            found.setdefault((one.condition, one.metric), []).append(one)
        return {name: tuple(sorted(listed, key=lambda one: one.seed)) for name, listed in found.items()}


def foreseeing(metric: str, evaluation: str) -> tuple[str, ...]:
    """Names under which training reports what a metric of an evaluation would be: `valid_per` of `per`."""
    own = (f"valid_{metric}@{evaluation}",) if evaluation else ()
    return (*own, f"valid_{metric}")


def ending_of(study: "Study", condition: str, evaluation: str) -> Ending:
    """Whether the condition still got better when training ended, by what selects the evaluation's checkpoint.

    Not known where a complete replicate has no curve of it.
    """
    selecting = study.validations.selecting(condition, evaluation)
    if selecting is None:
        return ending([], "minimize")
    return _ending(study, condition, selecting)


def change_of(study: "Study", condition: str, metric: str, evaluation: str) -> float:
    """By how much one more tenth of training would move a metric of a condition that still got better; else 0.

    It is 0 too where training does not validate the metric.
    """
    if ending_of(study, condition, evaluation).standing != "improving":
        return 0.0
    for name in foreseeing(metric, evaluation):
        found = _ending(study, condition, Objective(name))
        if found.standing != "not known":
            return found.change
    return 0.0


def _ending(study: "Study", condition: str, selecting: Objective) -> Ending:
    curves: Sequence[ValidationCurve] = study.validations.of(condition, selecting.metric)
    num_complete = sum(one.state == "complete" for one in study.of(condition))
    points = [list(zip(one.steps, one.values, strict=True)) for one in curves]
    return ending(points if len(points) == num_complete else [], selecting.direction)
