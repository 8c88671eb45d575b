"""Step time of routed execution, forward and backward, beside masked execution and the cost-weighted mean.

    python -m benchmarks.routing [--frames 2048] [--repeats 30]

Masked execution, the way of the released code, runs both networks on every frame and mixes. The weighted mean,
(1 - rate) * small-only + rate * big-only, is what routing would take if gathering and scattering frames were free. All
are timed in turns in one process with one torch thread; each row prints medians and their ratios, and the ratio of
multiply-accumulates of routed over masked execution, which is the floor that no implementation passes.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.alike import alike
from trainables.asr.config import Recurrent
from trainables.asr.network import make_parts
from trainables.conditional.route import mix, route

WIDTH, BIG_HIDDEN = 512, 2048
RATES = (0.1, 0.25, 0.5, 0.75, 0.9)
NUM_WARM_UP = 3


def step_ms(execute: Callable[[Tensor], Tensor], frames: Tensor) -> float:
    """One forward and backward pass."""
    started = time.perf_counter()
    execute(frames).sum().backward()
    if frames.is_cuda:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started)


def medians_ms(ways: dict[str, Callable[[Tensor], Tensor]], frames: Tensor, repeats: int) -> dict[str, float]:
    """The median of each way, all timed in turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + NUM_WARM_UP):
        for name, execute in ways.items():
            duration = step_ms(execute, frames)
            if repeat >= NUM_WARM_UP:
                times[name].append(duration)
    return {name: statistics.median(found) for name, found in times.items()}


def ways_of(choose_big: Tensor, small: nn.Module, big: nn.Module) -> dict[str, Callable[[Tensor], Tensor]]:
    """Everything that is compared."""
    return {
        "routed": lambda frames: route(frames, choose_big, small, big),
        "masked": lambda frames: mix(frames, choose_big.to(frames.dtype), small, big),
        "small": small,
        "big": big,
    }


def floor(rate: float) -> float:
    """Multiply-accumulates of routed over those of masked execution."""
    small, big = WIDTH * WIDTH, 2 * WIDTH * BIG_HIDDEN
    return ((1 - rate) * small + rate * big) / (small + big)


@alike()
def main() -> None:
    """Prints one row for each rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = make_parts(Recurrent(), WIDTH, 40)
    small, big = parts.small.to(device), parts.big.to(device)
    frames = torch.randn(arguments.frames, WIDTH, device=device, requires_grad=True)
    print(f"{device}, torch {torch.__version__}, {arguments.frames} frames, {arguments.repeats} repeats, ms")
    print(f"{'rate':>5} {'routed':>8} {'weighted':>9} {'ratio':>6} {'masked':>8} {'ratio':>6} {'floor':>6}")
    for rate in RATES:
        order = torch.randperm(arguments.frames, device=device)
        found = medians_ms(ways_of(order < rate * arguments.frames, small, big), frames, arguments.repeats)
        weighted = (1 - rate) * found["small"] + rate * found["big"]
        routed, masked = found["routed"], found["masked"]
        ratios = f"{weighted:9.2f} {routed / weighted:6.2f} {masked:8.2f} {routed / masked:6.2f}"
        print(f"{rate:5.2f} {routed:8.2f} {ratios} {floor(rate):6.2f}")


if __name__ == "__main__":
    main()
