"""Where the conditions of a sweep come from."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from search_spaces.sweep import Condition


class ConditionSource(Protocol):
    """A list, or a search that learns from the results."""

    def more(self) -> Sequence[Condition]:
        """Conditions to add now."""

    def is_exhausted(self) -> bool:
        """Whether `more` will never give any again."""

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None) -> None:
        """The means of a finished condition's metrics; None where it failed."""


class ListedConditions:
    """The conditions that a sweep lists."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._left = list(conditions)

    def more(self) -> Sequence[Condition]:
        """All of them, once."""
        given, self._left = self._left, []
        return given

    def is_exhausted(self) -> bool:
        """Whether they were given."""
        return not self._left

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None) -> None:
        """Nothing to learn."""
