"""The same work in one process and in two over gloo, and what is compared of them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import distributed, multiprocessing

from tests.trainables.folder_trial import TIMED
from trainables import checkpoint

Work = Callable[[int, int, Path], None]
"""Of the process of this rank among so many, in a folder that they share."""


def in_one_and_two(work: Work, place: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Does `work` alone and in two processes; returns the folder of each."""
    one, two = place.mktemp("one"), place.mktemp("two")
    multiprocessing.spawn(work, (2, two), nprocs=2)
    multiprocessing.spawn(work, (1, one), nprocs=1)
    return one, two


@contextmanager
def process_group(rank: int, num_processes: int, folder: Path) -> Iterator[None]:
    """With one torch thread, and with the other processes where there are some; then this one ends with the block.

    At once, since threads of gloo outlive the group: one that has a tensor to free while Python ends would abort it.
    """
    torch.set_num_threads(1)
    if num_processes > 1:
        store = distributed.FileStore(str(folder / "store"), num_processes)
        distributed.init_process_group("gloo", store=store, rank=rank, world_size=num_processes)
    yield
    if num_processes > 1:
        distributed.destroy_process_group()
        os._exit(0)


def assert_same_reports(folders: tuple[Path, Path], name: str) -> None:
    """Every metric of every step of the reports called `name`, but for what depends on the clock."""
    one, two = (checkpoint.load(folder / "reports.pt")[name] for folder in folders)
    assert one.keys() == two.keys()
    for step, metrics in one.items():
        assert metrics.keys() == two[step].keys()
        for metric, value in metrics.items():
            if not metric.endswith(TIMED):
                assert two[step][metric] == pytest.approx(value, rel=2e-3, abs=1e-6), (name, step, metric)
