"""A trial for tests of training runs, and what is compared of them."""

import shutil
from pathlib import Path

import torch

from trainables import checkpoint

TIMED = ("_per_s", "_ms", "real_time_factor")


class InterruptedTrialError(Exception):
    pass


class FolderTrial:
    """A trial that keeps everything, and may be cut off after a step."""

    def __init__(self, folder: Path, product: Path | None = None, cut_after: int | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.product, self.cut_after = folder, product, cut_after
        self.reports: dict[int, dict[str, float]] = {}

    def report(self, metrics, *, step, checkpoint=None, artifacts=()):
        self.reports[step] = dict(metrics)
        if checkpoint:
            shutil.copy(checkpoint, self.folder / f"{step}.pt")
        for artifact in artifacts:
            shutil.copy(artifact, self.folder)
        if step == self.cut_after:
            raise InterruptedTrialError

    def restore(self):
        return max(self.folder.glob("*.pt"), key=lambda path: int(path.stem), default=None)

    def prerequisite(self, name):
        assert self.product, name
        return self.product


def untimed(reports):
    """Without what depends on the clock."""
    return {step: {k: v for k, v in row.items() if not k.endswith(TIMED)} for step, row in reports.items()}


def assert_equal_states(a: Path, b: Path) -> None:
    first, second = checkpoint.load(a), checkpoint.load(b)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
