"""Closed-form recoding against autograd, written separately, for every error signal; and against `nn.LSTM`."""

import math

import pytest
import torch
from torch.nn import functional as F

from tests.trainables.lm import autograd_reference as reference
from trainables.lm import noise
from trainables.lm.config import (
    AnchoredEnsemble,
    Dropout,
    LmConfig,
    McDropout,
    Recoder,
    SecondOrder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.gate_config import Always, Chance, EntropyThreshold, Threshold
from trainables.lm.network import AttachedRecoder, Network
from trainables.lm.signals.probe import Supervision
from trainables.lm.step_config import FixedByLayer, FixedStep, LearnedStep, PredictedStep
from trainables.lm.streams import Window

T, B, H, V, K = 4, 3, 5, 11, 3
SIGNALS = {
    "nll": Surprisal(),
    "nll_argmax": Surprisal(target="argmax"),
    "eq44": Surprisal(variant="eq44"),
    "eq44_argmax": Surprisal(variant="eq44", target="argmax"),
    "sigmoid": Surprisal(variant="sigmoid"),
    "sigmoid_argmax": Surprisal(variant="sigmoid", target="argmax"),
    "inject": Surprisal(variant="inject"),
    "mc_units": McDropout(num_samples=K, rate=0.4),
    "mc_weights": McDropout(num_samples=K, rate=0.4, masks="weights"),
    "mc_printed": McDropout(num_samples=K, rate=0.4, masks="weights", scaling="none"),
    "mc_moments": McDropout(rate=0.4, estimator="moments"),
    "ensemble": AnchoredEnsemble(num_members=K),
    "ensemble_own_loss": AnchoredEnsemble(num_members=K, loss="own_loss"),
    "ensemble_released": AnchoredEnsemble(num_members=K, entropy="batch", loss="mean_logits", anchors="shared"),
    "variational": Variational(num_samples=K, rate=0.3),
    "probe_low": WeakSupervision(layer=1),
    "probe_high": WeakSupervision(layer=2),
}


def config_for(recoder: Recoder | None, **changes) -> LmConfig:
    dropout = Dropout(rate=0.2)
    return LmConfig(embedding_size=4, hidden_size=H, recoder=recoder, dropout=dropout).model_copy(update=changes)


def make(recoder, seed=0, **changes):
    torch.manual_seed(seed)
    network = Network(config_for(recoder, **changes), V).double()
    with torch.no_grad():  # larger weights than at the start, so that all gradients count
        for parameter in network.parameters():
            parameter.mul_(2)
    return network


def case(recoder, seed=0, is_training=True, **changes):
    """A network in float64, a window, a state and noise."""
    network = make(recoder, seed, **changes)
    window = Window(torch.randint(V, (T, B)), torch.randint(V, (T, B)))
    state = torch.randn(network.zeros(B, recoder).shape, dtype=torch.float64) / 2
    drawn = noise.draw(network.config, recoder, (T, B), V, torch.Generator().manual_seed(seed), is_training)
    return network, window, state, drawn


def doubled(value):
    if isinstance(value, list):
        return [doubled(one) for one in value]
    return value.double() if isinstance(value, torch.Tensor) else value


def own(network, recoder):
    if not isinstance(recoder.signal, WeakSupervision):
        return network.own
    weight, bias = torch.randn(H, dtype=torch.float64), torch.randn((), dtype=torch.float64)
    labels = torch.tensor([1.0, 0.0, math.nan], dtype=torch.float64)
    return AttachedRecoder(recoder, network.steps, None, Supervision(weight, bias, labels))


def expected(network, recoder, window, state, drawn, attached=None, probs_read=False):
    """The reference on the same weights, masks and step sizes."""
    copies = noise.num_copies(recoder)
    inputs = network.embedding(window.inputs).repeat(1, copies, 1)
    inputs = inputs if drawn.embeddings is None else inputs * drawn.embeddings
    masks = reference.Masks(
        between=doubled(list(drawn.between)) or None,
        decoder_input=doubled(drawn.decoder),
        recurrent=doubled(list(drawn.recurrent)) or None,
    )
    if drawn.samples is not None:
        samples = torch.stack([drawn.samples[t].double() for t in range(T)])
        samples = samples if recoder.signal.scaling == "none" else samples / (1 - recoder.signal.rate)
        setattr(masks, "weights" if recoder.signal.masks == "weights" else "samples", samples)
    layers = [reference.Layer(*layer.parameters()) for layer in network.layers]
    steps = network.steps

    def step_size(step, layer, kind, activation, log_probs):
        number = 2 * layer + (kind == "c")
        if isinstance(steps.config, FixedStep):
            return torch.tensor(steps.config.size, dtype=torch.float64)
        if isinstance(steps.config, FixedByLayer):
            return torch.tensor(getattr(steps.config, kind)[layer], dtype=torch.float64)
        if isinstance(steps.config, LearnedStep):
            return F.softplus(steps.theta[number])
        values = activation
        if steps.config.source == "output":
            values = log_probs.exp().repeat(copies, 1)
        for i in range(3):
            weight, bias = getattr(steps, f"weight_{i}")[number], getattr(steps, f"bias_{i}")[number]
            values = values @ weight.t() + bias
            values = F.softplus(values) if i == 2 else F.relu(values)
        return values[:, 0]

    supervision = attached.supervision if attached else None
    return reference.run(
        inputs,
        window.targets,
        [(state[2 * i], state[2 * i + 1]) for i in range(len(network.layers))],
        layers,
        network.decoder_weight,
        network.decoder_bias,
        recoder,
        step_size,
        masks,
        (supervision.weight, supervision.bias) if supervision else None,
        supervision.labels if supervision else None,
        doubled(drawn.gates),
    )


def gradients(network, loss):
    network.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


def assert_equal(recoder, is_training=True, seed=0, measures_after=True):
    network, window, state, drawn = case(recoder, seed, is_training)
    weights = torch.rand(T, B, dtype=torch.float64)
    attached = own(network, recoder)
    run = network(window, state, drawn, attached, measures_after=measures_after)
    found = gradients(network, (run.loss * weights).sum())
    wanted = expected(network, recoder, window, state, drawn, attached)
    exact = {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(run.loss, wanted.loss, **exact)
    torch.testing.assert_close(run.nats, wanted.predictive.detach(), **exact)
    gates = wanted.gates.repeat(1, noise.num_copies(recoder))
    assert torch.equal(torch.stack(run.trace.gates).double(), gates)
    if measures_after:
        torch.testing.assert_close(torch.stack(run.trace.before), wanted.delta_before, **exact)
        torch.testing.assert_close(torch.stack(run.trace.after), wanted.delta_after, **exact)
    state_wanted = torch.stack([part for pair in wanted.state for part in pair])
    torch.testing.assert_close(run.state, state_wanted.detach(), **exact)
    norms = [[part.norm(dim=-1) for pair in step for part in pair] for step in wanted.gradients]
    norms = torch.stack([torch.stack(row) for row in norms])
    norms = norms * gates[:, None] if recoder.skips_shut_rows else norms
    is_reached = torch.ones(2, 2)  # layers, h and c
    if isinstance(recoder.step, FixedByLayer) and not (recoder.step.h[0] or recoder.step.c[0]):
        is_reached[0] = 0
    torch.testing.assert_close(torch.stack(run.trace.norms), norms * is_reached.view(4, 1), **exact)
    assert 0 < gates.mean() < 1 or isinstance(recoder.gate, Always) or getattr(recoder.gate, "each", "") == "batch"
    wanted_gradients = gradients(network, (wanted.loss * weights).sum())
    assert found.keys() == wanted_gradients.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, wanted_gradients[name], rtol=1e-9, atol=1e-11, msg=name)


def test_each_member_of_an_ensemble_is_trained_by_its_own_loss_or_by_a_share_of_it():
    """Of Eq. 4.11 by a K-th; what lies below the members gets the gradient of the mean in both cases."""
    found = {}
    for loss in ("mean_loss", "own_loss"):
        recoder = Recoder(signal=AnchoredEnsemble(num_members=K, loss=loss), step=FixedStep(size=0.3))
        network, window, state, drawn = case(recoder)
        run = network(window, state, drawn, network.own)
        run.loss.mean().backward()
        found[loss] = {name: parameter.grad for name, parameter in network.named_parameters()} | {"loss": run.loss}
    for name, of_mean in found["mean_loss"].items():
        factor = K if name.startswith("decoder") else 1
        torch.testing.assert_close(found["own_loss"][name], factor * of_mean, msg=name)
    tops, decoders = torch.randn(T, B, H, dtype=torch.float64), [network.decoder_weight, network.decoder_bias]
    network.zero_grad()
    network.outputs(tops, window.targets, noise.Noise(), 1)[0].mean().backward()
    together = [one.grad for one in decoders]
    for member in range(K):
        alone = [one.detach()[member].requires_grad_() for one in decoders]
        F.cross_entropy(F.linear(tops, *alone).flatten(0, 1), window.targets.flatten()).backward()
        for whole, one in zip(together, alone, strict=True):
            torch.testing.assert_close(whole[member], one.grad)


@pytest.mark.parametrize("penalty", ["squared", "norm"])
def test_a_member_with_a_loss_of_its_own_has_its_whole_anchor_penalty(penalty):
    signals = [AnchoredEnsemble(num_members=K, penalty=penalty, loss=loss) for loss in ("mean_loss", "own_loss")]
    mean, whole = (make(Recoder(signal=signal)).anchor_penalty(10) for signal in signals)
    assert mean.item() > 0
    torch.testing.assert_close(whole, K * mean)


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("is_training", [True, False], ids=["training", "testing"])
def test_every_signal_equals_autograd_in_values_and_all_gradients(name, is_training):
    assert_equal(Recoder(signal=SIGNALS[name], step=FixedStep(size=0.3)), is_training)


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize(
    "step", [LearnedStep(start=0.4), PredictedStep(), PredictedStep(source="output")], ids=["learned", "seen", "output"]
)
def test_learnt_step_sizes_get_the_gradient_that_autograd_finds(name, step):
    if name.startswith("probe") and getattr(step, "source", "") == "output":
        pytest.skip("a probe has no output distribution")
    assert_equal(Recoder(signal=SIGNALS[name], step=step), seed=1)


@pytest.mark.parametrize("name", SIGNALS)
def test_a_graph_through_the_recoding_gradient_equals_autograd(name):
    assert_equal(Recoder(signal=SIGNALS[name], step=LearnedStep(start=0.4), gradient=SecondOrder()))


STILL = FixedStep(size=0)


def some_open(name, kind=Threshold, step=STILL):
    """A threshold that some tokens of the case exceed: halfway up the deltas, or entropies, without a gate."""
    recoder = Recoder(signal=SIGNALS[name], step=step)
    network, window, state, drawn = case(recoder)
    with torch.no_grad():
        trace = network(window, state, drawn, own(network, recoder)).trace
        if kind is Threshold:
            found = torch.stack(trace.before).unique().tolist()
            middle = len(found) // 2 - (len(found) == T)
            return Threshold(min_delta=sum(found[middle : middle + 2]) / 2)
        decoded = torch.stack(trace.tops) * drawn.decoder
        log_probs = (decoded @ network.decoder_weight[0].T + network.decoder_bias[0]).log_softmax(-1)
        found = sorted(reference.entropy(log_probs).flatten().tolist())
        return EntropyThreshold(min_entropy=sum(found[5:7]) / 2)


@pytest.mark.parametrize("kind", ["threshold", "chance", "batch"])
@pytest.mark.parametrize("name", SIGNALS)
def test_gates(name, kind):
    gate = some_open(name) if kind == "threshold" else Chance(each="batch" if kind == "batch" else "token")
    assert_equal(Recoder(signal=SIGNALS[name], step=LearnedStep(start=0.4), gate=gate))


@pytest.mark.parametrize("name", SIGNALS)
def test_gates_known_before_leave_unread_what_is_shut(name):
    """Without delta being asked for in every row, which is what training and the speed of a test are."""
    for is_training in (True, False):
        assert_equal(
            Recoder(signal=SIGNALS[name], step=LearnedStep(start=0.4), gate=Chance()), is_training, measures_after=False
        )


@pytest.mark.parametrize("name", ["nll", "nll_argmax", "eq44", "sigmoid"])
@pytest.mark.parametrize("is_training", [True, False], ids=["training", "testing"])
def test_a_gate_by_the_entropy_of_the_output_before_the_word(name, is_training):
    gate = some_open(name, kind=EntropyThreshold)
    assert_equal(Recoder(signal=SIGNALS[name], step=LearnedStep(start=0.4), gate=gate), is_training)


@pytest.mark.parametrize("source", ["activation", "output"])
@pytest.mark.parametrize("gate", ["threshold", "chance"])
@pytest.mark.parametrize("name", ["nll", "mc_units", "ensemble", "variational"])
def test_step_sizes_are_predicted_for_open_rows_alone_and_get_the_gradient_of_autograd(name, gate, source):
    step = PredictedStep(source=source)
    gate = Chance() if gate == "chance" else some_open(name, step=step)
    recoder = Recoder(signal=SIGNALS[name], step=step, gate=gate)
    assert_equal(recoder, measures_after=False)


@pytest.mark.parametrize("gate", ["threshold", "chance"])
@pytest.mark.parametrize("name", ["nll", "eq44", "mc_units", "ensemble", "variational"])
def test_a_graph_through_gated_recoding_equals_autograd(name, gate):
    gate = Chance() if gate == "chance" else some_open(name)
    recoder = Recoder(signal=SIGNALS[name], step=LearnedStep(start=0.4), gate=gate, gradient=SecondOrder())
    assert_equal(recoder, measures_after=False)


BY_LAYER = {
    "top": FixedByLayer(h=(0, 0.3), c=(0, 0.4)),
    "bottom": FixedByLayer(h=(0.3, 0), c=(0.4, 0)),
    "hidden": FixedByLayer(h=(0.3, 0.2), c=(0, 0)),
    "memory": FixedByLayer(h=(0, 0), c=(0.3, 0.2)),
    "four": FixedByLayer(h=(0.1, 0.2), c=(0.3, 0.4)),
}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        (name, step)
        for name in ("nll", "mc_units", "variational", "probe_low")
        for step in BY_LAYER
        if (name, step) != ("probe_low", "top")  # refused: the probe's error depends on no layer that is recoded
    ],
)
@pytest.mark.parametrize("gate", [Always(), Chance()], ids=["always", "chance"])
def test_a_constant_step_for_each_layer_and_activation_equals_autograd(name, step, gate):
    assert_equal(Recoder(signal=SIGNALS[name], step=BY_LAYER[step], gate=gate))


def test_a_weight_that_changes_before_back_propagation_is_told():
    """What the forward pass read is kept where torch looks after it, so that gradients are never of other weights."""
    recoder = Recoder(signal=SIGNALS["nll"], step=LearnedStep(start=0.4))
    network, window, state, drawn = case(recoder)
    run = network(window, state, drawn, network.own)
    with torch.no_grad():
        network.layers[1].weight_hh_l0.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run.loss.sum().backward()
