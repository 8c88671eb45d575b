"""Step time of routed against masked execution, forward and backward, at several routing rates.

    python benchmarks/routing.py [--frames 2048] [--repeats 30]

Masked execution, the way of the released code, runs both networks on every frame and mixes. Both are timed in turns in
one process with one torch thread; each row prints the medians and their ratio, and the ratio of multiply-accumulates,
which is the floor that no implementation passes.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from trainables.asr.network import big_network, route, small_network

WIDTH, BIG_HIDDEN = 512, 2048
RATES = (0.1, 0.25, 0.5, 0.75, 0.9)


def masked(frames: Tensor, choose_big: Tensor, small: nn.Module, big: nn.Module) -> Tensor:
    """Both networks on all frames, mixed."""
    mask = choose_big[:, None].to(frames.dtype)
    return mask * big(frames) + (1 - mask) * small(frames)


def step_ms(execute: Callable[..., Tensor], frames: Tensor, choose_big: Tensor, *networks: nn.Module) -> float:
    """One forward and backward pass."""
    started = time.perf_counter()
    execute(frames, choose_big, *networks).sum().backward()
    if frames.is_cuda:
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - started)


def floor(rate: float) -> float:
    """Multiply-accumulates of routed over those of masked execution."""
    small, big = WIDTH * WIDTH, 2 * WIDTH * BIG_HIDDEN
    return ((1 - rate) * small + rate * big) / (small + big)


def main() -> None:
    """Prints one row for each rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    networks = small_network(WIDTH).to(device), big_network(WIDTH, BIG_HIDDEN).to(device)
    frames = torch.randn(arguments.frames, WIDTH, device=device, requires_grad=True)
    print(f"{device}, torch {torch.__version__}, {arguments.frames} frames, {arguments.repeats} repeats")
    print(f"{'rate':>5} {'routed ms':>10} {'masked ms':>10} {'ratio':>6} {'floor':>6}")
    for rate in RATES:
        choose_big = torch.rand(arguments.frames, device=device) < rate
        times: dict[str, list[float]] = {"routed": [], "masked": []}
        for repeat in range(arguments.repeats + 3):
            pair = [
                (name, step_ms(f, frames, choose_big, *networks)) for name, f in (("routed", route), ("masked", masked))
            ]
            for name, value in pair if repeat >= 3 else ():
                times[name].append(value)
        routed, both = (statistics.median(times[name]) for name in ("routed", "masked"))
        print(f"{rate:5.2f} {routed:10.2f} {both:10.2f} {routed / both:6.2f} {floor(rate):6.2f}")


if __name__ == "__main__":
    main()
