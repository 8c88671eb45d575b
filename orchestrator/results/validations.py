"""Curves of validation by seed, and what of them selects checkpoints."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from trainables.metric import Best


@dataclass(frozen=True)
class SeedCurve:
    """A metric over the training of one replicate: its finite values, by step.

    Attributes:
        is_pruned: whether it is the part that ran before a search stopped it; the replicate has no result.
    """

    condition: str
    seed: int
    metric: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    is_pruned: bool = False


@dataclass(frozen=True)
class Validations:
    """The validations of a study.

    Attributes:
        selected: by condition and evaluation, what the tested checkpoint is the best of.
        curves: of these metrics and of those that foresee an objective (`foreseeing`), of complete replicates; of long
            ones some steps, and every one at the end.
    """

    selected: Mapping[str, Mapping[str, Best]] = field(default_factory=dict)
    curves: tuple[SeedCurve, ...] = ()

    def of(self, condition: str, metric: str) -> tuple[SeedCurve, ...]:
        """The curves of one metric of a condition, by seed."""
        return self._by_name.get((condition, metric), ())

    def selecting(self, condition: str, evaluation: str) -> Best | None:
        """The metric that selects an evaluation's checkpoint; where one metric selects all of them, it is that."""
        named = self.selected.get(condition, {})
        known = set(named.values())
        return known.pop() if len(known) == 1 else named.get(evaluation)

    def of_conditions(self, names: Collection[str]) -> "Validations":
        """The validations of these conditions alone."""
        selected = {name: found for name, found in self.selected.items() if name in names}
        return replace(self, selected=selected, curves=tuple(one for one in self.curves if one.condition in names))

    def joined(self, other: "Validations") -> "Validations":
        """These validations, and the curves of replicates that only `other` has."""
        known = {(one.condition, one.seed) for one in self.curves}
        new = tuple(one for one in other.curves if (one.condition, one.seed) not in known)
        return Validations({**other.selected, **self.selected}, (*self.curves, *new))

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], tuple[SeedCurve, ...]]:
        found: dict[tuple[str, str], list[SeedCurve]] = {}
        for one in self.curves:
            found.setdefault((one.condition, one.metric), []).append(one)
        return {name: tuple(sorted(listed, key=lambda one: one.seed)) for name, listed in found.items()}


def foreseeing(metric: str, evaluation: str) -> tuple[str, ...]:
    """Names under which training reports what a metric of an evaluation would be: `valid_per` of `per`."""
    own = (f"valid_{metric}@{evaluation}",) if evaluation else ()
    return (*own, f"valid_{metric}")
