"""Faults ordered to whichever worker comes first: a file in a folder, taken by renaming it, so that it strikes once."""

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from trainables import rng

FULL_BYTES: Final = {"disk_full.saved": 6000, "disk_full.copied": 6000, "disk_full.journal": 64}
"""How large a file may become: less than a checkpoint; in the last case less than the journal is already."""

MORE_THAN_FITS: Final = 4 << 30
ROOM: Final = 256 << 20
"""Of address space, for the other threads of the process."""

_at_end: list[Callable[[], None]] = []


def give(orders: Path, name: str) -> Path:
    """The order called `name`, lying ready; its suffix is `.taken` once it has struck."""
    orders.mkdir(parents=True, exist_ok=True)
    (order := orders / f"{name}.order").touch()
    return order


def take(orders: Path | None) -> str:
    """What was ordered of this process, without its number; empty where nothing was."""
    for order in sorted(orders.glob("*.order")) if orders else ():
        with contextlib.suppress(FileNotFoundError):
            order.rename(order.with_suffix(".taken"))
            return order.name.split(" ")[0]
    return ""


def strike(order: str) -> None:
    """Carries out an order that strikes between two steps."""
    match order:
        case "hung":
            time.sleep(86_400)
        case "host_memory":
            _allocate_too_much()
        case "cuda_memory":
            import torch

            raise torch.OutOfMemoryError("CUDA out of memory, as ordered.")
        case "process_changed":
            _at_end.append(_change_process)


def strike_at_end() -> None:
    """Carries out what was ordered for the end of the replicate."""
    for strike_now in _at_end:
        strike_now()


def _change_process() -> None:
    """A replicate that this process ran next would draw other numbers, and of another type."""
    import torch

    rng.seed_everything = lambda seed: None
    torch.set_default_dtype(torch.float16)
    os.environ["CUDA_VISIBLE_DEVICES"] = "none"


@contextlib.contextmanager
def disk(order: str, place: str) -> Iterator[None]:
    """The block in which `order` may let the disk be full at `place`: no file may grow beyond a few bytes.

    Python ignores SIGXFSZ, so that a write fails as on a full disk.
    """
    if order != f"disk_full.{place}" and (order, place) != ("disk_full.journal", "copied"):
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES[order], most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def _allocate_too_much() -> None:
    """Raises a true MemoryError: the process may take little more address space than it has."""
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    num_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (num_pages * resource.getpagesize() + ROOM, most))
    try:
        bytearray(MORE_THAN_FITS)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))
