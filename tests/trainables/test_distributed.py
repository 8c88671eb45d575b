"""What the loss of another process looks like to those that are left."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import distributed as torch_distributed
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel

from trainables import distributed
from trainables.errors import DivergedError

GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:1"


def raised(error: Exception) -> Exception:
    """As a user's `raise` makes it."""
    try:
        raise error
    except Exception as caught:
        return caught


def own_error_from(cause: Exception) -> Exception:
    try:
        raise KeyError("the sums differ") from cause
    except Exception as caught:
        return caught


def test_recurrent_layers_on_a_card_keep_single_precision(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    with torch.backends.cudnn.flags(allow_tf32=True):
        assert distributed.device() == torch.device("cuda:1")
        assert not torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(
    ("error", "is_loss"),
    [
        (torch_distributed.DistNetworkError("failed to connect"), True),
        (torch_distributed.DistBackendError("NCCL error"), True),
        (distributed.PeerLostError("The writer starts again"), True),
        (own_error_from(torch_distributed.DistNetworkError("failed to connect")), True),
        (RuntimeError(GLOO), False),
        (ValueError(GLOO), False),
        (RuntimeError("the gloomy corpus is empty"), False),
        (
            ValueError("Default process group has not been initialized, please make sure to call init_process_group."),
            False,
        ),
        (ConnectionResetError("Connection reset by peer"), False),
        (ConnectionRefusedError("the user's own data server"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (DivergedError("The loss is nan at epoch 1, batch 1."), False),
        (ValueError("`rate` must be in [0, 1), but got 1.2."), False),
    ],
)
def test_only_the_loss_of_another_process_is_one(error, is_loss):
    assert distributed.is_peer_failure(error) is is_loss
    assert distributed.is_peer_failure(raised(error)) is is_loss


def test_a_group_that_was_taken_down_meanwhile_is_a_loss_too():
    """As torch itself says it."""
    with pytest.raises(ValueError, match="Default process group") as raised:
        torch_distributed.all_reduce(torch.zeros(1))
    assert distributed.is_peer_failure(raised.value)


def wait(model: torch.nn.Module) -> None:
    torch_distributed.all_reduce(torch.ones(3), async_op=True).wait()


def reraise(model: torch.nn.Module) -> None:
    try:
        torch_distributed.all_reduce(torch.ones(3))
    except RuntimeError:
        raise


def raise_from(model: torch.nn.Module) -> None:
    try:
        torch_distributed.all_reduce(torch.ones(3))
    except RuntimeError as error:
        raise AssertionError("sums") from error


CALLS: dict[str, Callable[[torch.nn.Module], object]] = {
    "sum": lambda model: distributed.sum_over_processes(1.0),
    "gather": lambda model: distributed.gather("x"),
    "wait": wait,
    "backward": lambda model: model(torch.ones(1, 2)).sum().backward(),
    "reraise": reraise,
    "raise from": raise_from,
    "mistake": lambda model: torch_distributed.all_reduce(torch.ones(3).bool() @ torch.ones(4)),
}


def lose(rank: int, folder: Path, name: str) -> None:
    """The second process leaves before the call; the first notes what it takes that for."""
    torch.set_num_threads(1)
    store = torch_distributed.FileStore(str(folder / "store"), 2)
    limit = timedelta(seconds=60)
    torch_distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    torch_distributed.barrier()
    if rank == 0:
        try:
            CALLS[name](model)
            (folder / "noted").write_text("nothing was raised")
        except Exception as error:
            (folder / "noted").write_text(str(distributed.is_peer_failure(error)))
    os._exit(0)


@pytest.mark.slow
def test_the_loss_of_a_real_process_is_one_in_whatever_call(tmp_path):
    folders = {name: tmp_path / name for name in CALLS}
    for name, folder in folders.items():
        folder.mkdir()
        multiprocessing.spawn(lose, (folder, name), nprocs=2)
    noted = {name: (folder / "noted").read_text() for name, folder in folders.items()}
    assert noted == dict.fromkeys(CALLS, "True") | {"mistake": "False"}
