"""The examples in docstrings run as they stand."""

import inspect
import textwrap

import pytest
import torch
from torch import nn

from trainables.conditional import (
    adaptive_computation_time,
    early_exit,
    halted_rows,
    ponder_net,
    recurrent_cells,
    recurrent_ponder,
)

FUNCTIONS = (
    adaptive_computation_time.adaptive_computation_time,
    early_exit.exit_early,
    early_exit.exits_loss,
    halted_rows.update_until,
    ponder_net.halt,
    ponder_net.ponder_loss,
    recurrent_ponder.ponder,
)


def example(function) -> str:
    """The indented lines behind `::`."""
    _, _, behind = inspect.getdoc(function).partition("::\n\n")
    lines = behind.splitlines()
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_an_example_runs(function):
    code = example(function)
    assert len(code.splitlines()) > 3
    exec(code, {"torch": torch, "nn": nn} | vars(recurrent_cells) | vars(inspect.getmodule(function)))
