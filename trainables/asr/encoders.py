"""How blocks of the autoregressive model look back: by recurrence, convolution or attention."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.asr.config import CausalConvolution, Encoder, Gru, MaskedSelfAttention
from trainables.asr.recurrent import recur_padded

State = tuple[Tensor, ...] | None
"""What a mixer remembers of earlier frames; None before the first."""


def make_mixer(encoder: Encoder, num_inputs: int, hidden_size: int, number: int) -> nn.Module:
    """The causal layer of block `number`, counted from 0; its `step` gives the outputs of `forward` one at a time."""
    match encoder:
        case Gru():
            return GruMixer(num_inputs, hidden_size)
        case CausalConvolution():
            dilation = encoder.kernel_frames**number
            return ConvolutionMixer(num_inputs, hidden_size, encoder.kernel_frames, dilation)
        case MaskedSelfAttention():
            return AttentionMixer(num_inputs, hidden_size, encoder.num_heads, encoder.context_frames)


class GruMixer(nn.Module):
    """A gated recurrent layer; remembers its state."""

    def __init__(self, num_inputs: int, hidden_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(num_inputs, hidden_size, batch_first=True)

    def forward(self, inputs: Float[Tensor, "B T I"]) -> Float[Tensor, "B T H"]:
        return recur_padded(self.gru, inputs)

    def step(self, frame: Float[Tensor, "B I"], state: State) -> tuple[Float[Tensor, "B H"], State]:
        """One step of the recurrence."""
        outputs, last = self.gru(frame[:, None], state[0] if state else None)
        return outputs[:, 0], (last,)


class ConvolutionMixer(nn.Module):
    """A dilated convolution over the present and the frames before it; remembers its receptive field."""

    def __init__(self, num_inputs: int, hidden_size: int, kernel_frames: int, dilation: int) -> None:
        super().__init__()
        self.num_past = (kernel_frames - 1) * dilation
        self.convolution = nn.Conv1d(num_inputs, hidden_size, kernel_frames, dilation=dilation)

    def forward(self, inputs: Float[Tensor, "B T I"]) -> Float[Tensor, "B T H"]:
        padded = F.pad(inputs, (0, 0, self.num_past, 0))
        outputs: Tensor = self.convolution(padded.transpose(1, 2)).transpose(1, 2)
        return outputs

    def step(self, frame: Float[Tensor, "B I"], state: State) -> tuple[Float[Tensor, "B H"], State]:
        """The convolution at the last frame of the receptive field."""
        past = state[0] if state else frame.new_zeros(len(frame), self.num_past, frame.shape[1])
        field = torch.cat([past, frame[:, None]], dim=1)
        return self.convolution(field.transpose(1, 2))[:, :, 0], (field[:, 1:],)


class AttentionMixer(nn.Module):
    """Multi-head attention to the present and the last frames, added to a projection of the present one.

    Instead of positions, each head's scores fall linearly with distance (Press et al. 2022, arXiv:2108.12409).
    Remembers the keys and values of its context.
    """

    def __init__(self, num_inputs: int, hidden_size: int, num_heads: int, context_frames: int) -> None:
        super().__init__()
        self.num_heads, self.context_frames = num_heads, context_frames
        self.present = nn.Linear(num_inputs, hidden_size)
        self.queries_keys_values = nn.Linear(num_inputs, 3 * hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)
        slopes = torch.tensor([2.0 ** (-8 * (head + 1) / num_heads) for head in range(num_heads)])
        self.slopes: Tensor
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, inputs: Float[Tensor, "B T I"]) -> Float[Tensor, "B T H"]:
        queries, keys, values = self._heads(inputs)
        times = torch.arange(inputs.shape[1], device=inputs.device)
        distance = times[:, None] - times[None]
        bias = self._bias(distance).masked_fill((distance < 0) | (distance >= self.context_frames), -math.inf)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias.to(queries.dtype))
        outputs: Tensor = self.present(inputs) + self.output(attended.transpose(1, 2).flatten(2))
        return outputs

    def step(self, frame: Float[Tensor, "B I"], state: State) -> tuple[Float[Tensor, "B H"], State]:
        """Attention of the present frame's query alone."""
        queries, keys, values = self._heads(frame[:, None])
        if state:
            keys, values = (torch.cat([old, new], dim=2) for old, new in zip(state, (keys, values), strict=True))
            keys, values = keys[:, :, -self.context_frames :], values[:, :, -self.context_frames :]
        distance = torch.arange(keys.shape[2] - 1, -1, -1, device=frame.device)
        bias = self._bias(distance[None])
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias.to(queries.dtype))
        outputs: Tensor = self.present(frame) + self.output(attended[:, :, 0].flatten(1))
        return outputs, (keys, values)

    def _heads(self, inputs: Float[Tensor, "B T I"]) -> list[Float[Tensor, "B N T D"]]:
        # three times (batch, time, heads * size) -> (batch, heads, time, size)
        parts = self.queries_keys_values(inputs).chunk(3, dim=-1)
        return [part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in parts]

    def _bias(self, distance: Tensor) -> Float[Tensor, "N Q K"]:
        return -self.slopes[:, None, None] * distance
