"""The recogniser behind the autoregressive model: pre-net, small and big networks, post-net."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from trainables.asr.autoregressive import LEAK
from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig

Layer = Callable[[Tensor], Tensor]


def route(
    frames: Float[Tensor, "N H"], choose_big: Bool[Tensor, " N"], small: Layer | None, big: Layer | None
) -> Float[Tensor, "N H"]:
    """Each frame through the network chosen for it, and through that one only.

    The frames of each network are gathered, computed in one call and put back in their places. A network that gets
    no frame is still called, on none, so that its gradients are zeros. None: a network that does not exist.
    """
    if small is None or big is None:
        only = small or big
        assert only is not None
        return only(frames)
    small_places, big_places = (~choose_big).nonzero()[:, 0], choose_big.nonzero()[:, 0]
    outputs = torch.cat([small(frames[small_places]), big(frames[big_places])])
    return outputs[torch.argsort(torch.cat([small_places, big_places]))]


class Recogniser(nn.Module):
    """Per-frame log-probabilities of the labels and, last, CTC's blank (arXiv:2006.01659, section 3).

    Works on packed frames throughout: padding costs nothing and cannot change a result.
    """

    def __init__(self, config: AsrConfig, num_labels: int) -> None:
        super().__init__()
        network, width = config.network, 2 * config.network.pre_hidden_size
        self.pre = nn.GRU(config.ar.hidden_size, network.pre_hidden_size, bidirectional=True, batch_first=True)
        self.dropout = nn.Dropout(network.dropout)
        self.small = None if isinstance(config.controller, AlwaysBig) else small_network(width)
        self.big = None if isinstance(config.controller, AlwaysSmall) else big_network(width, network.big_hidden_size)
        self.post = nn.GRU(width, network.post_hidden_size, bidirectional=True, batch_first=True)
        self.output = nn.Linear(2 * network.post_hidden_size, num_labels + 1)

    def forward(
        self, features: Float[Tensor, "B T A"], num_frames: Int[Tensor, " B"], choose_big: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T L"]:
        """Log-probabilities; rows beyond `num_frames` (on the CPU, each at least 1) are zeros."""
        hidden, _ = self.pre(_pack(features, num_frames))
        chosen = _pack(choose_big, num_frames).data
        routed = hidden._replace(data=route(self.dropout(hidden.data), chosen, self.small, self.big))
        last, _ = self.post(routed)
        scores = last._replace(data=self.output(self.dropout(last.data)).log_softmax(-1))
        log_probs: Tensor = pad_packed_sequence(scores, batch_first=True)[0]
        return log_probs


def small_network(width: int) -> nn.Sequential:
    """One layer."""
    return nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(LEAK))


def big_network(width: int, hidden_size: int) -> nn.Sequential:
    """Two layers with `hidden_size` units between them."""
    return nn.Sequential(
        nn.Linear(width, hidden_size), nn.LeakyReLU(LEAK), nn.Linear(hidden_size, width), nn.LeakyReLU(LEAK)
    )


def _pack(padded: Tensor, num_frames: Tensor) -> PackedSequence:
    return pack_padded_sequence(padded, num_frames, batch_first=True, enforce_sorted=False)
