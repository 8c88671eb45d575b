"""How far each activation is moved: one step size for h and one for c of every layer."""

import itertools
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.lm.shapes import HIDDEN_SIZES
from trainables.lm.step_config import FixedByLayer, FixedStep, LearnedStep, PredictedStep, Step


class StepSizes(nn.Module):
    """Sizes of A = 2 L steps, in the order h and c of the first layer, h and c of the second, and so on.

    Args:
        config: how they come about; a Lipschitz-bounded step has no parameters and is not made here.
        num_activations: A.
        num_inputs: numbers that a predicting network reads.
    """

    def __init__(self, config: Step, num_activations: int, num_inputs: int) -> None:
        super().__init__()
        self.config = config
        if isinstance(config, LearnedStep):
            if config.start == "released":
                theta = torch.rand(num_activations)
            else:  # its softplus is the size at the start
                theta = torch.full((num_activations,), config.start + math.log(-math.expm1(-config.start)))
            self.theta = nn.Parameter(theta)
        elif isinstance(config, PredictedStep):
            sizes = (num_inputs, *HIDDEN_SIZES, 1)
            for i, (size, next_size) in enumerate(itertools.pairwise(sizes)):
                bound = 1 / math.sqrt(size)
                for name, shape in (("weight", (next_size, size)), ("bias", (1, next_size))):
                    parameter = nn.Parameter(torch.empty(num_activations, *shape).uniform_(-bound, bound))
                    self.register_parameter(f"{name}_{i}", parameter)

    def tensors(self) -> list[Tensor]:
        """What `sizes` reads, through which gradients come back."""
        return list(self.parameters())


def sizes(config: Step, tensors: list[Tensor], inputs: Tensor) -> Float[Tensor, "A S"]:
    """Step sizes of A activations; S is R, or 1 where they are the same for all rows.

    Args:
        config: of any but a Lipschitz-bounded step.
        tensors: of `StepSizes`.
        inputs: what a predicting network reads (A R N); of others only the shape counts.
    """
    if isinstance(config, FixedStep):
        return inputs.new_full((len(inputs), 1), config.size)
    if isinstance(config, FixedByLayer):
        return torch.cat([inputs.new_full((1, 1), size) for size in config.sizes])  # a graph of a GPU cannot copy
    if isinstance(config, LearnedStep):
        return F.softplus(tensors[0])[:, None]
    layers = list(zip(tensors[::2], tensors[1::2], strict=True))
    values = inputs
    for i, (weight, bias) in enumerate(layers):
        values = torch.baddbmm(bias, values, weight.mT)
        values = F.softplus(values) if i == len(layers) - 1 else F.relu(values)
    return values[:, :, 0]
