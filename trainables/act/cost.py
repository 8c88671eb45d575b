"""What a network computes: multiply-accumulates that run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainables.act.config import ActConfig, Adaptive, EarlyExit, Halts, PonderNet
from trainables.act.tasks.data import sizes
from trainables.conditional.recurrent_cells import CELLS
from trainables.cost import linear_macs

if TYPE_CHECKING:  # commands that only read a sweep load this module without it
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PartCosts:
    """The costs of one input step, one update, one readout, and one halting unit that is no part of the update."""

    step: int
    update: int
    readout: int
    question: int = 0


def part_macs(config: ActConfig) -> PartCosts:
    """Multiply-accumulates of each part.

    The input is projected once for all updates of its step; a symbol is looked up, which costs none.
    """
    task, size = sizes(config.data), config.hidden_size
    width = CELLS[config.cell].num_gates * size
    halting = linear_macs(size, 1)
    return PartCosts(
        step=0 if task.is_symbol else linear_macs(task.num_inputs, width),
        update=linear_macs(size, width) + (halting if isinstance(config.halting, Adaptive) else 0),
        readout=linear_macs(size, task.num_outputs * task.num_logits),
        question=halting if isinstance(config.halting, PonderNet) else 0,
    )


def training_macs(config: ActConfig, num_steps: int, num_updates: int, num_targets: int) -> int:
    """Multiply-accumulates of the forward pass in training; the backward pass takes about twice that.

    PonderNet and early exit run all updates and read out behind each of them.
    """
    parts = part_macs(config)
    readouts = config.halting.max_updates if isinstance(config.halting, PonderNet | EarlyExit) else 1
    return (
        parts.step * num_steps + (parts.update + parts.question) * num_updates + parts.readout * readouts * num_targets
    )


def testing_macs(
    config: ActConfig, halts: Halts | None, num_steps: int, updates: "NDArray[np.integer]", num_targets: int
) -> int:
    """Multiply-accumulates of a test.

    PonderNet asks behind every update but the last there may be; an early exit is read out behind every update.

    Args:
        halts: how an early exit decides in the evaluation.
        updates: of each of the `num_steps` input steps.
        num_targets: how many of them are read out.
    """
    parts, num_updates = part_macs(config), int(updates.sum())
    total = parts.step * num_steps + parts.update * num_updates
    if isinstance(config.halting, PonderNet):
        total += parts.question * int(updates.clip(max=config.halting.max_updates - 1).sum())
    reads_every_update = isinstance(config.halting, EarlyExit) and halts is not None
    return total + parts.readout * (num_updates if reads_every_update else num_targets)
