"""The recurrent layer against PyTorch's own, in outputs and in every gradient."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from trainables.asr import recurrent
from trainables.asr.recurrent import recur, recur_padded

LENGTHS = [*itertools.product((1, 2, 5), repeat=3), (1,), (7,), (40, 3, 40, 1, 17)]


@pytest.fixture(params=[1, 3, 256])
def rows_of_a_block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "BLOCK_ROWS", request.param)


def packed(lengths: tuple[int, ...], num_inputs: int) -> PackedSequence:
    rows = torch.randn(len(lengths), max(lengths), num_inputs, dtype=torch.float64)
    return pack_padded_sequence(rows, torch.tensor(lengths), batch_first=True, enforce_sorted=False)


def outputs_and_gradients(outputs: Tensor, wanted: list[Tensor]) -> list[Tensor]:
    """The gradients are those of a sum with weights that differ from output to output."""
    weighted = (outputs * torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)).sum()
    return [outputs, *torch.autograd.grad(weighted, wanted)]


@pytest.mark.usefixtures("rows_of_a_block")
@pytest.mark.parametrize("bidirectional", [False, True])
def test_utterances_of_every_length_give_what_pytorchs_own_gives(bidirectional: bool) -> None:
    gru = nn.GRU(3, 4, bidirectional=bidirectional, batch_first=True).double()
    for lengths in LENGTHS:
        sequence = packed(lengths, 3)
        rows = sequence.data.requires_grad_()
        wanted = [rows, *gru.parameters()]
        ours = outputs_and_gradients(recur(gru, sequence).data, wanted)
        pytorchs = outputs_and_gradients(gru(sequence)[0].data, wanted)
        for one, other in zip(ours, pytorchs, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("rows_of_a_block")
def test_padded_frames_give_what_pytorchs_own_gives() -> None:
    gru, inputs = nn.GRU(3, 4, batch_first=True).double(), torch.randn(5, 9, 3, dtype=torch.float64).requires_grad_()
    wanted = [inputs, *gru.parameters()]
    ours = outputs_and_gradients(recur_padded(gru, inputs), wanted)
    for one, other in zip(ours, outputs_and_gradients(gru(inputs)[0], wanted), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_gradients_are_those_of_finite_differences() -> None:
    gru, sequence = nn.GRU(2, 3, bidirectional=True, batch_first=True).double(), packed((4, 1, 3), 2)

    def run(rows: Tensor, *weights: Tensor) -> Tensor:
        parameters = dict(zip((name for name, _ in gru.named_parameters()), weights, strict=True))
        layer = nn.GRU(2, 3, bidirectional=True, batch_first=True).double()
        for name, value in parameters.items():
            delattr(layer, name)
            setattr(layer, name, value)
        return recur(layer, sequence._replace(data=rows)).data

    assert torch.autograd.gradcheck(run, (sequence.data.requires_grad_(), *gru.parameters()))


def test_inputs_that_need_no_gradient_get_none_and_weights_theirs() -> None:
    gru, sequence = nn.GRU(3, 4, bidirectional=True, batch_first=True).double(), packed((5, 2, 1), 3)
    wanted = list(gru.parameters())
    ours = outputs_and_gradients(recur(gru, sequence).data, wanted)
    for one, other in zip(ours, outputs_and_gradients(gru(sequence)[0].data, wanted), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_the_order_in_which_utterances_stand_is_kept() -> None:
    gru, sequence = nn.GRU(3, 4, bidirectional=True, batch_first=True).double(), packed((2, 6, 4), 3)
    ours, pytorchs = recur(gru, sequence), gru(sequence)[0]
    assert ours.unsorted_indices is not None
    assert torch.equal(ours.unsorted_indices, pytorchs.unsorted_indices)
    assert torch.equal(ours.batch_sizes, pytorchs.batch_sizes)


@pytest.mark.parametrize("num_rows", [1, 3])
def test_the_gradient_that_comes_in_stays_as_it_is(num_rows: int) -> None:
    """Others may get the same one, as where outputs are added to something else."""
    gru = nn.GRU(3, 4, batch_first=True).double()
    inputs = torch.randn(num_rows, 5, 3, dtype=torch.float64).requires_grad_()
    beside = torch.zeros(num_rows, 5, 4, dtype=torch.float64).requires_grad_()
    coming_in = torch.randn(num_rows, 5, 4, dtype=torch.float64)
    (recur_padded(gru, inputs) + beside).backward(coming_in.clone())
    assert beside.grad is not None and torch.equal(beside.grad, coming_in)


def test_backward_can_be_asked_twice() -> None:
    gru, sequence = nn.GRU(3, 4, bidirectional=True, batch_first=True).double(), packed((5, 2, 4), 3)
    outputs = recur(gru, sequence).data.square().sum()
    first = torch.autograd.grad(outputs, list(gru.parameters()), retain_graph=True)
    for one, again in zip(first, torch.autograd.grad(outputs, list(gru.parameters())), strict=True):
        assert torch.equal(one, again)


@pytest.mark.usefixtures("rows_of_a_block")
def test_without_gradients_the_outputs_are_the_same() -> None:
    gru, sequence = nn.GRU(3, 4, bidirectional=True, batch_first=True).double(), packed((9, 2, 4), 3)
    outputs = recur(gru, sequence).data
    with torch.no_grad():
        assert torch.equal(recur(gru, sequence).data, outputs)
