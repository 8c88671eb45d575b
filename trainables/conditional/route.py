"""Real conditional execution: each network runs on the rows chosen for it and on no others.

>>> import torch
>>> from torch import nn
>>> from trainables.conditional.route import mix, route
>>> small, big = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
>>> rows = torch.randn(6, 4)  # of tokens: tokens.flatten(0, 1), from (B, T, 4)
>>> choose_big = torch.tensor([True, False, False, True, False, False])
>>> routed = route(rows, choose_big, small, big)  # big runs on 2 rows, small on 4
>>> masked = mix(rows, choose_big.float(), small, big)  # both run on 6: to train a gate
>>> torch.allclose(routed, masked, atol=1e-6)
True
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.conditional.finite import check_finite

Network = Callable[[Any], Tensor]
"""A function from rows (M ...) to outputs (M ...), for any M, 0 included."""


@runtime_checkable
class Rows(Protocol):
    """What a network reads, where that is not one tensor: it gives those of its rows that are at `places`."""

    def __getitem__(self, places: Any, /) -> Any:
        """A part, in the order of `places`: a tensor of row numbers, or a slice."""
        ...


def route(
    rows: Tensor | Rows, choose_big: Bool[Tensor, " N"], small: Network | None, big: Network | None
) -> Float[Tensor, "N ..."]:
    """Each row through the network chosen for it, and through that one only: gather, compute, scatter.

    y_n = big(x_n) where chosen, else small(x_n), as Lugosch et al. (2020, arXiv:2006.01659, section 3.3) route frames.
    Outputs and the gradients of rows and weights are those of `mix` with 1 where `choose_big` holds; the choice itself
    has no gradient. Each network is called once, on its rows in their order; one that gets no row is called on none,
    so that its gradients are zeros and not None.

    Args:
        rows: (N ...), a tensor or anything that can be indexed by row numbers.
        choose_big: which rows take the big network.
        small, big: None where the network does not exist; then all rows take the other one.

    Raises:
        ValueError: if `choose_big` is not one truth value for each row, or both networks are None.
    """
    if small is None or big is None:
        only = big if small is None else small
        if only is None:
            raise ValueError("`small` or `big` must be a network, but both are None.")
        return only(rows)
    num_rows = len(rows) if isinstance(rows, Tensor) else choose_big.numel()
    if choose_big.dtype != torch.bool or choose_big.shape != (num_rows,):
        raise ValueError(
            f"`choose_big` must have one truth value for each of {num_rows} rows, but is {choose_big.dtype} of shape "
            f"{tuple(choose_big.shape)}; compare it with a number, and flatten it as the rows are."
        )
    order = torch.cat([(~choose_big).nonzero()[:, 0], choose_big.nonzero()[:, 0]])
    back, num_small = torch.argsort(order), len(order) - int(choose_big.sum())
    ordered = _permute(rows, order, back) if isinstance(rows, Tensor) else rows[order]
    return _permute(torch.cat([small(ordered[:num_small]), big(ordered[num_small:])]), back, order)


class _Permutation(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, rows: Tensor, order: Tensor, back: Tensor) -> Tensor:
        context.save_for_backward(back)
        return rows.index_select(0, order)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0].index_select(0, context.saved_tensors[0]), None, None


def _permute(rows: Tensor, order: Int[Tensor, " N"], back: Int[Tensor, " N"]) -> Tensor:
    """`rows[order]`, whose gradient is put back in order by another gather; that of indexing adds row by row."""
    permuted: Tensor = _Permutation.apply(rows, order, back)
    return permuted


def mix(rows: Tensor | Rows, used_big: Float[Tensor, " N"], small: Network, big: Network) -> Float[Tensor, "N ..."]:
    """Both networks on all rows, mixed: y_n = u_n big(x_n) + (1 - u_n) small(x_n).

    With u = `straight_through.threshold(logits)` a gate is trained: dL/du_n = dL/dy_n . (big(x_n) - small(x_n)). For
    that both networks must run on every row, in training; in testing `route` gives the same outputs for less.

    Raises:
        ValueError: if `used_big` has not one number for each row, or one is NaN or infinite.
    """
    check_finite(used_big=used_big)
    from_big = big(rows)
    if used_big.numel() != len(from_big):
        raise ValueError(
            f"`used_big` must have one number for each of {len(from_big)} rows, but has shape {tuple(used_big.shape)}."
        )
    column = (-1, *[1] * (from_big.dim() - 1))
    # reshaped twice: recorded runs repeat to the last digit only where gradients are added in the order they were
    return used_big.reshape(column) * from_big + (1 - used_big.reshape(column)) * small(rows)
