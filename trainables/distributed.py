"""One process or several: the few collective operations that the trainables need."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def active() -> bool:
    """Whether this process belongs to an initialised process group."""
    return distributed.is_available() and distributed.is_initialized()


def rank() -> int:
    """This process's number; 0 when alone."""
    return distributed.get_rank() if active() else 0


def world_size() -> int:
    """How many processes train together; 1 when alone."""
    return distributed.get_world_size() if active() else 1


def share() -> slice:
    """This process's part of what all have: every n-th, so that the parts are about equal."""
    return slice(rank(), None, world_size())


def device() -> torch.device:
    """The device of this process: the current CUDA device where there is one, else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def wrap(model: nn.Module) -> nn.Module:
    """`model` with its gradients averaged over the processes; itself when alone or without parameters."""
    if not active() or not any(p.requires_grad for p in model.parameters()):
        return model
    return DistributedDataParallel(model)


def sum_over_processes(*values: float) -> list[float]:
    """Each value summed over the processes, in float64."""
    if not active():
        return [float(value) for value in values]
    total = torch.tensor(values, dtype=torch.float64, device=device())
    distributed.all_reduce(total)
    return [float(value) for value in total]


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Adds up each parameter's gradient over the processes, which have the same of them."""
    found = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not active() or not found:
        return
    flat = torch.cat([gradient.flatten() for gradient in found])
    distributed.all_reduce(flat)
    for gradient, total in zip(found, flat.split([gradient.numel() for gradient in found]), strict=True):
        gradient.copy_(total.view_as(gradient))


def is_peer_failure(error: Exception) -> bool:
    """Whether `error`, of one of several processes, says that another one went away, and nothing of this one.

    Whoever watches over them may have taken the group down by then, so it is not asked whether there is one.
    """
    lost = (distributed.DistError, ConnectionError)
    said = ("gloo", "Default process group has not been initialized")
    return isinstance(error, lost) or (
        isinstance(error, RuntimeError | ValueError) and any(text in str(error) for text in said)
    )


def gather(value: Any) -> list[Any]:
    """The `value` of every process in order of rank."""
    if not active():
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values
