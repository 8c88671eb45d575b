"""Errors of single test items under each seed, as replicates kept them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from trainables.item_errors import Item


class ItemKey(NamedTuple):
    """An item of a test set, whatever erred on it."""

    item: str
    group: str
    length: float


@dataclass(frozen=True)
class ReplicateErrors:
    """What one replicate erred on each item of a test set.

    Attributes:
        metric: that they add up to, with its evaluation.
        test_set: its place in `ItemErrors.test_sets`.
        errors: in the order of its items.
    """

    condition: str
    seed: int
    metric: str
    test_set: int
    errors: tuple[float, ...]


@dataclass(frozen=True)
class ItemErrors:
    """The errors by item of a study's replicates; each test set stands there once."""

    test_sets: tuple[tuple[ItemKey, ...], ...] = ()
    errors: tuple[ReplicateErrors, ...] = ()

    @classmethod
    def of(cls, found: Mapping[tuple[str, int, str], tuple[Item, ...]]) -> "ItemErrors":
        """From the items by condition, seed and metric."""
        places: dict[tuple[ItemKey, ...], int] = {}
        errors = []
        for (condition, seed, metric), items in found.items():
            listed = sorted(items)
            test_set = tuple(ItemKey(one.item, one.group, one.length) for one in listed)
            place = places.setdefault(test_set, len(places))
            errors.append(ReplicateErrors(condition, seed, metric, place, tuple(one.errors for one in listed)))
        return cls(tuple(places), tuple(errors))

    def of_conditions(self, names: Collection[str]) -> "ItemErrors":
        """The errors of these conditions alone."""
        return ItemErrors(self.test_sets, tuple(one for one in self.errors if one.condition in names))

    def joined(self, other: "ItemErrors") -> "ItemErrors":
        """These errors, and those of replicates that only `other` has."""
        known = {(one.condition, one.seed) for one in self.errors}
        new = [one for one in other.errors if (one.condition, one.seed) not in known]
        test_sets = tuple(dict.fromkeys((*self.test_sets, *other.test_sets)))
        places = {test_set: place for place, test_set in enumerate(test_sets)}
        added = (replace(one, test_set=places[other.test_sets[one.test_set]]) for one in new)
        return ItemErrors(test_sets, (*self.errors, *added))

    def metrics(self, condition: str, evaluation: str) -> Mapping[str, str]:
        """The metrics of an evaluation that the condition has by item: recorded names by name without evaluation."""
        names = {one.metric: one.metric.partition("@") for one in self._by_condition.get(condition, ())}
        return {name: whole for whole, (name, _, of) in names.items() if of == evaluation}

    def by_seed(self, condition: str, metric: str) -> Mapping[int, ReplicateErrors]:
        """Each replicate's errors."""
        return {one.seed: one for one in self._by_condition.get(condition, ()) if one.metric == metric}

    @cached_property
    def _by_condition(self) -> Mapping[str, list[ReplicateErrors]]:
        found: dict[str, list[ReplicateErrors]] = {}
        for one in self.errors:
            found.setdefault(one.condition, []).append(one)
        return found
