"""Where the steps of sequences lie when all first steps are worked through, then all second ones."""

import pytest
import torch

from trainables.conditional.sequence_order import Order


def test_longer_sequences_come_first_at_each_step():
    order = Order(torch.tensor([1, 3, 0, 2]), 4)
    assert order.sizes == [3, 2, 1]
    values = torch.tensor([[11, 0, 0, 0], [21, 22, 23, 0], [0, 0, 0, 0], [41, 42, 0, 0]])
    rows = order.by_row(values)
    assert rows.tolist() == [21, 41, 11, 22, 42, 23]
    assert order.by_sequence(rows).tolist() == values.tolist()
    assert rows[order.row_of][values > 0].tolist() == [11, 21, 22, 23, 41, 42]
    assert order.at_first(torch.tensor([[1.0], [2.0], [3.0], [4.0]])).flatten().tolist() == [2, 4, 1]


def test_the_state_behind_a_sequence_without_steps_is_the_one_before():
    order = Order(torch.tensor([1, 3, 0, 2]), 4)
    rows, before = torch.arange(6.0)[:, None], -torch.ones(4, 1)
    assert order.behind((rows,), (before,))[0].flatten().tolist() == [2, 5, -1, 4]


@pytest.mark.parametrize("length", [0, 3])
@pytest.mark.parametrize("num_sequences", [0, 2])
def test_where_no_sequence_has_a_step_nothing_happens(num_sequences, length):
    order = Order(torch.zeros(num_sequences, dtype=torch.long), length)
    assert order.sizes == [0]
    assert order.by_row(torch.ones(num_sequences, length)).shape == (0,)
    assert order.by_sequence(torch.ones(0)).tolist() == [[0] * length] * num_sequences
    before = torch.ones(num_sequences, 1)
    assert order.behind((torch.ones(0, 1),), (before,)) == (before,)


def test_sequences_of_one_length_lie_as_any_others_do():
    """A longer row of steps has the same sequences end early, and takes the other way."""
    values, state = torch.arange(12.0).view(4, 3), torch.zeros(4, 1)
    num_steps = torch.tensor([3] * 4)
    even, other = Order(num_steps, 3), Order(num_steps, 5)
    assert even.is_even and not other.is_even
    rows = even.by_row(values)
    assert even.sizes == other.sizes and torch.equal(rows, other.by_row(values))
    assert torch.equal(even.by_sequence(rows), other.by_sequence(rows)[:, :3])
    assert torch.equal(even.row_of, other.row_of[:, :3])
    assert torch.equal(even.at_first(state), other.at_first(state))
    assert torch.equal(even.behind((rows[:, None],), (state,))[0], other.behind((rows[:, None],), (state,))[0])
