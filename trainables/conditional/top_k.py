"""Top-k routing: the rows with the highest scores of each sequence take a block, a fixed number of them.

Mixture-of-Depths (Raposo et al. 2024, arXiv:2404.02258). A router scores row t of a sequence, r_t = w . x_t, and the k
highest scores of the sequence are chosen (section 3.4). A chosen row's update is weighted by its score, so that the
router gets a gradient; any other row goes by (equation 1):

    y_t = x_t + r_t f(x_t)  if t is chosen,  else  y_t = x_t

Whether r_t is among the k highest is known only when all rows are: this is no way to generate. So a second network,
which reads x_t without passing a gradient back, learns by binary cross-entropy whether t is among them, and decides
alone in evaluation (section 3.5). Ours differs in one thing: f reads single rows; the paper's also attends.

>>> import torch
>>> from torch import nn
>>> from trainables.conditional.route import route
>>> from trainables.conditional.top_k import TopKRouter, num_chosen, weighted
>>> router, block, x = TopKRouter(width=4, predictor_width=8), nn.Linear(4, 4), torch.randn(2, 12, 4)  # x: B T H
>>> found = router(x, num_chosen(0.25, x.shape[1]))  # after `router.eval()` the predictor decides, and k is not read
>>> rows, scores, chosen = x.flatten(0, 1), found.scores.flatten(), found.chosen.flatten()
>>> updates = weighted(route(rows, chosen, torch.zeros_like, block), scores, chosen)  # the block runs on 6 rows of 24
>>> y = x + updates.view_as(x)
>>> (y.square().mean() + found.predictor_loss).backward()
>>> chosen.sum().item()
6
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.conditional.finite import check_finite
from trainables.conditional.same_shape import check_same_shape
from trainables.cost import linear_macs


@dataclass(frozen=True, eq=False)
class TopKChoice:
    """Which rows take the block.

    Attributes:
        chosen: k of each sequence in training, any number in evaluation.
        scores: r, the weight of a chosen row's update.
        predictor_loss: mean binary cross-entropy in nats of the predictor against the k highest; 0 in evaluation.
            Its gradient reaches the predictor alone, so it is added to any loss as it is.
    """

    chosen: Bool[Tensor, "B T"]
    scores: Float[Tensor, "B T"]
    predictor_loss: Float[Tensor, ""]


class TopKRouter(nn.Module):
    """Scores the rows of a sequence; chooses the highest in training, by its predictor in evaluation.

    All sequences of a batch are of one length: padding would be scored, and chosen, as any other row.

    Args:
        width: of a row.
        predictor_width: of the hidden layer of the predictor (the paper's "small auxiliary MLP predictor").
    """

    def __init__(self, width: int, predictor_width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)
        self.predictor = nn.Sequential(nn.Linear(width, predictor_width), nn.ReLU(), nn.Linear(predictor_width, 1))

    def forward(self, x: Float[Tensor, "B T H"], k: int) -> TopKChoice:
        """The choice for each row; in evaluation that of row t depends on row t alone, and on no `k`.

        Raises:
            ValueError: if a number is NaN or infinite, or, in training, `k` is not in [1, T].
        """
        check_finite(True, x=x)
        scores, logits = self.score(x)[..., 0], self.predictor(x.detach())[..., 0]
        if not self.training:
            return TopKChoice(logits > 0, scores, logits.new_zeros(()))
        chosen = highest(scores, k)
        return TopKChoice(chosen, scores, F.binary_cross_entropy_with_logits(logits, chosen.to(logits.dtype)))


def num_chosen(rate: float, num_rows: int) -> int:
    """k: the share `rate`, in (0, 1] (else ValueError), of a sequence of `num_rows`, at least one."""
    if not 0 < rate <= 1:
        raise ValueError(f"`rate` must be in (0, 1], but got {rate}.")
    return max(1, round(rate * num_rows))


def highest(scores: Float[Tensor, "B T"], k: int) -> Bool[Tensor, "B T"]:
    """Whether a score is among the `k` highest of its sequence; of equal ones the earlier is.

    Raises:
        ValueError: if `k` is not in [1, T], or a score is NaN or infinite.
    """
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"`k` must be in [1, {scores.shape[1]}], the rows of a sequence, but got {k}.")
    check_finite(True, scores=scores)
    ranked = scores.detach().argsort(dim=1, descending=True, stable=True)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, ranked[:, :k], True)


def weighted(
    updates: Float[Tensor, "N H"], scores: Float[Tensor, " N"], chosen: Bool[Tensor, " N"]
) -> Float[Tensor, "N H"]:
    """The updates of chosen rows times their scores; the others as they are.

    Raises:
        ValueError: if there is not one score and one choice for each row, or a number is NaN or infinite.
    """
    check_same_shape(column_of_updates=updates[:, 0], scores=scores, chosen=chosen)
    check_finite(updates=updates, scores=scores)
    return updates * torch.where(chosen, scores, 1)[:, None]


def router_macs(width: int, predictor_width: int) -> int:
    """Multiply-accumulates of one row through score and predictor; both run in training and in evaluation."""
    return linear_macs(width, 1) + linear_macs(width, predictor_width) + linear_macs(predictor_width, 1)
