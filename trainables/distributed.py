"""One process or several: the few collective operations that the trainables need."""

import dis
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from trainables.errors import causes

TORCH_DISTRIBUTED: Final = Path(distributed.__file__).parent
GLOO: Final = re.compile(r"\[[^\]\s]*/gloo/[^\]\s]*\.cc:\d+\] ")
"""How its errors of transport begin; one about what the user gave begins otherwise, `[enforce fail at ...`."""


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
    """The device of this process: the current CUDA device where there is one, else the CPU.

    On the former recurrent and convolutional layers compute in single precision from here on, as all else does.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    # By default cuDNN rounds what it multiplies to 10 bits (TF32), and a card would give other results than a CPU.
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda", torch.cuda.current_device())


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
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not active() or not gradients:
        return
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    for gradient, total in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(total.view_as(gradient))


class PeerLostError(ConnectionError):
    """Another process of a distributed run went away, or starts again."""


def is_peer_failure(error: Exception) -> bool:
    """Whether `error`, of one of several processes, says that another one went away, and nothing of this one.

    It is told by its type and by what raised it, not by words that an error of the user's may have too. torch has types
    for this, but a loss over gloo is a RuntimeError that no `raise` of Python made (seen with torch 2.11: of all
    collectives, of `wait` and of a backward pass). What was raised from such an error is one, too. Whoever watches over
    the processes may have taken the group down by then, which torch.distributed says in a ValueError of its own.
    """
    return any(isinstance(cause, Exception) and _is_loss(cause) for cause in causes(error))


def _is_loss(error: Exception) -> bool:
    if isinstance(error, distributed.DistError | PeerLostError):
        return True
    if error.__traceback__ is None:
        return False
    origin = error.__traceback__
    while origin.tb_next:
        origin = origin.tb_next
    code = origin.tb_frame.f_code
    if type(error) is ValueError:
        is_of_torch = Path(code.co_filename).is_relative_to(TORCH_DISTRIBUTED)
        return is_of_torch and str(error).startswith("Default process group has not been initialized")
    is_raised = dis.opname[code.co_code[origin.tb_lasti]] == "RAISE_VARARGS"
    return type(error) is RuntimeError and not is_raised and GLOO.match(str(error)) is not None


def gather(value: Any) -> list[Any]:
    """The `value` of every process in order of rank."""
    if not active():
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values
