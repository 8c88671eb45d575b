"""What a stretch of training adds up to."""

import math

import torch
from jaxtyping import Bool
from torch import Tensor

from trainables import distributed
from trainables.lm.network import Run
from trainables.lm.recoding import Trace


class Meters:
    """Sums over the windows of a stretch, on the device until they are asked for."""

    def __init__(self) -> None:
        self.num_windows = self.num_tokens = 0
        self._norm_sum = 0.0
        self._sums: dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, run: Run, is_target: Bool[Tensor, "T B"], num_tokens: int, gradient_norm: float) -> None:
        """A window: what this process made of its streams, how many tokens all have, and their gradient's norm."""
        self.num_windows += 1
        self.num_tokens += num_tokens
        self._norm_sum += gradient_norm
        sums = {"loss": run.loss.detach().double().sum(), "nats": run.nats.double().sum()}
        if run.trace:
            sums |= _of_trace(run.trace, is_target)
        for name, value in sums.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value

    def metrics(self) -> dict[str, float]:
        """Means over all processes; those of the recoder only where it was used."""
        names = list(self._sums)
        shapes = [self._sums[name].shape for name in names]
        values = torch.cat([self._sums[name].flatten() for name in names]).tolist()
        totals = torch.tensor(distributed.sum_over_processes(*values), dtype=torch.float64)
        parts = totals.split([math.prod(shape) for shape in shapes])
        sums = dict(zip(names, parts, strict=True))
        metrics = {
            "train_loss_nats": float(sums["loss"]) / self.num_tokens,
            "train_perplexity": math.exp(min(float(sums["nats"]) / self.num_tokens, 700.0)),
            "gradient_norm": self._norm_sum / self.num_windows,
        }
        if "delta" in sums:
            metrics |= {
                "train_delta": float(sums["delta"] / sums["read"]),
                "train_share_recoded": float(sums["share"]) / self.num_tokens,
                "train_not_finite": float(sums["not_finite"]),
            }
            metrics |= _of_layers("step_size", sums["alphas"] / sums["recoded"])
            metrics |= _of_layers("recoding_norm", sums["norms"] / sums["finite"])
        return {name: value for name, value in metrics.items() if not math.isnan(value)}


def _of_trace(trace: Trace, is_target: Bool[Tensor, "T B"]) -> dict[str, Tensor]:
    norms = torch.stack(trace.norms).double()
    num_copies = norms.shape[2] // max(1, is_target.shape[1])
    gates, before = torch.stack(trace.gates).double(), torch.stack(trace.before).double()
    is_read = is_target & ~before.isnan()
    is_row = gates[:, None] > 0
    is_finite = norms.isfinite() & is_row
    alphas = torch.stack(trace.alphas).double() * gates[:, None]
    return {
        "delta": before.where(is_read, 0.0).sum(),
        "read": is_read.sum().double(),
        "share": gates.sum() / num_copies,
        "not_finite": (~norms.isfinite() & is_row).sum().double(),
        "alphas": alphas.sum((0, 2)),
        "recoded": gates.sum(),
        "norms": norms.where(is_finite, 0.0).sum((0, 2)),
        "finite": is_finite.sum((0, 2)).double(),
    }


def _of_layers(name: str, values: Tensor) -> dict[str, float]:
    """Values in the order h and c of layer 1, h and c of layer 2, and so on, by name."""
    return {f"{name}_{'hc'[i % 2]}_{i // 2 + 1}": float(value) for i, value in enumerate(values)}
