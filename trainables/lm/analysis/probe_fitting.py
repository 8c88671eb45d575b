"""A logistic probe fitted to a model's own activations (Giulianelli et al. 2018, arXiv:1808.08079)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from trainables.lm.signals.probe import Supervision

PENALTY = 0.01
"""Weight of the squared norm of the weights beside the mean loss, so that the fit has one solution."""

NUM_ITERATIONS = 200


def fit(hidden: Float[Tensor, "N H"], labels: Float[Tensor, " N"]) -> Supervision:
    """The probe with the lowest mean binary cross-entropy plus PENALTY |w|^2; its labels are those it was fitted to."""
    weight = torch.zeros(hidden.shape[1], dtype=hidden.dtype, device=hidden.device, requires_grad=True)
    bias = torch.zeros((), dtype=hidden.dtype, device=hidden.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=NUM_ITERATIONS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(hidden @ weight + bias, labels) + PENALTY * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return Supervision(weight.detach(), bias.detach(), labels)
