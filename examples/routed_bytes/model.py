"""The transformer: bytes in, logits of the next byte out."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from routed_bytes.byte_model import NUM_BYTES, FrozenByteModel
from routed_bytes.config import Always, ByRate, RoutedBytes, Transformer
from routed_bytes.feed_forward import RoutedFeedForward
from trainables import rng


@dataclass(frozen=True, eq=False)
class Predicted:
    """The prediction of the byte after each of those read.

    Attributes:
        chosen: by layer, which bytes took the big network.
        penalty: added to the loss in nats.
    """

    logits: Float[Tensor, "B T 256"]
    chosen: Bool[Tensor, "L B T"]
    penalty: Float[Tensor, ""]


class RoutedTransformer(nn.Module):
    """What is said of byte t + 1 uses bytes up to t and no others, in evaluation and, but for top-k, in training.

    Args:
        byte_model: for the controllers that ask it; else None.
    """

    threshold: Tensor

    def __init__(self, config: RoutedBytes, byte_model: FrozenByteModel | None) -> None:
        super().__init__()
        model, self.controller = config.model, config.controller
        self.register_buffer("threshold", torch.zeros(()))
        self.bytes = nn.Embedding(NUM_BYTES, model.width)
        self.positions = nn.Embedding(model.context, model.width)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(model.num_layers))
        self.norm, self.head = nn.LayerNorm(model.width), nn.Linear(model.width, NUM_BYTES, bias=False)
        # the weights of a part depend on the seed and its name alone: what two controllers share begins equal
        with torch.random.fork_rng(devices=[]):
            for name, part in self.named_modules():
                torch.manual_seed(rng.derive(config.seed, "weights", name))
                if isinstance(part, nn.Linear | nn.Embedding):
                    part.reset_parameters()
                if isinstance(part, nn.Embedding):
                    nn.init.normal_(part.weight, std=0.02)
        self.byte_model = byte_model  # which has its weights

    def forward(self, read: Int[Tensor, "B T"], routing: torch.Generator) -> Predicted:
        """Logits of the byte after each of those read, at most `context` of a sequence.

        Args:
            routing: on the CPU; a random controller draws from it.
        """
        told = self.told(read, routing)
        x = self.bytes(read) + self.positions.weight[: read.shape[1]]
        chosen, penalty = [], x.new_zeros(())
        for layer in self.layers:
            x, routed = layer(x, told)
            chosen.append(routed.chosen)
            penalty = penalty + routed.penalty
        return Predicted(self.head(self.norm(x)), torch.stack(chosen), penalty)

    def told(self, read: Int[Tensor, "B T"], routing: torch.Generator) -> Bool[Tensor, "B T"] | None:
        """The choice that holds in all layers; None where each layer has its own."""
        match self.controller:
            case Always(kind=kind):
                return torch.full(read.shape, kind == "always_big", device=read.device)
            case ByRate(kind="random", rate=rate):
                return (torch.rand(read.shape, generator=routing) < rate).to(read.device)
            case ByRate():
                return self.measured(read) > self.threshold
        return None

    def measured(self, read: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """What the frozen model says of each byte: its surprisal, or the entropy of the next one."""
        assert self.byte_model is not None
        with torch.no_grad():
            is_surprisal = self.controller.kind == "surprisal"
            return self.byte_model.surprisal(read) if is_surprisal else self.byte_model.entropy(read)

    def fit_threshold(self, read: Int[Tensor, "B T"]) -> None:
        """Lets the share `rate` of these bytes exceed it."""
        assert isinstance(self.controller, ByRate)
        self.threshold.copy_(torch.quantile(self.measured(read), 1 - self.controller.rate))


class _Layer(nn.Module):
    def __init__(self, config: RoutedBytes) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(config.model.width) for _ in range(2))
        self.attention, self.feed_forward = _Attention(config.model), RoutedFeedForward(config)

    def forward(self, x: Tensor, told: Tensor | None) -> tuple[Tensor, object]:
        x = x + self.attention(self.norms[0](x))
        routed = self.feed_forward(self.norms[1](x), told)
        return x + routed.updates, routed


class _Attention(nn.Module):
    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.num_heads = model.num_heads
        self.inputs, self.outputs = nn.Linear(model.width, 3 * model.width), nn.Linear(model.width, model.width)

    def forward(self, x: Float[Tensor, "B T H"]) -> Float[Tensor, "B T H"]:
        # B T 3H -> three of B heads T H/heads
        query, key, value = self.inputs(x).unflatten(2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        outputs: Tensor = self.outputs(attended.transpose(1, 2).flatten(2))
        return outputs
