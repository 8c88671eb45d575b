"""Each block's example does what it shows, and can be read at a glance."""

import doctest
import importlib
import pkgutil

import pytest
import torch

from trainables import conditional

BLOCKS = [one.name for one in pkgutil.iter_modules(conditional.__path__)]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_blocks_example_does_what_it_shows(block):
    torch.manual_seed(0)
    module = importlib.import_module(f"trainables.conditional.{block}")
    (example,) = doctest.DocTestFinder(recurse=False).find(module)
    assert 3 <= len(example.examples) <= 12
    assert doctest.DocTestRunner().run(example).failed == 0
