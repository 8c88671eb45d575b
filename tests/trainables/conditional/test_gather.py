"""Rows are taken and put back where they were."""

import pytest
import torch

from trainables.conditional.gather import put_back, take
from trainables.conditional.macs import count_macs
from trainables.conditional.route import mix, route


def test_rows_are_taken_in_the_order_asked_for_and_put_back_where_they_were():
    values = torch.arange(12.0).reshape(2, 3, 2)
    rows = torch.tensor([2, 0])
    part = take(values, 1, rows)
    assert part.tolist() == [[[4, 5], [0, 1]], [[10, 11], [6, 7]]]
    assert put_back(part, 1, rows, 3, fill=-1.0).tolist() == [[[0, 1], [-1, -1], [4, 5]], [[6, 7], [-1, -1], [10, 11]]]
    assert take(values, 1, None) is values


def test_of_no_rows_nothing_is_put_back():
    none = torch.zeros(0, dtype=torch.long)
    assert put_back(take(torch.ones(3, 2), 0, none), 0, none, 3).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("row", [3, -1])
def test_a_row_that_is_not_there_is_refused(row):
    with pytest.raises(IndexError):
        put_back(torch.ones(1, 2), 0, torch.tensor([row]), 3)


def test_what_is_computed_of_open_rows_alone_is_what_a_mask_gives_with_its_gradients_and_for_less():
    """The mask computes all rows, and leaves those that are shut as they are."""
    torch.manual_seed(0)
    layer, opened = torch.nn.Linear(4, 4), torch.tensor([True, False, False, True, True, False])
    rows = torch.randn(6, 4, requires_grad=True)
    at = opened.nonzero()[:, 0]

    def gathered(rows):
        return rows + put_back(layer(take(rows, 0, at)) - take(rows, 0, at), 0, at, len(rows))

    def masked(rows):
        return mix(rows, opened.float(), lambda same: same, layer)

    weights = torch.randn(6, 4)
    found = []
    for compute in (gathered, masked, lambda rows: route(rows, opened, lambda same: same, layer)):
        output = compute(rows)
        found.append((output, *torch.autograd.grad((output * weights).sum(), [rows, layer.weight, layer.bias])))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            torch.testing.assert_close(one, other)
    for compute, num_rows in ((gathered, 3), (masked, 6)):
        with count_macs() as macs, torch.no_grad():
            compute(rows)
        assert macs.total == num_rows * 16
