"""What a network computes: multiply-accumulates that run."""

from dataclasses import dataclass

from trainables.act.config import ActConfig, Adaptive
from trainables.act.tasks.data import sizes
from trainables.conditional.recurrent_cells import CELLS
from trainables.cost import linear_macs


@dataclass(frozen=True)
class PartCosts:
    """Of one input step, of one update, and of one readout, which only steps with a target need."""

    step: int
    update: int
    readout: int


def part_macs(config: ActConfig) -> PartCosts:
    """Multiply-accumulates of each part.

    The input is projected once for all updates of its step; a symbol is looked up, which costs none.
    """
    task, size = sizes(config.data), config.hidden_size
    width = CELLS[config.cell].num_gates * size
    halting = linear_macs(size, 1) if isinstance(config.halting, Adaptive) else 0
    return PartCosts(
        step=0 if task.is_symbol else linear_macs(task.num_inputs, width),
        update=linear_macs(size, width) + halting,
        readout=linear_macs(size, task.num_outputs * task.num_logits),
    )
