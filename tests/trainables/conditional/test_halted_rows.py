"""Rows that are told to halt leave the batch at once, and nothing else changes for the others."""

import torch

from trainables.conditional.halted_rows import update_until

STOP_AT = torch.tensor([2, 1, 5, 2, 9])
STATE = torch.arange(5.0)[:, None]


def counted(max_updates: int):
    """What `update_until` finds with a state that is counted up, and which rows each update and each question saw."""
    seen, asked = [], []

    def update(state, rows, n):
        seen.append(rows.tolist())
        return (state[0] + 1, state[0].new_full((len(rows),), n))

    def stops(state, rows, n):
        asked.append(rows.tolist())
        return STOP_AT[rows] <= n

    return update_until(update, (STATE,), stops, max_updates), seen, asked


def test_rows_leave_where_they_halt_and_come_back_in_their_order():
    ((state, last), num_updates), seen, asked = counted(6)
    assert num_updates.tolist() == last.tolist() == [2, 1, 5, 2, 6]
    assert torch.equal(state[:, 0], STATE[:, 0] + num_updates)
    assert seen == [[0, 1, 2, 3, 4], [0, 2, 3, 4], [2, 4], [2, 4], [2, 4], [4]]
    assert asked == seen[:-1]


def test_at_the_limit_nothing_is_asked():
    (_, num_updates), seen, asked = counted(1)
    assert num_updates.tolist() == [1] * 5 and len(seen) == 1 and asked == []


def test_gradients_pass_through_the_updates_that_a_row_had():
    factor = torch.ones(5, dtype=torch.float64, requires_grad=True)
    start = torch.full((5,), 2.0, dtype=torch.float64)
    (found,), num_updates = update_until(
        lambda state, rows, n: (state[0] * factor[rows],), (start,), lambda state, rows, n: STOP_AT[rows] <= n, 9
    )
    found.sum().backward()
    assert factor.grad.tolist() == [2.0 * n for n in num_updates.tolist()]


def test_no_rows_are_no_work():
    (found,), num_updates = update_until(
        lambda state, rows, n: state, (torch.zeros(0, 3),), lambda state, rows, n: rows < 0, 4
    )
    assert found.shape == (0, 3) and num_updates.shape == (0,)
