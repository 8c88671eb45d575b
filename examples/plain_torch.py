"""How wide must a small network be to tell two spirals apart? Plain torch: `ponderay run plain_torch.py:widths`."""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ponderay import Objective, Sweep, Trial, grid

NUM_STEPS = 1000


@dataclass(frozen=True)
class Setting:
    width: int = 8
    seed: int = 1


def spirals(num_points: int, seed: int) -> tuple[Tensor, Tensor]:
    """Points in the plane, and on which of two spirals each lies."""
    random = torch.Generator().manual_seed(seed)
    turn, label = torch.rand(num_points, generator=random), torch.randint(2, (num_points,), generator=random)
    angle = 2 * math.pi * turn + math.pi * label
    points = torch.stack([angle.cos(), angle.sin()], 1) * turn[:, None]
    return points + 0.05 * torch.randn(num_points, 2, generator=random), label


def train(config: Setting, trial: Trial) -> None:
    torch.manual_seed(config.seed)
    width, tanh = config.width, nn.Tanh()
    model = nn.Sequential(nn.Linear(2, width), tanh, nn.Linear(width, width), tanh, nn.Linear(width, 2))
    optimiser, first = torch.optim.Adam(model.parameters(), lr=0.01), 1
    (x, y), (test_x, test_y) = spirals(1000, seed=0), spirals(1000, seed=-1)
    if path := trial.restore():  # everything that decides the next step: without the generator, other batches follow
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        first = state["step"] + 1
    for step in range(first, NUM_STEPS + 1):
        batch = torch.randint(len(x), (64,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimiser.step()
        if step % 100 == 0:
            metrics = {"error": (model(test_x).argmax(1) != test_y).float().mean().item(), "macs": width * (width + 4)}
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
            with tempfile.TemporaryDirectory() as folder:
                torch.save(state | {"random": torch.get_rng_state()}, file := Path(folder) / "state.pt")
                trial.report(metrics, step=step, checkpoint=file)  # keeps a copy


widths = Sweep(
    name="spirals", description="Two spirals, by width.", trainable=__name__, base=Setting(), reference="width=8",
    conditions=grid({"width": [2, 8, 32]}), objectives=(Objective("error"), Objective("macs")),
)  # fmt: skip
