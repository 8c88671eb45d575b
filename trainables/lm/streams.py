"""A text as parallel streams, cut in windows: a model carries its state from one window to the next."""

from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Int
from torch import Tensor

NO_TARGET: Final = -1


@dataclass(frozen=True, eq=False)
class Window:
    """T steps of B streams.

    Attributes:
        inputs: tokens; 0 where nothing is asked.
        targets: the token behind each input; `NO_TARGET` where nothing is asked.
    """

    inputs: Int[Tensor, "T B"]
    targets: Int[Tensor, "T B"]

    def rows(self, chosen: slice) -> "Window":
        """The `chosen` streams."""
        return Window(self.inputs[:, chosen], self.targets[:, chosen])

    def to(self, device: torch.device) -> "Window":
        """The same on `device`."""
        return Window(self.inputs.to(device), self.targets.to(device))


class Streams:
    """`tokens` in `batch_size` streams of one length, each continued by the next; every token but the first is asked.

    The first input of a stream is the last target of the stream before it. Where the tokens do not fill all streams,
    nothing is asked at the end of the last, or in several of the last.
    """

    def __init__(self, tokens: Int[Tensor, " N"], batch_size: int, window: int) -> None:
        self._window = window
        self._inputs = _streams(tokens[:-1], batch_size, 0)
        self._targets = _streams(tokens[1:], batch_size, NO_TARGET)

    @classmethod
    def beside(cls, inputs: Int[Tensor, "T B"], targets: Int[Tensor, "T B"], window: int) -> "Streams":
        """Streams that have nothing to do with each other, filled up as above where one is shorter."""
        streams = cls(inputs[:, 0], 1, window)
        streams._inputs, streams._targets = inputs, targets
        return streams

    @property
    def num_tokens(self) -> int:
        """How many tokens are asked."""
        return int((self._targets != NO_TARGET).sum())

    @property
    def num_windows(self) -> int:
        """Windows of the text; the last may be shorter than the others."""
        return -(-len(self._inputs) // self._window)

    def window(self, index: int) -> Window:
        """The `index`-th window in order of the text, from 0.

        Raises:
            IndexError: if there is no such window.
        """
        if not 0 <= index < self.num_windows:
            raise IndexError(f"There are {self.num_windows} windows, but {index} was asked for.")
        steps = slice(index * self._window, (index + 1) * self._window)
        return Window(self._inputs[steps], self._targets[steps])


def _streams(tokens: Int[Tensor, " N"], batch_size: int, filler: int) -> Int[Tensor, "T B"]:
    num_steps = -(-len(tokens) // batch_size)
    filled = tokens.new_full((batch_size * num_steps,), filler)
    filled[: len(tokens)] = tokens
    return filled.reshape(batch_size, num_steps).T.contiguous()
