"""What broadcasting would take for many rows in silence is refused by name."""

import inspect

import pytest
import torch

from trainables.conditional.ponder_net import drawn_update, expected
from trainables.conditional.straight_through import squared_deviation, squared_excess
from trainables.conditional.surprisal_controller import choose
from trainables.conditional.top_k import weighted

CALLS = {
    "one draw for many rows": (choose, lambda: (torch.rand(1000, 20), torch.rand(20))),
    "one draw for each row of many": (choose, lambda: (torch.rand(1000, 20), torch.rand(1000, 1))),
    "padding of one sequence for all": (squared_excess, lambda: (torch.rand(4, 6), torch.ones(1, 6), 0.5)),
    "padding of a column": (squared_deviation, lambda: (torch.rand(4, 6), torch.ones(4, 1))),
    "losses of one row for all": (expected, lambda: (torch.rand(5), torch.rand(8, 5))),
    "one draw to halt by": (drawn_update, lambda: (torch.rand(8, 5).log(), torch.rand(1))),
    "one score for all": (weighted, lambda: (torch.rand(6, 4), torch.rand(1), torch.ones(6, dtype=torch.bool))),
    "one choice for all": (weighted, lambda: (torch.rand(6, 4), torch.rand(6), torch.ones(1, dtype=torch.bool))),
}


@pytest.mark.parametrize(("function", "arguments"), CALLS.values(), ids=CALLS.keys())
def test_another_shape_is_refused(function, arguments):
    """By the function itself, where nothing looks at its annotations."""
    with pytest.raises(ValueError, match=r"` must have the shape of `\w+`, \(.*\), but has \(.*\)\.$"):
        inspect.unwrap(function)(*arguments())
