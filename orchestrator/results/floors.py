"""Trained models beside what needs no learning: a metric against its floor."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.results.study import Study
from trainables.metric import Metric

BETTER: Final = 0.05
"""The share of a floor by which a metric must stay below it."""


@dataclass(frozen=True)
class BesideFloor:
    """A metric to minimise and its floor, in means over replicates.

    Attributes:
        what: whose they are.
    """

    what: str
    metric: str
    value: float
    floor: str
    floor_value: float

    @property
    def is_beaten(self) -> bool:
        """Whether the metric is at least 5 % below its floor."""
        return self.value <= self.floor_value - BETTER * abs(self.floor_value)

    @property
    def share(self) -> float:
        """By which share of its floor the metric is below it; negative above it."""
        return (self.floor_value - self.value) / abs(self.floor_value) if self.floor_value else 0.0

    @property
    def sentence(self) -> str:
        """By how much the metric is below its floor, or above."""
        side = "below" if self.value < self.floor_value else "above"
        by = f"{100 * abs(self.share):.1f} % {side}" if self.floor_value else side
        by = by if self.value != self.floor_value else "equal to"
        said = f"{self.what}: {self.metric} {self.value:.4g} is {by} {self.floor} {self.floor_value:.4g}"
        return (
            f"{said}." if self.is_beaten else f"{said}; a model that has learnt is at least {100 * BETTER:.0f} % below."
        )


def floors_of(metrics: Iterable[Metric]) -> dict[str, str]:
    """The floor of each metric that has one, by its name."""
    return {one.name: one.floor for one in metrics if one.floor}


def beside_floors(what: str, values: Mapping[str, float], floors: Mapping[str, str]) -> Iterator[BesideFloor]:
    """What `values` say, by their names: of an evaluation the floor is its own, or that of the replicate."""
    for name, value in values.items():
        metric, _, evaluation = name.partition("@")
        for floor in (f"{floors[metric]}@{evaluation}", floors[metric]) if metric in floors else ():
            if floor in values:
                yield BesideFloor(what, name, value, floor, values[floor])
                break


def beaten_sentences(floors: Iterable[BesideFloor]) -> tuple[str, ...]:
    """Sentences on those that beat their floor: one for all seeds of a predictor."""
    kinds: dict[tuple[str, ...], list[BesideFloor]] = {}
    for one in floors:
        if one.is_beaten:
            kinds.setdefault((one.what.partition(" seed ")[0], one.metric, one.floor), []).append(one)
    found: list[str] = []
    for (what, metric, floor), every in kinds.items():
        if len({one.what for one in every}) == len(every) > 1 and all(one.floor_value for one in every):
            shares = sorted(one.share for one in every)
            found.append(
                f"{what}, {len(every)} seeds: {metric} is {100 * shares[0]:.1f} % to {100 * shares[-1]:.1f} % below "
                f"{floor}."
            )
        else:  # conditions have predictors of their own, which a reader compares
            found += [one.sentence for one in every]
    return tuple(found)


def of_study(study: Study, metrics: Sequence[Metric]) -> list[BesideFloor]:
    """Each condition beside the floors that its complete replicates have reported."""
    floors = floors_of(metrics)
    found: list[BesideFloor] = []
    for condition in study.conditions if floors else ():
        reported = {name for replicate in study.of(condition) for name in replicate.metrics}
        names = {name for name in reported if name.partition("@")[0] in (*floors, *floors.values())}
        means = {name: summary.mean for name in sorted(names) if (summary := study.summary(condition, name))}
        found += beside_floors(condition, means, floors)
    return found
