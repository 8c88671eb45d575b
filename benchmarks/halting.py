"""Step time of Adaptive Computation Time with real halting, beside a batch in which no row ever leaves.

    python benchmarks/halting.py [--repeats 15] [--num-sizes 6]

One input step, forward and backward, of a network whose halting is set by its weights: short rows take 2 updates, 5 %
of the rows, at least one, take 10. "none": all rows are short. "real": long rows go on alone. "all rows": every row is
updated until the last one halts, with masks. Ratios are over "none"; "arithmetic" is what row updates alone would make
of them. All are timed in turns in one process with one torch thread; medians.

The first size is large enough for arithmetic to decide. The others are those of Graves' tasks, where with few rows or
units the launch of small operations, as many for one row as for all, and the reading of the weights take the time.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.act.cells import CELLS, State, Update
from trainables.act.halting import Ponder, ponder

SHORT, LONG, SHARE_LONG = 2, 10, 0.05
EPSILON, MAX_UPDATES = 0.01, 20
NUM_WARM_UP = 2
Halting = Callable[[Update, Tensor, Tensor, State, nn.Module, float, int], Ponder]


@dataclass(frozen=True)
class Size:
    """A cell and its batch."""

    name: str
    cell: str
    hidden_size: int
    batch_size: int


SIZES = (
    Size("LSTM 512 x 512", "lstm", 512, 512),
    Size("parity", "rnn", 128, 128),
    Size("logic", "lstm", 128, 16),
    Size("addition", "lstm", 512, 32),
    Size("sort", "lstm", 512, 16),
    Size("text", "lstm", 1500, 16),
)


def run_all_rows(
    update: Update,
    projected: Tensor,
    first_flag: Tensor,
    state: State,
    halting: nn.Module,
    epsilon: float,
    max_updates: int,
) -> Ponder:
    """As `ponder`, with every row updated until the last one halts, and masks for what counts."""
    total = projected.new_zeros(len(projected))
    running = torch.ones_like(total, dtype=torch.bool)
    remainder, num_updates = torch.ones_like(total), torch.zeros_like(total, dtype=torch.long)
    mixture = tuple(torch.zeros_like(part) for part in state)
    for n in range(1, max_updates + 1):
        state = update(projected + first_flag * (n == 1), state)
        h = torch.sigmoid(halting(state[0])).squeeze(1)
        halts = running & ((total + h >= 1 - epsilon) if n < max_updates else running)
        p = torch.where(halts, remainder, h) * running
        mixture = tuple(m + p[:, None] * part for m, part in zip(mixture, state, strict=True))
        num_updates = num_updates + running
        running = running & ~halts
        remainder = torch.where(running, remainder - h, remainder)
        total = total + h.detach()
        if not running.any():
            break
    return Ponder(mixture, num_updates, remainder)


class Rigged:
    """A cell whose unit 0 shows +1 or -1 as its projected input says, and a halting unit that reads only that."""

    def __init__(self, size: Size, device: str) -> None:
        self.size, self.device = size, device
        self.cell = CELLS[size.cell](size.hidden_size).to(device)
        self.halting = nn.Linear(size.hidden_size, 1).to(device)
        units = torch.arange(0, self.cell.num_gates * size.hidden_size, size.hidden_size)
        shown = torch.tanh(torch.tensor(1.0)).item() if size.cell == "lstm" else 1.0
        logits = [torch.logit(torch.tensor(1 / n - 1e-4)).item() for n in (SHORT, LONG)]
        with torch.no_grad():
            self.cell.recurrent.weight[units] = 0
            self.cell.recurrent.bias[units] = 0
            self.halting.weight.zero_()
            self.halting.weight[0, 0] = (logits[0] - logits[1]) / (2 * shown)
            self.halting.bias.fill_(sum(logits) / 2)
        self.units = units

    def inputs(self, num_long: int) -> Tensor:
        """Projected inputs of a batch with so many long rows, at random places."""
        sign = torch.ones(self.size.batch_size)
        sign[torch.randperm(self.size.batch_size)[:num_long]] = -1
        projected = torch.randn(self.size.batch_size, self.cell.num_gates * self.size.hidden_size)
        projected[:, self.units] = 40.0  # gates of unit 0 are open ...
        if self.size.cell == "lstm":
            projected[:, self.units[1]] = -40.0  # ... but the one that keeps what was
        content = self.units[2 if self.size.cell == "lstm" else 0]
        projected[:, content] = 40.0 * sign
        return projected.to(self.device).requires_grad_()

    def step_ms(self, way: Halting, projected: Tensor) -> tuple[float, Tensor]:
        """Time of one forward and backward pass, and the numbers of updates."""
        zeros = projected.new_zeros(self.size.batch_size, self.size.hidden_size)
        flag = torch.zeros_like(projected[0])
        for parameter in (projected, *self.cell.parameters(), *self.halting.parameters()):
            parameter.grad = None
        started = time.perf_counter()
        done = way(
            self.cell.begin(), projected, flag, (zeros,) * self.cell.num_states, self.halting, EPSILON, MAX_UPDATES
        )
        (done.state[0].sum() + done.remainder.sum()).backward()
        if projected.is_cuda:
            torch.cuda.synchronize()
        return 1000 * (time.perf_counter() - started), done.num_updates


def row(size: Size, device: str, repeats: int) -> str:
    """One line of the table."""
    rigged, num_long = Rigged(size, device), max(1, round(SHARE_LONG * size.batch_size))
    short, mixed = rigged.inputs(0), rigged.inputs(num_long)
    ways: dict[str, tuple[Halting, Tensor]] = {
        "none": (ponder, short),
        "real": (ponder, mixed),
        "all": (run_all_rows, mixed),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    total: dict[str, int] = {}
    for repeat in range(repeats + NUM_WARM_UP):
        for name, (way, projected) in ways.items():
            duration, num_updates = rigged.step_ms(way, projected)
            total[name] = int(num_updates.sum())
            if repeat >= NUM_WARM_UP:
                times[name].append(duration)
    assert total["none"] == SHORT * size.batch_size
    assert total["real"] == total["all"] == total["none"] + (LONG - SHORT) * num_long
    none, real, every = (statistics.median(times[name]) for name in ways)
    ratios = f"{real:8.2f} {real / none:6.2f} {every:9.2f} {every / none:6.2f} {LONG / SHORT:11.2f}"
    return f"{size.name:15} {none:8.2f} {total['real'] / total['none']:11.2f} {ratios}"


def main() -> None:
    """Prints one row for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--num-sizes", type=int, default=len(SIZES), help="only the first so many rows")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"{device}, torch {torch.__version__}, {arguments.repeats} repeats, ms of one step of a sequence")
    columns = f"{'real':>8} {'ratio':>6} {'all rows':>9} {'ratio':>6} {'arithmetic':>11}"
    print(f"{'size':15} {'none':>8} {'arithmetic':>11} {columns}")
    for size in SIZES[: arguments.num_sizes]:
        print(row(size, device, arguments.repeats), flush=True)


if __name__ == "__main__":
    main()
