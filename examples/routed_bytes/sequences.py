"""Sequences of bytes as tensors, and what both trainables do at every step."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn


def numbers(content: bytes) -> Tensor:
    """Bytes as uint8 (N)."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def drawn(text: Tensor, num_sequences: int, length: int, order: torch.Generator) -> Tensor:
    """Sequences (num_sequences, length) from places that `order` draws, as int64."""
    starts = torch.randint(len(text) - length + 1, (num_sequences,), generator=order)
    return text[starts[:, None] + torch.arange(length)].long()


def consecutive(text: Tensor, context: int, num_sequences: int) -> Iterator[Tensor]:
    """All whole sequences (B, context + 1) in order; each begins with the last byte of the one before."""
    rows = text.unfold(0, context + 1, context)
    for first in range(0, len(rows), num_sequences):
        yield rows[first : first + num_sequences].long()


def spread(text: Tensor, num_sequences: int, length: int) -> Tensor:
    """So many sequences at even distances, for what is measured of a text."""
    starts = torch.arange(num_sequences) * (len(text) - length) // max(1, num_sequences - 1)
    return text[starts[:, None] + torch.arange(length)].long()


def rate_at(step: int, num_steps: int, peak: float) -> float:
    """The learning rate: up to `peak` over the first twentieth of the steps, down to 0 after the last."""
    return peak * min(step / max(1, num_steps // 20), 1 - (step - 1) / num_steps)


def descend(model: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    """One step of the optimiser, gradients cut to norm 1."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    optimiser.step()
