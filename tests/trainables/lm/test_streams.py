"""Every token but the first is asked once, in order of the text."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.lm.streams import NO_TARGET, Streams, Window


def windows_of(streams: Streams) -> list[Window]:
    return [streams.window(index) for index in range(streams.num_windows)]


def test_streams_by_hand():
    """Ten predictions in three streams of four steps, in windows of three."""
    streams = Streams(torch.arange(20, 31), batch_size=3, window=3)
    assert streams.num_windows == 2
    first, second = windows_of(streams)
    assert first.inputs.tolist() == [[20, 24, 28], [21, 25, 29], [22, 26, 0]]
    assert first.targets.tolist() == [[21, 25, 29], [22, 26, 30], [23, 27, NO_TARGET]]
    assert second.inputs.tolist() == [[23, 27, 0]]
    assert second.targets.tolist() == [[24, 28, NO_TARGET]]


def test_a_text_shorter_than_the_batch_leaves_streams_empty():
    (window,) = windows_of(Streams(torch.tensor([7, 8, 9]), batch_size=4, window=35))
    assert window.inputs.tolist() == [[7, 8, 0, 0]]
    assert window.targets.tolist() == [[8, 9, NO_TARGET, NO_TARGET]]


def test_one_stream_is_the_text():
    first, second = windows_of(Streams(torch.tensor([5, 6, 7, 8, 9]), batch_size=1, window=2))
    assert [first.inputs.tolist(), second.inputs.tolist()] == [[[5], [6]], [[7], [8]]]
    assert [first.targets.tolist(), second.targets.tolist()] == [[[6], [7]], [[8], [9]]]


def test_one_token_asks_nothing():
    assert Streams(torch.tensor([5]), batch_size=2, window=3).num_windows == 0


@pytest.mark.parametrize("index", [-1, 2])
def test_there_is_no_window_beyond_the_text(index):
    with pytest.raises(IndexError, match=f"There are 2 windows, but {index} was asked for"):
        Streams(torch.arange(5), batch_size=1, window=2).window(index)


def test_rows_are_streams():
    window = Streams(torch.arange(20, 31), batch_size=3, window=3).window(0)
    rows = window.rows(slice(1, 3))
    assert rows.inputs.tolist() == [[24, 28], [25, 29], [26, 0]]
    assert rows.targets.tolist() == [[25, 29], [26, 30], [27, NO_TARGET]]


def test_a_window_goes_to_a_device():
    moved = Streams(torch.arange(5), batch_size=1, window=2).window(0).to(torch.device("meta"))
    assert moved.inputs.device.type == moved.targets.device.type == "meta"


@given(num_tokens=st.integers(1, 200), batch_size=st.integers(1, 40), window=st.integers(1, 40))
def test_every_target_comes_once_in_order_behind_its_input(num_tokens: int, batch_size: int, window: int):
    """A token is its own place in the text."""
    streams = Streams(torch.arange(num_tokens), batch_size, window)
    windows = windows_of(streams)
    num_steps = -(-(num_tokens - 1) // batch_size)
    expected = [min(window, num_steps - start) for start in range(0, num_steps, window)]
    assert [len(one.inputs) for one in windows] == expected
    if num_tokens == 1:
        return
    inputs, targets = (torch.cat([getattr(one, name) for one in windows]) for name in ("inputs", "targets"))
    assert inputs.shape == targets.shape == (num_steps, batch_size)
    asked = targets.T[targets.T != NO_TARGET]
    assert asked.tolist() == list(range(1, num_tokens))
    in_order = targets.T.flatten().tolist()
    assert in_order == asked.tolist() + [NO_TARGET] * (len(in_order) - len(asked))
    assert torch.equal(inputs, torch.where(targets == NO_TARGET, 0, targets - 1))
