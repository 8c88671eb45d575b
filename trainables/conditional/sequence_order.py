"""The order in which the steps of many sequences are worked through: all first steps, all second ones, and so on."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from trainables.conditional.halted_rows import State


class Order:
    """The place of each step of B sequences among N rows; at each step the longest sequences come first.

    Attributes:
        shape: B and T.
        sizes: how many sequences have each step; [0] where none has one.
        row_of: of each step; 0 behind the end of a sequence (B T).
    """

    def __init__(self, num_steps: Int[Tensor, " B"], length: int) -> None:
        self.num_steps, num_sequences = num_steps, num_steps.shape[0]
        self.shape = (num_sequences, length)
        self.is_even = min(num_sequences, length) > 0 and int(num_steps.min()) == length
        if self.is_even:
            self.sizes = [num_sequences] * length
            rows = torch.arange(num_sequences * length, device=num_steps.device)
            self.row_of = rows.view(length, num_sequences).t()
            return
        sequences = num_steps.argsort(descending=True, stable=True)
        is_step = torch.arange(length, device=num_steps.device)[:, None] < num_steps[sequences]
        step, place = is_step.nonzero(as_tuple=True)
        self.sizes = step.bincount().tolist() or [0]
        self._first, self._at = sequences[: self.sizes[0]], (sequences[place], step)
        rows = torch.arange(step.shape[0], device=num_steps.device)
        self.row_of = self.by_sequence(rows)

    def by_row(self, values: Shaped[Tensor, "B T ..."]) -> Shaped[Tensor, "N ..."]:
        """The rows of all steps, one step behind the other."""
        return values.transpose(0, 1).flatten(0, 1) if self.is_even else values[self._at]

    def by_sequence(self, values: Shaped[Tensor, " N"]) -> Shaped[Tensor, "B T"]:
        """The other way round; 0 behind the end of a sequence."""
        if self.is_even:
            return values.view(self.shape[::-1]).t()
        return values.new_zeros(self.shape).index_put(self._at, values)

    def at_first(self, part: Float[Tensor, "B H"]) -> Float[Tensor, "R H"]:
        """What belongs to the rows of the first step."""
        return part if self.is_even else part[self._first]

    def behind(self, states: State, before: State) -> State:
        """The state behind the last step of each sequence; the one `before` where it has no step."""
        if self.is_even:
            return tuple(part[-self.shape[0] :] for part in states)
        if not self.sizes[0]:
            return before
        ends = self.row_of.gather(1, (self.num_steps - 1).clamp(min=0)[:, None])[:, 0]
        has_none = (self.num_steps == 0)[:, None]
        after = (part.index_select(0, ends) for part in states)
        return tuple(torch.where(has_none, *both) for both in zip(before, after, strict=True))
