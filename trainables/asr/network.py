"""The recogniser's own networks: pre-net, gate, small and big, post-net, in the paper's main and appendix models."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from trainables.asr.autoregressive import LEAK
from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig, Convolutional, Learned, Recurrent
from trainables.asr.macs import num_inputs, pre_width
from trainables.asr.recurrent import recur
from trainables.asr.windows import Windows, windows
from trainables.conditional.route import mix, route
from trainables.conditional.straight_through import threshold


class RecurrentPre(nn.Module):
    """Bidirectional GRU and dropout."""

    def __init__(self, num_inputs: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.gru = nn.GRU(num_inputs, hidden_size, bidirectional=True, batch_first=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, packed: PackedSequence) -> PackedSequence:
        return _map(self.dropout, recur(self.gru, packed))


class ConvolutionPre(nn.Module):
    """Convolution over as many frames before as after, leaky ReLU, and dropout."""

    def __init__(self, num_inputs: int, width: int, kernel_frames: int, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(num_inputs, width, kernel_frames, padding=kernel_frames // 2)
        self.activation = nn.Sequential(nn.LeakyReLU(LEAK), nn.Dropout(dropout))

    def forward(self, packed: PackedSequence) -> PackedSequence:
        # padding is zeros, as beyond the ends of the longest utterance
        padded, lengths = pad_packed_sequence(packed, batch_first=True)
        mixed = self.activation(self.convolution(padded.transpose(1, 2)).transpose(1, 2))
        return _pack(mixed, lengths)


class RecurrentPost(nn.Module):
    """Bidirectional GRU, dropout and a linear layer to the labels."""

    def __init__(self, width: int, hidden_size: int, dropout: float, num_outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(width, hidden_size, bidirectional=True, batch_first=True)
        self.output = nn.Sequential(nn.Dropout(dropout), nn.Linear(2 * hidden_size, num_outputs))

    def forward(self, packed: PackedSequence) -> PackedSequence:
        return _map(self.output, recur(self.gru, packed))


class WindowLinear(nn.Module):
    """Dropout and a convolution, computed only at the places that are asked for."""

    def __init__(self, num_inputs: int, num_outputs: int, kernel_frames: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(kernel_frames * num_inputs, num_outputs)

    def forward(self, chosen: Windows) -> Tensor:
        outputs: Tensor = self.linear(chosen.gather(self.dropout(chosen.frames)))
        return outputs


@dataclass(frozen=True, eq=False)
class Parts:
    """The networks of one kind of recogniser; `kernel_frames` is 0 where small and big read rows, not windows."""

    pre: nn.Module
    small: nn.Module
    big: nn.Module
    post: nn.Module
    kernel_frames: int = 0


def make_parts(network: Recurrent | Convolutional, num_inputs: int, num_outputs: int) -> Parts:
    """Every part of the recogniser but the gate."""
    if isinstance(network, Recurrent):
        width = 2 * network.pre_hidden_size
        return Parts(
            pre=RecurrentPre(num_inputs, network.pre_hidden_size, network.dropout),
            small=nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(LEAK)),
            big=nn.Sequential(two_layers(width, network.big_hidden_size, width), nn.LeakyReLU(LEAK)),
            post=RecurrentPost(width, network.post_hidden_size, network.dropout, num_outputs),
        )
    width, kernel, dropout = network.width, network.kernel_frames, network.dropout
    if network.kind == "model3":
        wide = nn.Sequential(WindowLinear(num_inputs, width, kernel, dropout), nn.LeakyReLU(LEAK))
        small = WindowLinear(num_inputs, num_outputs, kernel, dropout)
        return Parts(nn.Identity(), small, wide.append(nn.Linear(width, num_outputs)), nn.Identity(), kernel)
    return Parts(
        pre=ConvolutionPre(num_inputs, width, kernel, dropout if network.kind == "model2" else 0.0),
        small=nn.Linear(width, num_outputs),
        big=two_layers(width, network.big_hidden_size, num_outputs),
        post=nn.Identity(),
    )


def two_layers(num_inputs: int, hidden_size: int, num_outputs: int) -> nn.Sequential:
    """With a leaky ReLU between them."""
    return nn.Sequential(nn.Linear(num_inputs, hidden_size), nn.LeakyReLU(LEAK), nn.Linear(hidden_size, num_outputs))


class RoutedNetwork(nn.Module):
    """Per-frame log-probabilities of the labels and, last, CTC's blank (arXiv:2006.01659, section 3 and appendix A).

    Works on packed frames: padding cannot change a result, and costs only where a convolution precedes the networks.
    """

    def __init__(self, config: AsrConfig, num_labels: int) -> None:
        super().__init__()
        controller, parts = config.controller, make_parts(config.network, num_inputs(config), num_labels + 1)
        self.kernel_frames, self.pre, self.post = parts.kernel_frames, parts.pre, parts.post
        self.small = None if isinstance(controller, AlwaysBig) else parts.small
        self.big = None if isinstance(controller, AlwaysSmall) else parts.big
        self.gate: nn.Module | None = None
        self.gate_reads_inputs = isinstance(controller, Learned) and controller.gate_input == "features"
        if isinstance(controller, Learned):
            width = num_inputs(config) if self.gate_reads_inputs else pre_width(config)
            self.gate = two_layers(width, controller.hidden_size, 1)

    def forward(
        self,
        inputs: Float[Tensor, "B T A"],
        num_frames: Int[Tensor, " B"],
        choose_big: Bool[Tensor, "B T"] | None,
    ) -> tuple[Float[Tensor, "B T L"], Float[Tensor, "B T"]]:
        """Log-probabilities, and 1 where a frame took the big network, else 0.

        Rows beyond `num_frames` (on the CPU, each at least 1) are zeros. Where `choose_big` is None the gate chooses;
        in training its choice has a straight-through gradient, for which both networks must run on all frames.
        """
        packed = _pack(inputs, num_frames)
        hidden = self.pre(packed)
        frames = windows(hidden, self.kernel_frames) if self.kernel_frames else hidden.data
        if choose_big is not None:
            used_big = _pack(choose_big, num_frames).data.to(inputs.dtype)
        else:
            assert self.gate is not None
            used_big = threshold(self.gate(packed.data if self.gate_reads_inputs else hidden.data)[:, 0])
        if used_big.requires_grad and self.small is not None and self.big is not None:
            outputs = mix(frames, used_big, self.small, self.big)
        else:
            outputs = route(frames, used_big > 0.5, self.small, self.big)
        scores = _map(lambda rows: rows.log_softmax(-1), self.post(hidden._replace(data=outputs)))
        return _unpack(scores), _unpack(hidden._replace(data=used_big))


def _pack(padded: Tensor, num_frames: Tensor) -> PackedSequence:
    return pack_padded_sequence(padded, num_frames, batch_first=True, enforce_sorted=False)


def _unpack(packed: PackedSequence) -> Tensor:
    padded: Tensor = pad_packed_sequence(packed, batch_first=True)[0]
    return padded


def _map(layer: nn.Module | object, packed: PackedSequence) -> PackedSequence:
    return packed._replace(data=layer(packed.data))  # type: ignore[operator]
