"""The autoregressive model: predicts the next filterbank frame, and so says how surprising each frame is."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.asr.config import Pretraining
from trainables.asr.encoders import State, make_mixer
from trainables.asr.macs import NUM_BLOCKS

LEAK = 0.125


class Normaliser(nn.Module):
    """`(x + bias) * weight` for each mel bin, both learned; brings log energies to about unit size at the start."""

    def __init__(self, num_bins: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_bins))
        self.weight = nn.Parameter(torch.full((num_bins,), 0.1))

    def forward(self, frames: Float[Tensor, "*B F"]) -> Float[Tensor, "*B F"]:
        return (frames + self.bias) * self.weight


class Block(nn.Module):
    """A causal mixer, dropout, linear layer, leaky ReLU."""

    def __init__(self, mixer: nn.Module, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.mixer = mixer
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden_size, hidden_size)

    def forward(self, inputs: Float[Tensor, "B T I"]) -> Float[Tensor, "B T H"]:
        return F.leaky_relu(self.linear(self.dropout(self.mixer(inputs))), LEAK)

    def step(self, frame: Float[Tensor, "B I"], state: State) -> tuple[Float[Tensor, "B H"], State]:
        """The next frame, without dropout."""
        mixed, state = self.mixer.step(frame, state)  # type: ignore[operator]
        return F.leaky_relu(self.linear(mixed), LEAK), state


@dataclass(frozen=True, eq=False)
class Stream:
    """The state of a model that reads one frame at a time: each block's memory, and the last feature."""

    states: tuple[State, ...]
    feature: Float[Tensor, "B H"]


class AutoregressiveModel(nn.Module):
    """Two causal blocks and a linear regressor (Lugosch et al. 2020, arXiv:2006.01659, section 2 and released code).

    Frames may be padded at the end: the model is causal, so padding changes nothing before it.
    """

    def __init__(self, config: Pretraining) -> None:
        super().__init__()
        num_bins, hidden_size = config.features.num_mel_bins, config.hidden_size
        self.normaliser = Normaliser(num_bins)
        widths = [num_bins] + [hidden_size] * (NUM_BLOCKS - 1)
        mixers = [make_mixer(config.encoder, width, hidden_size, number) for number, width in enumerate(widths)]
        self.blocks = nn.Sequential(*(Block(mixer, hidden_size, config.dropout) for mixer in mixers))
        self.regressor = nn.Linear(hidden_size, num_bins)

    @torch.no_grad()
    def start_from(self, mean_frame: Float[Tensor, " F"]) -> None:
        """Sets the normaliser to take `mean_frame` to zero and the regressor to predict it from zero features."""
        self.normaliser.bias.copy_(-mean_frame)
        self.regressor.bias.copy_(mean_frame)

    def encode(self, frames: Float[Tensor, "B T F"]) -> Float[Tensor, "B T+1 H"]:
        """Encoder outputs: row t has seen the first t frames, so row 0 has seen none (a zero frame stands there)."""
        encoded: Tensor = self.blocks(F.pad(self.normaliser(frames), (0, 0, 1, 0)))
        return encoded

    def forward(self, frames: Float[Tensor, "B T F"]) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B T F"]]:
        """Features that have seen x_t, and the prediction of x_t made before it was seen."""
        encoded = self.encode(frames)
        return encoded[:, 1:], self.regressor(encoded[:, :-1])

    def begin(self, num_streams: int) -> Stream:
        """Before the first frame; the model should be in eval mode."""
        nothing = self.normaliser.weight.new_zeros(num_streams, len(self.normaliser.weight))
        return self._advance(nothing, (None,) * NUM_BLOCKS)

    def step(self, frame: Float[Tensor, "B F"], stream: Stream) -> Stream:
        """The state of the model behind `frame`; equal to `forward` frame by frame."""
        return self._advance(self.normaliser(frame), stream.states)

    def predict(self, stream: Stream) -> Float[Tensor, "B F"]:
        """The next frame as the model expects it."""
        prediction: Tensor = self.regressor(stream.feature)
        return prediction

    def _advance(self, hidden: Tensor, states: tuple[State, ...]) -> Stream:
        following = []
        for block, state in zip(self.blocks, states, strict=True):
            hidden, state = block.step(hidden, state)  # type: ignore[operator]
            following.append(state)
        return Stream(tuple(following), hidden)


def surprisal(frames: Float[Tensor, "*B F"], predictions: Float[Tensor, "*B F"]) -> Float[Tensor, "*B"]:
    """1/2 ||x_t - xhat_t||^2, in nats up to a constant (ibid., equation 2)."""
    return 0.5 * (frames - predictions).square().sum(-1)
