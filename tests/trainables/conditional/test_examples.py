"""Each block's example does what it shows, and can be read at a glance."""

import doctest
import importlib
import inspect
import pkgutil
import runpy
import textwrap

import pytest
import torch
from torch import nn

from trainables import conditional

BLOCKS = {
    one.name: importlib.import_module(f"{conditional.__name__}.{one.name}")
    for one in pkgutil.iter_modules(conditional.__path__)
}
SHOWN = [name for name, block in BLOCKS.items() if ">>>" in (block.__doc__ or "")]
FUNCTIONS = [
    function
    for name, block in BLOCKS.items()
    for _, function in inspect.getmembers(block, inspect.isfunction)
    if function.__module__ == block.__name__ and "::\n\n" in (inspect.getdoc(function) or "")
]
PARTS = {"deferred_weight_gradient", "finite", "same_shape", "recurrent_cells", "sequence_order"}
"""What blocks are made of."""


def test_every_block_has_an_example():
    shown = {*SHOWN, *(function.__module__.rpartition(".")[2] for function in FUNCTIONS)}
    assert shown == BLOCKS.keys() - PARTS


@pytest.mark.parametrize("block", SHOWN)
def test_a_blocks_example_does_what_it_shows(block):
    torch.manual_seed(0)
    (example,) = doctest.DocTestFinder(recurse=False).find(BLOCKS[block])
    assert 3 <= len(example.examples) <= 12
    assert doctest.DocTestRunner().run(example).failed == 0


def code_of(function) -> str:
    """The indented lines behind `::`."""
    _, _, behind = inspect.getdoc(function).partition("::\n\n")
    lines = behind.splitlines()
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return textwrap.dedent("\n".join(lines[:end]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_functions_example_runs(function, tmp_path):
    code = code_of(function)
    assert len(code.splitlines()) > 3
    (tmp_path / "example.py").write_text(code)
    known = vars(BLOCKS["recurrent_cells"]) | vars(inspect.getmodule(function))
    names = {name: value for name, value in known.items() if not name.startswith("__")}
    runpy.run_path(str(tmp_path / "example.py"), names | {"torch": torch, "nn": nn})
