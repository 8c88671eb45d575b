"""Shapes of tensors are checked in tests, at a function's first calls in each."""

import os

import jaxtyping
import pytest
import torch

from tests.shapes import MOST_CALLS
from trainables.conditional.top_k import highest


@pytest.mark.skipif("PYTEST_WITHOUT_SHAPES" in os.environ, reason="no shapes are checked")
@pytest.mark.parametrize("test", ["first", "next"])
def test_a_wrong_shape_is_refused_at_the_first_calls_of_each_test(test):
    for _ in range(MOST_CALLS - 1):
        highest(torch.zeros(2, 3), 1)
    with pytest.raises(jaxtyping.TypeCheckError):
        highest(torch.zeros(2, 3, 4), 1)
    highest(torch.zeros(2, 3, 4), 1)
