"""A counter of the multiply-accumulates that really run, to hold an analytic cost against.

>>> import torch
>>> from torch import nn
>>> from trainables.conditional.macs import count_macs
>>> from trainables.conditional.route import route
>>> small, big = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
>>> choose_big = torch.tensor([True, False, False, True, False, False])
>>> with count_macs() as macs:
...     outputs = route(torch.randn(6, 4), choose_big, small, big)
>>> macs.total == 2 * (4 * 16 + 16 * 4) + 4 * (4 * 4)  # 2 rows took big, 4 took small
True
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.utils.flop_counter import FlopCounterMode

Shape = Sequence[int]
aten = torch.ops.aten


class MacCount:
    """What has run so far; readable while counting and after it."""

    def __init__(self, flops: FlopCounterMode) -> None:
        self._flops = flops

    @property
    def total(self) -> int:
        """Multiply-accumulates of all products: one for two of torch's floating-point operations."""
        return self._flops.get_total_flops() // 2


@contextmanager
def count_macs() -> Iterator[MacCount]:
    """Counts the products that run within: of matrices and vectors, convolutions, attention, fused recurrent layers.

    Forward and backward, on any device and in any mode of gradients. It is torch's `FlopCounterMode`, halved, which is
    blind in some places that are counted here, too: products in place (`baddbmm_`), those with vectors, fused recurrent
    layers (LSTMs on a CPU, all of cuDNN's), attention on a CPU, and the fast path of torch's transformer layers, which
    is off within. Biases and elementwise steps count nothing. Masked attention counts its full square, as the products
    run where no kernel leaves blocks out. Not seen: what `torch.compile` has compiled, kernels of one's own
    (`torch.utils.flop_counter.register_flop_formula` tells both counters of them), bilinear layers, sparse products,
    `torch.conv_tbc`, quantised layers, and what torch multiplies element by element: `torch.outer`,
    `torch.linalg.vecdot` of rows, `torch.cdist` where it has no product of matrices; and other threads than the one
    that opened it, but for its backward passes. A product of a nested tensor raises an error within.
    """
    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with FlopCounterMode(display=False, custom_mapping=_UNSEEN) as flops:
            yield MacCount(flops)
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)


# Of each operation that torch's counter does not know: floating-point operations, 2 a multiply-accumulate, from the
# shapes of its arguments.


def _product(left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """Multiply-accumulates of the product of (.. N K) and (.. K M) or (K), or of two vectors."""
    return 2 * math.prod(left) * (right[-1] if len(right) > 1 else 1)


def _added_product(_: Shape, left: Shape, right: Shape, *__: Any, **___: Any) -> int:
    """Multiply-accumulates of a sum with a product."""
    return _product(left, right)


def _added_outer_product(_: Shape, left: Shape, right: Shape, *__: Any, **___: Any) -> int:
    """Multiply-accumulates of a sum with the product of (N) and (M)."""
    return 2 * math.prod(left) * math.prod(right)


def _distances(left: Shape, right: Shape, *_: Any, **__: Any) -> int:
    """Distances of (.. N K) and (.. M K): one product with two columns more, of squared lengths and of ones."""
    return 2 * math.prod(left[:-1]) * right[-2] * (left[-1] + 2)


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Scores and sums, of (B H Q D), (B H K D) and (B H K V)."""
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(_: Shape, query: Shape, key: Shape, value: Shape, *__: Any, **___: Any) -> int:
    """The scores again, and the gradients of scores and sums in both their factors, as torch counts other kernels."""
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _recurrent_layer(inputs: Shape, of_input: Shape, of_state: Shape, *_: Any, **__: Any) -> int:
    """Every weight once for each row of (T B I)."""
    return 2 * math.prod(inputs[:-1]) * (math.prod(of_input) + math.prod(of_state))


def _recurrent_layer_backward(inputs: Shape, of_input: Shape, of_state: Shape, *_: Any, **__: Any) -> int:
    """The gradients of inputs, states and weights."""
    return 2 * _recurrent_layer(inputs, of_input, of_state)


def _cudnn_layers(inputs: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    """Every weight once for each row of (T B I) or packed (N I)."""
    return 2 * math.prod(inputs[:-1]) * sum(math.prod(weight) for weight in weights if len(weight) > 1)


def _cudnn_layers_backward(inputs: Shape, weights: Sequence[Shape], *rest: Any, **_: Any) -> int:
    """The gradients of inputs and states, and of weights where the last argument asks for them."""
    return _cudnn_layers(inputs, weights) * (2 if rest[-1][3] else 1)


_UNSEEN: Final[dict[Any, Callable[..., int]]] = {
    aten.mv: _product,
    aten._int_mm: _product,
    aten.dot: _product,
    aten.vdot: _product,
    aten.addmm_: _added_product,
    aten._addmm_activation: _added_product,
    aten.baddbmm_: _added_product,
    aten.addbmm: _added_product,
    aten.addbmm_: _added_product,
    aten.addmv: _added_product,
    aten.addmv_: _added_product,
    aten.addr: _added_outer_product,
    aten.addr_: _added_outer_product,
    aten._euclidean_dist: _distances,
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    aten.mkldnn_rnn_layer: _recurrent_layer,
    aten.mkldnn_rnn_layer_backward: _recurrent_layer_backward,
    aten._cudnn_rnn: _cudnn_layers,
    aten._cudnn_rnn_backward: _cudnn_layers_backward,
}
