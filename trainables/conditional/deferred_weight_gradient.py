"""A linear map used many times in one forward pass, whose weight gradient is one matrix product behind them all.

Autograd alone makes a product and a sum of the weight's size for every use, which at small batches costs more than
everything else. Each backward pass must reach the weight: one that asks for the gradients of inputs alone
(`torch.autograd.grad(outputs, inputs)`) would have its uses counted again in the next one.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Uses = list[tuple[Tensor, Tensor]]
"""The gradient of the output and the input of each use whose backward pass is done."""


def defer_weight_gradient(linear: nn.Linear) -> Callable[[Tensor], Tensor]:
    """The map (R I) -> (R O) of `linear`, for one forward pass, in its own precision: outside of `torch.autocast`."""
    uses: Uses = []
    weight, bias = _Shared.apply(linear.weight, linear.bias, uses)

    def use(inputs: Tensor) -> Tensor:
        outputs: Tensor = _Use.apply(inputs, weight, bias, uses)
        return outputs

    return use


class _Shared(torch.autograd.Function):
    """Weight and bias as they are; backward, which autograd calls behind that of every use, their whole gradients."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, uses: Uses) -> tuple[Tensor, Tensor]:
        ctx.uses = uses
        ctx.set_materialize_grads(False)
        return weight.view_as(weight), bias.view_as(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple[Tensor, Tensor, None]:
        outputs, inputs = (torch.cat(parts) for parts in zip(*ctx.uses, strict=True))
        ctx.uses.clear()
        return outputs.t() @ inputs, outputs.sum(0), None


class _Use(torch.autograd.Function):
    """One use: the gradient of its input, and a note for the weight's."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, uses: Uses) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.uses = uses
        return torch.addmm(bias, inputs, weight.t())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        inputs, weight = ctx.saved_tensors
        if weight.requires_grad:
            ctx.uses.append((gradient, inputs))
        return gradient @ weight, None, None, None
