"""The feed-forward networks of one layer, small and big: each byte takes one of them."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor, nn

from routed_bytes.config import Learned, RoutedBytes, TopK
from trainables.conditional.route import mix, route
from trainables.conditional.straight_through import threshold
from trainables.conditional.top_k import TopKRouter, num_chosen, weighted


@dataclass(frozen=True, eq=False)
class Routed:
    """What a layer gives.

    Attributes:
        updates: to be added to what it read.
        chosen: which bytes took the big network.
        penalty: added to the loss in nats.
    """

    updates: Float[Tensor, "B T H"]
    chosen: Bool[Tensor, "B T"]
    penalty: Float[Tensor, ""]


class RoutedFeedForward(nn.Module):
    """Chooses by its own gate or router where the controller has one, else as it is told."""

    def __init__(self, config: RoutedBytes) -> None:
        super().__init__()
        model, self.controller = config.model, config.controller
        self.small = _two_layers(model.width, model.small_width)
        self.big = _two_layers(model.width, model.big_width)
        if isinstance(self.controller, Learned):
            self.gate = nn.Linear(model.width, 1)
        if isinstance(self.controller, TopK):
            self.router = TopKRouter(model.width, self.controller.predictor_width)

    def forward(self, x: Float[Tensor, "B T H"], told: Bool[Tensor, "B T"] | None) -> Routed:
        """Each byte through its network; a gate in training needs both on all bytes for its gradient."""
        controller = self.controller
        if isinstance(controller, Learned):
            # what is passed straight through trains the gate alone, for it is no gradient of what the gate reads, and
            # by a probability, whose gradient fades where the gate is sure
            used = threshold(self.gate(x.detach())[..., 0].sigmoid() - 0.5)
            chosen = used > 0
            if not self.training:
                return Routed(self._routed(x, chosen), chosen, x.new_zeros(()))
            updates = mix(x.flatten(0, 1), used.flatten(), self.small, self.big).view_as(x)
            return Routed(updates, chosen, controller.weight * (used.mean() - controller.rate).square())
        if isinstance(controller, TopK):
            found = self.router(x, num_chosen(controller.rate, x.shape[1]))
            updates = self._routed(x, found.chosen).flatten(0, 1)
            updates = weighted(updates, found.scores.flatten(), found.chosen.flatten()).view_as(x)
            return Routed(updates, found.chosen, found.predictor_loss)
        assert told is not None
        return Routed(self._routed(x, told), told, x.new_zeros(()))

    def _routed(self, x: Float[Tensor, "B T H"], chosen: Bool[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        return route(x.flatten(0, 1), chosen.flatten(), self.small, self.big).view_as(x)


def _two_layers(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
