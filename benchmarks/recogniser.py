"""Time of one training step of the recogniser, beside the same with `nn.GRU` on packed rows, and its bare products.

    python -m benchmarks.recogniser [--repeats 3] [--sizes laptop_4_600 paper_32_600] [--without-packed] [--json]

A step is forward, CTC loss, backward, clipping and Adam on random frames, routed by surprisal; what the frozen
autoregressive model says is kept, as in training. "products": the matrix products that the step makes, in their order
and sizes, recorded from the step itself, on arrays that are there already. "packed": the recurrent layers are `nn.GRU`
on packed rows, and the autoregressive model runs in each step. All are timed in turns in one process with one torch
thread, by the CPU's clock; the least of all repeats counts.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.alike import alike
from search_spaces.asr_sizes import MINI_LIBRISPEECH, base, laptop
from trainables.asr import network
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig
from trainables.asr.controller import Control
from trainables.asr.ctc_loss import ctc_losses
from trainables.asr.recogniser import Recogniser
from trainables.conditional.surprisal_controller import SurprisalFit

NUM_LABELS, FRAMES_A_LABEL = 40, 10


@dataclass(frozen=True)
class Size:
    """The networks of a config, and its batch."""

    name: str
    config: AsrConfig
    batch_size: int
    num_frames: int

    def __str__(self) -> str:
        return f"{self.name}_{self.batch_size}_{self.num_frames}"


LAPTOP = laptop(MINI_LIBRISPEECH.data, num_epochs=1, num_pretraining_epochs=1)
PAPER = base(MINI_LIBRISPEECH, "full")
SIZES = (
    Size("laptop", LAPTOP, 4, 600),
    Size("laptop", LAPTOP, 16, 600),
    Size("paper", PAPER, 8, 100),
    Size("paper", PAPER, 8, 1600),
    Size("paper", PAPER, 32, 600),
)


class Step:
    """One training step on the same batch again and again."""

    def __init__(self, size: Size) -> None:
        config = size.config
        self.frames = torch.randn(size.batch_size, size.num_frames, config.ar.features.num_mel_bins)
        self.num_frames = torch.full((size.batch_size,), size.num_frames)
        self.uniform = torch.rand(size.batch_size, size.num_frames)
        self.labels = tuple(
            tuple(torch.randint(NUM_LABELS, (size.num_frames // FRAMES_A_LABEL,)).tolist())
            for _ in range(size.batch_size)
        )
        self.recogniser = Recogniser(config, NUM_LABELS, AutoregressiveModel(config.ar)).train()
        self.optimizer = torch.optim.Adam([p for p in self.recogniser.parameters() if p.requires_grad])
        self.control = Control(config.controller, fit=SurprisalFit(w=0.0, b=0.0, mean_p=0.5, var_p=0.0))
        with torch.no_grad():
            features, predictions = self.recogniser.ar(self.frames)
        self.kept = torch.cat([features, surprisal(self.frames, predictions)[..., None]], dim=-1)

    def run(self, keeps: bool = True) -> None:
        """Forward, backward and update."""
        kept = self.kept if keeps else None
        output = self.recogniser(self.frames, self.num_frames, self.control, self.uniform, kept)
        loss = ctc_losses(output.log_probs, self.num_frames, self.labels).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.recogniser.parameters(), 1.0)
        self.optimizer.step()


class Products(TorchDispatchMode):
    """Records which matrices are multiplied while it is on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.removesuffix("_") in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"):
            one, other = (factor.detach() for factor in args[-2:])  # views: nothing is copied
            self.found.append((one, other))
        return func(*args, **(kwargs or {}))

    def run(self) -> None:
        """The same products again."""
        for one, other in self.found:
            torch.matmul(one, other)


def packed_gru(gru: nn.GRU, packed: PackedSequence) -> PackedSequence:
    """The peer that is timed beside `recur`."""
    outputs: PackedSequence = gru(packed)[0]
    return outputs


def cpu_s(way: Callable[[], None]) -> float:
    """CPU time of one call."""
    started = time.process_time()
    way()
    return time.process_time() - started


def measure(size: Size, repeats: int, with_packed: bool) -> dict[str, float]:
    """Frames a second of each way."""
    step, products = Step(size), Products()
    step.run()
    with products:
        step.run()
    times: dict[str, list[float]] = {"step": [], "products": [], "packed": []}
    for _ in range(repeats):
        times["step"].append(cpu_s(step.run))
        times["products"].append(cpu_s(products.run))
        if with_packed:
            with mock.patch.object(network, "recur", packed_gru):
                times["packed"].append(cpu_s(lambda: step.run(keeps=False)))
    num_frames = size.batch_size * size.num_frames
    return {name: num_frames / min(found) for name, found in times.items() if found}


def row(size: Size, rates: dict[str, float]) -> str:
    """One line of the table."""
    shown = " ".join(f"{rates[name]:9,.0f}" if name in rates else f"{'':9}" for name in ("step", "products", "packed"))
    gain = f"{rates['step'] / rates['packed']:7.1f}" if "packed" in rates else ""
    over_products = rates["products"] / rates["step"]
    return f"{size.name:8} {size.batch_size:5} {size.num_frames:6} {shown} {over_products:10.2f} {gain}"


@alike()
def main() -> None:
    """Prints one row for each size, or all of them as one JSON object."""
    named = {str(size): size for size in SIZES}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", nargs="+", choices=named, default=list(named))
    parser.add_argument("--without-packed", action="store_true", help="minutes of CPU fewer")
    parser.add_argument("--json", action="store_true", help="frames/s of each size and way, as one object")
    arguments = parser.parse_args()
    if not arguments.json:
        print(f"torch {torch.__version__}, {arguments.repeats} repeats, frames/s of a training step, ratios of times")
        print(
            f"{'size':8} {'batch':>5} {'frames':>6} {'step':>9} {'products':>9} {'packed':>9} {'/ products':>10} gain"
        )
    found = {}
    for name in arguments.sizes:
        found[name] = measure(named[name], arguments.repeats, not arguments.without_packed)
        if not arguments.json:
            print(row(named[name], found[name]), flush=True)
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "frames_per_s": found}, indent=2))


if __name__ == "__main__":
    main()
