"""Entropies of mean distributions, with their gradients in closed form.

With a graph being kept all of it is differentiable; without one, big arrays are used again in place.
"""

import torch
from jaxtyping import Float
from torch import Tensor

TINY = 1e-30
"""Below which a probability counts as this much where its logarithm is taken."""


def entropy_of_mean(logits: Tensor, samples_dim: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """The entropy (B) in nats of the mean of K softmaxes, its gradient in the `logits`, and that mean (B V).

    With p the mean of p_k and u = -log p: dH / dz_k = p_k (u - p_k . u) / K. Uses `logits` (K B V, or B K V with
    `samples_dim` 1) for the gradient where no graph is kept.
    """
    probs = softmax(logits)
    mean = probs.mean(samples_dim, keepdim=True)
    surprise = -mean.clamp_min(TINY).log()
    entropy = (mean * surprise).sum(-1)
    num_samples = probs.shape[samples_dim]
    if torch.is_grad_enabled():
        slopes = probs * (surprise - (probs * surprise).sum(-1, keepdim=True)) / num_samples
    else:
        slopes = probs
        for sample in probs.split(1, samples_dim):
            middle = torch.linalg.vecdot(sample, surprise)[..., None]
            sample.mul_((surprise - middle).div_(num_samples))
    return entropy.squeeze(samples_dim), slopes, mean.squeeze(samples_dim)


def entropy_over_batch(logits: Float[Tensor, "B K V"]) -> tuple[Tensor, Tensor, Tensor]:
    """The released code's measure: the entropy of the mean over the batch, the same number for every row.

    The distribution of a row is the softmax of the members' mean logits.
    """
    num_rows, num_members, _ = logits.shape
    probs = logits.mean(1).softmax(-1)
    mean = probs.mean(0)
    surprise = -mean.clamp_min(TINY).log()
    slopes = probs * (surprise - (probs * surprise).sum(-1, keepdim=True)) / (num_rows * num_members)
    return (mean * surprise).sum().expand(num_rows), slopes[:, None].expand_as(logits), probs


def softmax(logits: Tensor) -> Tensor:
    """The softmax, in place where no graph is kept."""
    return logits.softmax(-1) if torch.is_grad_enabled() else torch.softmax(logits, -1, out=logits)
