"""The surprisal controller: the less a frozen predictor expected a row, the likelier the row takes the big network.

>>> import torch
>>> from trainables.conditional.surprisal_controller import choose, p_big
>>> from trainables.conditional.surprisal_fit import fit_surprisal
>>> surprisals = torch.rand(1000).exponential_()  # -log p(x_t | x_1 .. x_{t-1}), of the training set
>>> fit = fit_surprisal(surprisals.numpy(), mu=0.3, sigma2=0.04)
>>> new = torch.tensor([0.1, 5.0])
>>> p = p_big(fit, new)
>>> choose(p, torch.rand(2)).shape  # drawn: big with probability p
torch.Size([2])
>>> choose(p).tolist()  # decided: big where p > .5
[False, True]
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from trainables.conditional.finite import check_finite
from trainables.conditional.same_shape import check_same_shape


@dataclass(frozen=True)
class SurprisalFit:
    """The two scalars of equation 3, with the mean and variance that they attain on the frames they were fitted to.

    Attributes:
        w: per nat of surprisal; 0 where all frames surprise alike.
        b: bias.
        mean_p, var_p: of p_big; they miss the targets where no (w, b) attains them.
    """

    w: float
    b: float
    mean_p: float
    var_p: float

    def __post_init__(self) -> None:
        check_finite(w=self.w, b=self.b, mean_p=self.mean_p, var_p=self.var_p)

    def raised(self, by: float) -> "SurprisalFit":
        """With `by` added to its bias (Lugosch et al. 2020, arXiv:2006.01659, appendix B: b to b + 4)."""
        return replace(self, b=self.b + by)


def p_big(fit: SurprisalFit, surprisals: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """The probability that a row takes the big network: sigmoid(w s + b) (ibid., equation 3).

    It uses a row's own surprisal and nothing else: where that is causal, the decision is, too.

    Args:
        surprisals: s, in nats: -log of the probability (or density) that the predictor gave the row before it came.

    Raises:
        NotFiniteError: a ValueError, if one is NaN or infinite.
    """
    check_finite(True, surprisals=surprisals)
    return torch.sigmoid(fit.w * surprisals + fit.b)


def choose(p: Float[Tensor, "*N"], uniform: Float[Tensor, "*N"] | None = None) -> Bool[Tensor, "*N"]:
    """Independent Bernoulli(p) choices of the big network, or, without draws, big where p > .5 (ibid., appendix C).

    Args:
        p: in [0, 1]; of draws, p = 0 never and p = 1 always is big.
        uniform: numbers in [0, 1), one for each row, drawn by whoever has the seed.

    Raises:
        ValueError: if `uniform` has another shape than `p`, or one of them has NaN or infinity.
    """
    check_finite(True, p=p)
    if uniform is not None:
        check_same_shape(p=p, uniform=uniform)
        check_finite(True, uniform=uniform)
    return p > 0.5 if uniform is None else uniform < p
