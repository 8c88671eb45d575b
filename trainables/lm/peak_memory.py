"""How much memory the work has taken."""

import resource
import sys

import torch


def forget_peak() -> None:
    """Makes the peak on the GPU that of what follows."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_memory_mb() -> float:
    """The most that was allocated on the GPU since `forget_peak`, or, without one, held by this process ever."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e6
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held / 1e6 if sys.platform == "darwin" else held * 1024 / 1e6  # bytes there, kibibytes elsewhere
