"""What the loss of another process looks like to those that are left."""

import pytest
import torch

from trainables import distributed
from trainables.errors import DivergedError


@pytest.mark.parametrize(
    ("error", "is_loss"),
    [
        (RuntimeError("[third_party/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1"), True),
        (ConnectionResetError("Connection reset by peer"), True),
        (torch.distributed.DistNetworkError("failed to connect"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (DivergedError("The loss is nan at epoch 1, batch 1."), False),
        (ValueError("`rate` must be in [0, 1), but got 1.2."), False),
    ],
)
def test_only_the_loss_of_another_process_is_one(error, is_loss):
    assert distributed.is_peer_failure(error) is is_loss


def test_a_group_that_was_taken_down_meanwhile_is_a_loss_too():
    """As torch itself says it."""
    with pytest.raises(ValueError, match="Default process group") as raised:
        torch.distributed.all_reduce(torch.zeros(1))
    assert distributed.is_peer_failure(raised.value)
