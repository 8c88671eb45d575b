"""-log p of the next tokens from top states, in one array of logits where torch's own functions would fill four."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from trainables.lm.streams import NO_TARGET


def linear_cross_entropy(
    rows: Float[Tensor, "*N H"], weight: Float[Tensor, "V H"], bias: Float[Tensor, " V"], targets: Int[Tensor, "*N"]
) -> Float[Tensor, "*N"]:
    """-log softmax(W h + b) at each target, in nats; 0 where there is none.

    On a CPU, where new memory takes longer to come by than to fill, it can be differentiated once, and backward once.
    """
    flat, wanted = rows.flatten(0, -2), targets.flatten()
    if rows.is_cuda or torch.is_autocast_enabled(rows.device.type):
        losses = F.cross_entropy(F.linear(flat, weight, bias), wanted, ignore_index=NO_TARGET, reduction="none")
    else:
        losses = _InOneArray.apply(flat, weight, bias, wanted)
    return losses.view_as(targets)


class _InOneArray(torch.autograd.Function):
    """Logits become log p, and in the backward pass their own gradient: p minus one at the target."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        log_probs = torch.addmm(bias, rows, weight.t())
        torch.log_softmax(log_probs, -1, out=log_probs)
        is_wanted = targets != NO_TARGET
        at = torch.where(is_wanted, targets, 0)[:, None]
        ctx.save_for_backward(rows, weight, log_probs, at, is_wanted)
        return torch.where(is_wanted, -log_probs.gather(1, at)[:, 0], 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        rows, weight, log_probs, at, is_wanted = ctx.saved_tensors
        gradient = torch.where(is_wanted, gradient, 0.0)[:, None]
        of_logits = log_probs.exp_().mul_(gradient).scatter_add_(1, at, -gradient)
        of_rows, of_weight, of_bias, _ = ctx.needs_input_grad
        return (
            of_logits @ weight if of_rows else None,
            of_logits.t() @ rows if of_weight else None,
            of_logits.sum(0) if of_bias else None,
            None,
        )
