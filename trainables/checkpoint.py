"""Checkpoint files: one torch archive each, loaded without unpickling code.

What is written here is a file for a moment. `ReplicateFolder.keep` in `orchestrator.journal` keeps it, whole or not
at all.
"""

import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from trainables.trial import Trial


def save(path: Path, state: dict[str, Any]) -> Path:
    """Write `state` (tensors, numbers, strings, and lists and dicts of them) to `path`; returns `path`.

    Raises:
        OSError: if it cannot be written; given a path, torch would say a RuntimeError of a full disk.
    """
    with path.open("wb") as file:
        try:
            torch.save(state, file)
        except BaseException as error:
            # Its archive still writes to the file when it goes; where that is closed by then, C++ aborts the process.
            traceback.clear_frames(error.__traceback__)
            raise
    return path


def report(trial: Trial, metrics: Mapping[str, float], step: int, state: dict[str, Any]) -> None:
    """Reports `metrics` at `step` with a checkpoint of `state`, from which the next step can be repeated exactly."""
    with tempfile.TemporaryDirectory() as folder:
        trial.report(metrics, step=step, checkpoint=save(Path(folder) / "state.pt", state))


def load(path: Path) -> dict[str, Any]:
    """Read what `save` wrote, onto the CPU; refuses anything that is not plain data."""
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state
