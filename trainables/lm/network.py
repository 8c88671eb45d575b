"""An LSTM language model, with a recoder attached to it or not."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables import rng
from trainables.lm.backpropagation import RecodedWindow
from trainables.lm.config import (
    AnchoredEnsemble,
    LmConfig,
    Recoder,
    SecondOrder,
    Surprisal,
    WeakSupervision,
)
from trainables.lm.linear_cross_entropy import linear_cross_entropy
from trainables.lm.lstm import Layer
from trainables.lm.noise import Noise, masked
from trainables.lm.recoding import Recoding, Trace, forward
from trainables.lm.shapes import num_copies, num_predictor_inputs
from trainables.lm.signals.error_signal import Decoders
from trainables.lm.signals.from_config import error_signal
from trainables.lm.signals.probe import Supervision
from trainables.lm.step_sizes import StepSizes
from trainables.lm.streams import NO_TARGET, Window


@dataclass(frozen=True, eq=False)
class AttachedRecoder:
    """A recoder with all that it brings along.

    Attributes:
        steps: its step sizes.
        members: decoders for its error signal, where they are not the model's own.
        supervision: of its probe.
    """

    recoder: Recoder
    steps: StepSizes
    members: Decoders | None = None
    supervision: Supervision | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """What a model made of a window.

    Attributes:
        loss: what training minimises the mean of; 0 where nothing is asked.
        nats: -log of the predictive probability of what came.
        state: h and c of each layer behind the last step, detached.
        trace: of the recoder.
        tops: the top hidden state, where there was no recoder.
    """

    loss: Float[Tensor, "T B"]
    nats: Float[Tensor, "T B"]
    state: Float[Tensor, "A R H"]
    trace: Trace | None
    tops: Float[Tensor, "T R H"] | None = None


class Network(nn.Module):
    """Embedding, LSTM layers and decoder (one, or the members of an ensemble), all started as torch does."""

    anchor_weight: Tensor
    anchor_bias: Tensor

    def __init__(self, config: LmConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config, self.vocabulary_size = config, vocabulary_size
        sizes = [config.embedding_size] + [config.hidden_size] * config.num_layers
        self.embedding = nn.Embedding(vocabulary_size, config.embedding_size)
        self.layers = nn.ModuleList([nn.LSTM(a, b) for a, b in itertools.pairwise(sizes)])
        signal = config.recoder.signal if config.recoder else None
        members = signal.num_members if isinstance(signal, AnchoredEnsemble) else 1
        self.decoder_weight = nn.Parameter(torch.empty(members, vocabulary_size, config.hidden_size))
        self.decoder_bias = nn.Parameter(torch.empty(members, vocabulary_size))
        for parameter in (self.decoder_weight, self.decoder_bias):
            if isinstance(signal, AnchoredEnsemble):
                nn.init.normal_(parameter, std=math.sqrt(signal.prior_variance))
            elif config.decoder_std is not None:
                nn.init.normal_(parameter, std=config.decoder_std)
            else:
                bound = 1 / math.sqrt(config.hidden_size)
                nn.init.uniform_(parameter, -bound, bound)
        if isinstance(signal, AnchoredEnsemble):  # anchors are of the prior too, but other draws than the weights
            for name, parameter in (("weight", self.decoder_weight), ("bias", self.decoder_bias)):
                anchor = torch.randn_like(parameter.detach()) * math.sqrt(signal.prior_variance)
                anchor = anchor[:1].expand_as(anchor).clone() if signal.anchors == "shared" else anchor
                self.register_buffer(f"anchor_{name}", anchor)
        self.steps = make_steps(config, config.recoder, vocabulary_size) if config.recoder else None

    @property
    def decoders(self) -> Decoders:
        """The network's own decoder."""
        return Decoders(self.decoder_weight, self.decoder_bias)

    @property
    def loss_of_members(self) -> str:
        """How the members of an ensemble make one loss."""
        signal = self.config.recoder.signal if self.config.recoder else None
        return signal.loss if isinstance(signal, AnchoredEnsemble) else "mean_loss"

    @property
    def own(self) -> AttachedRecoder | None:
        """The recoder that it was made with."""
        return AttachedRecoder(self.config.recoder, self.steps) if self.config.recoder and self.steps else None

    def zeros(self, batch_size: int, recoder: Recoder | None) -> Float[Tensor, "A R H"]:
        """The state before a text."""
        num_rows = batch_size * num_copies(recoder)
        return self.decoder_weight.new_zeros(2 * self.config.num_layers, num_rows, self.config.hidden_size)

    def forward(
        self,
        window: Window,
        state: Float[Tensor, "A R H"],
        noise: Noise,
        attached: AttachedRecoder | None = None,
        measures_after: bool = False,
    ) -> Run:
        """Reads a window from `state` on.

        Args:
            window: T steps of B streams.
            state: h and c of each layer; the copies of a stream, if there are some, lie B rows apart.
            noise: drawn for the same recoder.
            attached: the recoder to use.
            measures_after: whether delta is wanted of the recoded activations, which costs another decoding.
        """
        copies = num_copies(attached.recoder if attached else None)
        inputs = masked(self.embedding(window.inputs).repeat(1, copies, 1), noise.embeddings)
        if attached is None or _has_nothing_to_go_by(attached):
            return self._plain(inputs, window.targets, state, noise)
        return self._recoded(inputs, window.targets, state, noise, attached, measures_after)

    def _plain(self, inputs: Tensor, targets: Tensor, state: Tensor, noise: Noise) -> Run:
        parts = []
        for number, layer in enumerate(self.layers):
            inputs = noise.mask_between(number - 1, slice(None), inputs) if number else inputs
            before = (state[2 * number][None].contiguous(), state[2 * number + 1][None].contiguous())
            inputs, after = layer(inputs, before)
            parts += [part[0].detach() for part in after]
        loss, nats = self.outputs(inputs, targets, noise, 1)
        return Run(loss, nats, torch.stack(parts), None, inputs.detach())

    def _recoded(
        self,
        inputs: Tensor,
        targets: Tensor,
        state: Tensor,
        noise: Noise,
        attached: AttachedRecoder,
        measures_after: bool,
    ) -> Run:
        recoder, trace, copies = attached.recoder, Trace(), num_copies(attached.recoder)
        layers, tensors = [_weights(layer) for layer in self.layers], attached.steps.tensors()
        decoders = attached.members or self.decoders
        learns_in_closed_form = torch.is_grad_enabled() and not isinstance(recoder.gradient, SecondOrder)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not learns_in_closed_form):
            signal = error_signal(recoder.signal, decoders, targets, noise, learns_in_closed_form, attached.supervision)
        recoding = Recoding(recoder, signal, noise, targets, copies, measures_after)
        if learns_in_closed_form:
            flat = [part for layer in layers for part in (layer.weight_ih, layer.weight_hh, layer.bias)]
            own = (decoders.weight, decoders.bias)
            if not isinstance(recoder.signal, Surprisal):  # they have no part in what the window gives out
                own = (own[0].detach(), own[1].detach())
            tops, losses = RecodedWindow.apply(recoding, trace, len(layers), inputs, state, *own, *flat, *tensors)
        else:
            trace.state = forward(recoding, inputs, state, layers, tensors, trace)
            tops = torch.stack(trace.recoded_tops)
            losses = torch.stack(trace.losses) if trace.losses else tops.new_zeros(0)
        assert trace.state is not None
        if trace.losses:
            loss = torch.where(targets == NO_TARGET, 0.0, losses)
            return Run(loss, loss.detach(), trace.state.detach(), trace)
        loss, nats = self.outputs(tops, targets, noise, copies)
        return Run(loss, nats, trace.state.detach(), trace)

    def outputs(
        self, tops: Float[Tensor, "T R H"], targets: Int[Tensor, "T B"], noise: Noise, copies: int
    ) -> tuple[Tensor, Tensor]:
        """Loss and -log predictive probability of the targets from top states, over all copies and members."""
        tops = masked(tops, noise.decoder)
        num_members = len(self.decoder_weight)
        if copies * num_members == 1:
            losses = linear_cross_entropy(tops, self.decoder_weight[0], self.decoder_bias[0], targets)
            return losses, losses.detach()
        weights, biases = self.decoder_weight, self.decoder_bias
        if self.loss_of_members == "mean_logits":
            losses = linear_cross_entropy(tops, weights.mean(0), biases.mean(0), targets)
            return losses, losses.detach()
        if self.loss_of_members == "own_loss":
            weights, biases = (_GradientTimes.apply(part, num_members) for part in (weights, biases))
        each = torch.stack(
            [
                linear_cross_entropy(rows, weight, bias, targets)
                for rows in tops.chunk(copies, 1)
                for weight, bias in zip(weights, biases, strict=True)
            ]
        )
        nats = math.log(len(each)) - (-each.detach()).logsumexp(0)
        return each.mean(0), torch.where(targets == NO_TARGET, 0.0, nats)

    def anchor_penalty(self, num_tokens: int) -> Float[Tensor, ""] | float:
        """The mean over members of lambda d^2 / N or sqrt(lambda) d / N (thesis Eq. 3.37, 4.11); 0 without any.

        N is `num_tokens`, and d the Euclidean distance of a member's weights and biases to their anchors. Where each
        member has a loss of its own, it is their sum.
        """
        signal = self.config.recoder.signal if self.config.recoder else None
        if not isinstance(signal, AnchoredEnsemble):
            return 0.0
        num_shares = 1 if signal.loss == "own_loss" else len(self.decoder_weight)
        apart = (self.decoder_weight - self.anchor_weight).flatten(1), self.decoder_bias - self.anchor_bias
        if signal.penalty == "norm":
            distances: Tensor = torch.linalg.vector_norm(torch.cat(apart, 1), dim=1)
            return distances.sum() * (math.sqrt(signal.pull) / num_tokens / num_shares)
        squared = apart[0].square().sum() + apart[1].square().sum()
        return squared * (signal.pull / num_tokens / num_shares)

    @torch.no_grad()
    def member_spread(self) -> float | None:
        """Standard deviation over an ensemble's members of a weight or bias, root mean square; None of fewer than 2."""
        if len(self.decoder_weight) < 2:
            return None
        parts = self.decoder_weight, self.decoder_bias
        total = sum(part.double().var(0).sum().item() for part in parts)
        return math.sqrt(total / sum(part[0].numel() for part in parts))


class _GradientTimes(torch.autograd.Function):
    """The same value; its gradient comes back multiplied."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: int) -> Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.factor, None


def _weights(layer: nn.Module) -> Layer:
    """The weights of one LSTM layer, its two biases added; gradients reach both."""
    weight_ih, weight_hh, bias_ih, bias_hh = layer.parameters()
    return Layer(weight_ih, weight_hh, bias_ih + bias_hh)


def _has_nothing_to_go_by(attached: AttachedRecoder) -> bool:
    """A probe recodes only what has a label."""
    return isinstance(attached.recoder.signal, WeakSupervision) and attached.supervision is None


def make_steps(config: LmConfig, recoder: Recoder, vocabulary_size: int) -> StepSizes:
    """Step sizes as they are before training."""
    num_inputs = num_predictor_inputs(recoder.step, config.hidden_size, vocabulary_size)
    return StepSizes(recoder.step, 2 * config.num_layers, num_inputs)


def attach_recoder(network: Network, recoder: Recoder, seed: int) -> AttachedRecoder:
    """A recoder for a model that was trained without it, which has nothing to learn; members are drawn from `seed`."""
    steps = make_steps(network.config, recoder, network.vocabulary_size).to(network.decoder_weight.device)
    return AttachedRecoder(recoder, steps, members_around(network, recoder, seed))


def members_around(network: Network, recoder: Recoder, seed: int) -> Decoders | None:
    """Members for an ensemble added to a model with one decoder: that one plus noise; None where there is no need.

    The noise has the standard deviation with which the decoder itself started, .0226 at 650 hidden units. The prior's,
    .54 by default, would leave nothing of what the decoder has learnt.
    """
    if not isinstance(recoder.signal, AnchoredEnsemble) or len(network.decoder_weight) > 1:
        return None
    config = network.config
    std = config.decoder_std or 1 / math.sqrt(3 * config.hidden_size)
    generator, parts = rng.generator(seed, "members"), []
    for own in (network.decoder_weight, network.decoder_bias):
        draws = torch.randn((recoder.signal.num_members, *own.shape[1:]), generator=generator).to(own)
        parts.append(own.detach()[0] + std * draws)
    return Decoders(*parts)
