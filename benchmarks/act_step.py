"""Time of Adaptive Computation Time's updates, beside their bare matrix products and other ways to halt.

    python -m benchmarks.act_step [--repeats 15] [--num-sizes 6] [--json]

First table: one input step, forward and backward, of a network whose halting is set by its weights: short rows take 2
updates, 5 % of the rows, at least one, take 10. "none": all rows are short. "real": long rows go on alone. "all rows":
every row is updated until the last one halts, with masks and autograd. Ratios are over "none"; "arithmetic" is what row
updates alone would make of them, "products" what the bare matrix products of "none" and "real" make of them.

Second table: whole training steps a second (forward, backward, clipping, Adam) at parity, RNN 128, batch 128, of the
untrained network and of one whose rows differ in their updates. "peer" is the best way found among public PyTorch
implementations, that of maxwells-daemons/pytorch-adaptive-computation-time: `nn.RNNCell` on the whole batch with masks,
by autograd, until every row has halted; here with Graves' equations and the same weights, so that it computes the same.

"products": the matrix products that a step makes, in their order and sizes, recorded from the step itself, into arrays
that are there already. All are timed in turns in one process with one torch thread, by the CPU's clock (on a GPU by the
wall's); medians.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.alike import alike
from trainables.act.config import ActConfig
from trainables.act.evaluation import cross_entropies
from trainables.act.network import Network
from trainables.act.tasks import data
from trainables.act.tasks.batch import Batch
from trainables.conditional.adaptive_computation_time import Limits, Ponder
from trainables.conditional.halted_rows import State
from trainables.conditional.recurrent_cells import CELLS, Update
from trainables.conditional.recurrent_ponder import ponder

SHORT, LONG, SHARE_LONG = 2, 10, 0.05
LIMITS = Limits(epsilon=0.01, max_updates=20)
NUM_WARM_UP = 3
TAU = 1e-3
SPREAD = (6.0, -1.5)
"""What the halting unit's weights are multiplied with and its bias is, for rows that differ."""
Work = Callable[[], Any]


@dataclass(frozen=True)
class Size:
    """A cell and its batch."""

    name: str
    cell: str
    hidden_size: int
    batch_size: int


SIZES = (
    Size("parity", "rnn", 128, 128),
    Size("logic", "lstm", 128, 16),
    Size("addition", "lstm", 512, 32),
    Size("sort", "lstm", 512, 16),
    Size("text", "lstm", 1500, 16),
    Size("LSTM 512 x 512", "lstm", 512, 512),
)


def run_all_rows(
    update: Update, projected: Tensor, first_flag: Tensor, state: State, halting: nn.Module, limits: Limits
) -> Ponder:
    """The work of `ponder` at one step, with every row updated until the last one halts, and masks for what counts."""
    total = projected.new_zeros(len(projected))
    running = torch.ones_like(total, dtype=torch.bool)
    remainder, num_updates = torch.ones_like(total), torch.zeros_like(total, dtype=torch.long)
    mixture = tuple(torch.zeros_like(part) for part in state)
    for n in range(1, limits.max_updates + 1):
        state = update(projected + first_flag * (n == 1), state)
        h = torch.sigmoid(halting(state[0])).squeeze(1)
        halts = running & ((total + h >= 1 - limits.epsilon) if n < limits.max_updates else running)
        p = torch.where(halts, remainder, h) * running
        mixture = tuple(m + p[:, None] * part for m, part in zip(mixture, state, strict=True))
        num_updates = num_updates + running
        running = running & ~halts
        remainder = torch.where(running, remainder - h, remainder)
        total = total + h.detach()
        if not running.any():
            break
    return Ponder(mixture, num_updates, remainder)


class Products(TorchDispatchMode):
    """Records which matrices are multiplied while it is on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Tensor, Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.removesuffix("_") in ("aten::mm", "aten::addmm"):
            one, other = (factor.detach() for factor in args[-2:])  # views: nothing is copied
            self.found.append((one, other, one.new_empty(len(one), other.shape[1])))
        return func(*args, **(kwargs or {}))

    def run(self) -> None:
        """The same products again."""
        for one, other, product in self.found:
            torch.mm(one, other, out=product)


def products_of(work: Work) -> Products:
    """The products of one call."""
    products = Products()
    with products:
        work()
    return products


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
        zeros = torch.zeros(size.batch_size, size.hidden_size, device=device)
        self.state = (zeros,) * self.cell.num_states

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

    def step(self, projected: Tensor, is_real: bool) -> Callable[[], Ponder]:
        """One forward and backward pass."""
        flag = torch.zeros_like(projected[0])

        def work() -> Ponder:
            for parameter in (projected, *self.cell.parameters(), *self.halting.parameters()):
                parameter.grad = None
            if is_real:
                done = ponder(self.cell, projected, [len(projected)], flag, self.state, self.halting, LIMITS)
            else:
                done = run_all_rows(self.cell.begin(), projected, flag, self.state, self.halting, LIMITS)
            (done.states[0].sum() + done.remainder.sum()).backward()
            return done

        return work


class Masked(nn.Module):
    """The peer: as `network`, whose weights it takes."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.cell = nn.RNNCell(network.sizes.num_inputs + 1, network.config.hidden_size)
        self.halting, self.readout = (nn.Linear(network.config.hidden_size, 1) for _ in range(2))
        recurrent = network.cell.recurrent
        with torch.no_grad():
            self.cell.weight_ih.copy_(torch.cat([network.input_weight, network.first_flag[:, None]], 1))
            self.cell.bias_ih.copy_(network.input_bias)
            self.cell.weight_hh.copy_(recurrent.weight)
            self.cell.bias_hh.copy_(recurrent.bias)
        self.halting.load_state_dict(network.halting.state_dict())
        self.readout.load_state_dict(network.readout.state_dict())

    def forward(self, inputs: Tensor, limits: Limits) -> tuple[Tensor, Tensor]:
        """Log p of both answers, and N + R."""
        flags = torch.cat([inputs.new_ones(len(inputs), 1), inputs.new_zeros(len(inputs), 1)], 1)
        first, later = (torch.cat([inputs, flags[:, n : n + 1]], 1) for n in range(2))
        ponder = run_all_rows(
            lambda flagged, state: (self.cell(first if flagged.all() else later, state[0]),),
            inputs.new_zeros(len(inputs)),
            inputs.new_ones(1),
            (inputs.new_zeros(len(inputs), self.cell.hidden_size),),
            self.halting,
            limits,
        )
        log_probs = F.pad(self.readout(ponder.states[0])[:, :, None], (1, 0)).log_softmax(-1)
        return log_probs, ponder.num_updates + ponder.remainder


class Training:
    """Training steps on one batch of parity, again and again, of ours and of the peer."""

    def __init__(self, device: str, spread: tuple[float, float] | None) -> None:
        config = ActConfig()
        self.limits = Limits(0.01, 100)
        self.batch: Batch = next(iter(data.training_batches(config, range(1, 2)))).to(torch.device(device))
        self.network = Network(config).to(device)
        if spread:
            nn.init.constant_(self.network.halting.bias, spread[1])
            self.network.halting.weight.data.mul_(spread[0])
        self.masked = Masked(self.network).to(device)

    def loss(self, is_peer: bool) -> Tensor:
        """The mean over rows of what training minimises."""
        targets = self.batch.targets[:, 0]
        if is_peer:
            log_probs, cost = self.masked(self.batch.inputs[:, 0], self.limits)
        else:
            run = self.network(self.batch.inputs, self.batch.num_steps, self.batch.has_target)
            log_probs, cost = run.log_probs, (run.num_updates + run.remainder).sum(1)
        losses: Tensor = cross_entropies(log_probs, targets) + TAU * cost
        return losses.mean()

    def step(self, is_peer: bool) -> Work:
        """A training step; its size is so small that halting stays as it is."""
        model = self.masked if is_peer else self.network
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-12, fused=True)

        def work() -> None:
            optimizer.zero_grad()
            self.loss(is_peer).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return work

    def updates(self) -> tuple[float, int]:
        """Mean and largest number of updates."""
        found = self.network(self.batch.inputs, self.batch.num_steps, self.batch.has_target).num_updates
        return found.double().mean().item(), int(found.max())


def medians_ms(works: dict[str, Work], repeats: int, device: str) -> dict[str, float]:
    """Medians of the CPU's clock, each in its turn; of the wall's on a GPU."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    times: dict[str, list[float]] = {name: [] for name in works}
    for repeat in range(repeats + NUM_WARM_UP):
        for name, work in works.items():
            started = clock()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat >= NUM_WARM_UP:
                times[name].append(1000 * (clock() - started))
    return {name: statistics.median(found) for name, found in times.items()}


def halting_row(size: Size, device: str, repeats: int) -> dict[str, str | float]:
    """One line of the first table."""
    rigged, num_long = Rigged(size, device), max(1, round(SHARE_LONG * size.batch_size))
    short, mixed = rigged.inputs(0), rigged.inputs(num_long)
    steps = {"none": rigged.step(short, True), "real": rigged.step(mixed, True), "all": rigged.step(mixed, False)}
    total = {name: int(step().num_updates.sum()) for name, step in steps.items()}
    assert total["none"] == SHORT * size.batch_size
    assert total["real"] == total["all"] == total["none"] + (LONG - SHORT) * num_long
    floors = {f"{name} products": products_of(steps[name]).run for name in ("none", "real")}
    ms = medians_ms(steps | floors, repeats, device)
    return {
        "size": size.name,
        "none_ms": ms["none"],
        "real_ms": ms["real"],
        "all_rows_ms": ms["all"],
        "ratio": ms["real"] / ms["none"],
        "ratio_all_rows": ms["all"] / ms["none"],
        "ratio_arithmetic": total["real"] / total["none"],
        "ratio_products": ms["real products"] / ms["none products"],
        "none_over_products": ms["none"] / ms["none products"],
        "real_over_products": ms["real"] / ms["real products"],
    }


def training_row(name: str, spread: tuple[float, float] | None, device: str, repeats: int) -> dict[str, str | float]:
    """One line of the second table."""
    training = Training(device, spread)
    torch.testing.assert_close(training.loss(True), training.loss(False), rtol=1e-5, atol=0)
    ours, peer = training.step(False), training.step(True)
    ms = medians_ms({"ours": ours, "products": products_of(ours).run, "peer": peer}, repeats, device)
    mean, largest = training.updates()
    return {
        "network": name,
        "mean_updates": mean,
        "max_updates": largest,
        **{f"{way}_steps_per_s": 1000 / found for way, found in ms.items()},
        "over_products": ms["ours"] / ms["products"],
        "peer_over_ours": ms["peer"] / ms["ours"],
    }


def print_table(title: str, rows: list[dict[str, str | float]]) -> None:
    """A line of names and one for each row."""
    print(title)
    names = list(rows[0])
    print(f"{names[0]:15} " + " ".join(f"{name:>20}" for name in names[1:]))
    for row in rows:
        print(f"{row[names[0]]:15} " + " ".join(f"{row[name]:20.2f}" for name in names[1:]))


@alike()
def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--num-sizes", type=int, default=len(SIZES), help="only the first so many rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    device, repeats = "cuda" if torch.cuda.is_available() else "cpu", arguments.repeats
    halting = [halting_row(size, device, repeats) for size in SIZES[: arguments.num_sizes]]
    training = [
        training_row(name, spread, device, repeats) for name, spread in (("untrained", None), ("spread", SPREAD))
    ]
    if arguments.json:
        print(json.dumps({"device": device, "torch": torch.__version__, "halting": halting, "training": training}))
        return
    print_table(f"{device}, torch {torch.__version__}, {repeats} repeats, one step of a sequence", halting)
    print_table("training steps at parity, RNN 128, batch 128", training)


if __name__ == "__main__":
    main()
