"""Error signals and their gradients against definitions in plain Python, limits and hand-made cases."""

import itertools
import math

import pytest
import torch

from tests.trainables.lm.test_network import SIGNALS, H, K, T, V, case, own
from trainables.lm import evaluation
from trainables.lm.config import AnchoredEnsemble, McDropout, Recoder, Surprisal, WeakSupervision
from trainables.lm.noise import Noise
from trainables.lm.signals.entropy import entropy_of_mean, entropy_over_batch
from trainables.lm.signals.error_signal import Decoders
from trainables.lm.signals.surprisal import SurprisalSignal
from trainables.lm.signals.uncertainty import DropoutSignal, MomentsSignal
from trainables.lm.step_config import FixedStep

SEVERAL_SIGNALS = ["nll", "eq44_argmax", "mc_units", "mc_moments", "ensemble_released", "variational", "probe_low"]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def softmax_by_hand(logits: list[float]) -> list[float]:
    powers = [math.exp(logit - max(logits)) for logit in logits]
    return [power / sum(powers) for power in powers]


def entropy_by_hand(samples: list[list[float]]) -> float:
    """Of the mean of the samples' softmaxes."""
    distributions = [softmax_by_hand(logits) for logits in samples]
    mean = [sum(column) / len(column) for column in zip(*distributions, strict=True)]
    return -sum(p * math.log(p) for p in mean)


def batch_entropy_by_hand(rows: list[list[list[float]]]) -> float:
    """Of the mean over rows of the softmax of the members' mean logits."""
    return entropy_by_hand([[sum(column) / len(column) for column in zip(*members, strict=True)] for members in rows])


def slopes_by_differences(function, logits: torch.Tensor) -> torch.Tensor:
    """Gradient of a function of nested lists, one entry after another."""
    found = torch.zeros_like(logits)
    for entry in itertools.product(*map(range, logits.shape)):
        values = []
        for sign in (1, -1):
            moved = logits.clone()
            moved[entry] += sign * 1e-5
            values.append(function(moved.tolist()))
        found[entry] = (values[0] - values[1]) / 2e-5
    return found


@pytest.mark.parametrize("keeps_graph", [False, True], ids=["in_place", "graph"])
@pytest.mark.parametrize("samples_dim", [0, 1])
def test_entropy_of_a_mean_and_its_gradient_by_definition(samples_dim, keeps_graph):
    logits = 2 * randn(3, 2, 4)
    given = logits.transpose(0, samples_dim).clone()
    with torch.set_grad_enabled(keeps_graph):
        entropy, slopes, mean = entropy_of_mean(given, samples_dim)
    for row in range(2):
        samples = logits[:, row].tolist()
        assert entropy[row].item() == pytest.approx(entropy_by_hand(samples), rel=1e-12)
        average = [sum(column) / 3 for column in zip(*map(softmax_by_hand, samples), strict=True)]
        assert mean[row].tolist() == pytest.approx(average, rel=1e-12)
        expected = slopes_by_differences(entropy_by_hand, logits[:, row])
        torch.testing.assert_close(slopes.transpose(0, samples_dim)[:, row], expected, rtol=1e-6, atol=1e-9)
    assert torch.equal(given, logits.transpose(0, samples_dim)) == keeps_graph


def test_entropy_over_the_batch_and_its_gradient_by_definition():
    logits = randn(3, 2, 4)
    entropy, slopes, probs = entropy_over_batch(logits)
    assert entropy.tolist() == pytest.approx([batch_entropy_by_hand(logits.tolist())] * 3, rel=1e-12)
    expected = slopes_by_differences(batch_entropy_by_hand, logits)
    torch.testing.assert_close(slopes, expected, rtol=1e-6, atol=1e-9)
    by_row = [softmax_by_hand(row) for row in logits.mean(1).tolist()]
    torch.testing.assert_close(probs, torch.tensor(by_row, dtype=torch.float64))


@pytest.mark.parametrize("keeps_graph", [False, True], ids=["in_place", "graph"])
def test_entropy_is_log_v_of_uniform_and_safe_where_probabilities_underflow(keeps_graph):
    with torch.set_grad_enabled(keeps_graph):
        uniform, flat, _ = entropy_of_mean(torch.full((3, 2, 7), 0.5, dtype=torch.float64))
        torch.testing.assert_close(uniform, torch.full((2,), math.log(7), dtype=torch.float64))
        assert flat.abs().max() < 1e-15
        sure = torch.full((2, 1, 5), -2000.0)  # each sample sure of a word of its own, in float32
        sure[0, 0, 1] = sure[1, 0, 3] = 0.0
        entropy, slopes, mean = entropy_of_mean(sure)
    assert entropy.tolist() == pytest.approx([math.log(2)])
    assert mean.tolist() == [[0.0, 0.5, 0.0, 0.5, 0.0]]
    assert torch.equal(slopes, torch.zeros_like(slopes))


@pytest.mark.parametrize("name", SIGNALS)
def test_a_small_step_lowers_delta_by_the_step_times_the_squared_gradient(name):
    signal, size = SIGNALS[name], 1e-4
    recoder = Recoder(signal=signal, step=FixedStep(size=size))
    network, window, state, drawn = case(recoder, is_training=False)
    with torch.no_grad():
        run = network(window, state, drawn, own(network, recoder), measures_after=True)
    fall = torch.stack(run.trace.before) - torch.stack(run.trace.after)
    layer = signal.layer - 1 if isinstance(signal, WeakSupervision) else 1
    squares = torch.stack(run.trace.norms)[:, 2 * layer].square()
    if isinstance(signal, WeakSupervision):  # the third row has no label
        assert not fall[:, 2].any() and not squares[:, 2].any()
        fall, squares = fall[:, :2], squares[:, :2]
    expected = size * squares.view(T, -1, fall.shape[1]).sum(1)
    if name == "ensemble_released":  # one number, which all rows lower
        expected = expected.sum(1, keepdim=True).expand_as(fall)
    assert (fall > 0).all()
    torch.testing.assert_close(fall, expected, rtol=1e-2, atol=0)


def surprisal_signal(variant: str, num_rows: int) -> tuple[SurprisalSignal, torch.Tensor, torch.Tensor]:
    """Of `num_rows` random states of one decoder; with the states and what came."""
    hidden, targets = 3 * randn(num_rows, H), torch.randint(V, (1, num_rows))
    decoders = Decoders(randn(1, V, H), randn(1, V))
    return SurprisalSignal(Surprisal(variant=variant), decoders, targets, Noise()), hidden, targets[0]


def nats_by_definition(signal: SurprisalSignal, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    found = []
    for row, target in zip(hidden, targets.tolist(), strict=True):
        logits = (signal.decoders.weight[0] @ row + signal.decoders.bias[0]).tolist()
        found.append(-math.log(softmax_by_hand(logits)[target]))
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("variant", ["nll", "eq44"])
def test_eq44_pushes_what_came_down_where_p_is_below_1_over_e_and_nll_does_not(variant):
    signal, hidden, targets = surprisal_signal(variant, 800)
    with torch.no_grad():
        reading = signal.read(0, [hidden])
        moved = hidden - 1e-3 * reading.gradient
        after = signal.delta(0, [moved])
    nats_before, nats_after = (nats_by_definition(signal, state, targets) for state in (hidden, moved))
    p, p_after = (-nats_before).exp(), (-nats_after).exp()
    deltas = [nats_before, nats_after] if variant == "nll" else [p**-p - 1, p_after**-p_after - 1]
    torch.testing.assert_close(reading.delta, deltas[0])
    torch.testing.assert_close(after, deltas[1])
    low, high = (p > 1e-3) & (p < 1 / math.e - 1e-3), (p > 1 / math.e + 1e-3) & (p < 0.99)
    assert low.sum() > 50 and high.sum() > 50
    assert (deltas[1] < deltas[0])[low | high].all()
    assert (nats_after < nats_before)[high].all()
    rises = (nats_after > nats_before)[low]
    assert rises.all() if variant == "eq44" else not rises.any()


def test_mc_entropy_approaches_that_of_the_true_mean_as_1_over_k():
    """To first order H(mean of K) falls short of H(mean) by sum_v var(p_v) / p_v / 2K; all masks can be listed."""
    num_units, num_words, num_draws, rate = 6, 5, 8000, 0.5
    decoders = Decoders(0.8 * randn(1, num_words, num_units), randn(1, num_words))
    hidden = randn(1, num_units)
    masks = torch.tensor(list(itertools.product((0.0, 1.0), repeat=num_units)), dtype=torch.float64)
    logits = (2 * masks * hidden) @ decoders.weight[0].T + decoders.bias[0]
    probs = torch.tensor([softmax_by_hand(row) for row in logits.tolist()], dtype=torch.float64)
    mean = probs.mean(0)  # masks are equally likely
    true = -sum(p * math.log(p) for p in mean.tolist())
    slope = ((probs - mean).square().mean(0) / mean).sum().item() / 2

    def mean_delta(num_samples: int, num_draws: int) -> float:
        kept = torch.rand(1, num_samples, num_draws, num_units) < 0.5
        signal = DropoutSignal(McDropout(num_samples=num_samples, rate=rate), decoders, Noise(samples=kept))
        with torch.no_grad():
            return signal.delta(0, [hidden.expand(num_draws, -1)]).mean().item()

    assert mean_delta(2000, 50) == pytest.approx(true, abs=0.004)
    biases = {num_samples: true - mean_delta(num_samples, num_draws) for num_samples in (5, 10, 20, 40)}
    for num_samples, bias in biases.items():
        assert bias * num_samples == pytest.approx(slope, rel=0.15)
    assert 6.5 < biases[5] / biases[40] < 9.5  # 8; of a law with the root of K 2.8


def moments(decoders: Decoders, rate: float, hidden: torch.Tensor):
    config = McDropout(rate=rate, estimator="moments")
    with torch.no_grad():
        return MomentsSignal(config, decoders).read(0, [hidden])


def test_moments_without_dropout_are_the_softmax_and_do_not_see_what_all_words_share():
    decoders, hidden = Decoders(randn(1, V, H), randn(1, V)), randn(4, H)
    logits = (hidden @ decoders.weight[0].T + decoders.bias[0]).tolist()
    plain = [entropy_by_hand([row]) for row in logits]
    assert moments(decoders, 0.0, hidden).delta.tolist() == pytest.approx(plain, rel=1e-12)
    assert moments(decoders, 1e-9, hidden).delta.tolist() == pytest.approx(plain, rel=1e-7)
    found = moments(decoders, 0.4, hidden)
    assert (found.delta > torch.tensor(plain) + 0.01).any()
    shared = Decoders(decoders.weight + 3 * randn(H), decoders.bias + 2)
    shifted = moments(shared, 0.4, hidden)
    for part in ("delta", "gradient", "probs"):
        torch.testing.assert_close(getattr(shifted, part), getattr(found, part), rtol=1e-9, atol=1e-12)


def test_moments_of_two_words_are_the_true_mean_to_second_order():
    """With x the difference of the logits, mu its mean, v its variance and p = sigmoid(mu):

    |E sigmoid(x) - p - sigmoid''(mu) v / 2| <= max |sigmoid^(3)| E|x - mu|^3 / 6 = E|x - mu|^3 / 48. Moments move the
    words' logits by 2 (1 - exp(-s / 4)) with s_1 = (1 - p)^2 v and s_2 = p^2 v, thus their difference by some a within
    (s_1^2 + s_2^2) / 16 of (s_1 - s_2) / 2 = v (1 - 2 p) / 2, of which sigmoid' makes the same second-order term; the
    rest is at most max |sigmoid''| a^2 / 2 = .0482 a^2.
    """
    num_units, rate = 8, 0.3
    decoders, hidden = Decoders(0.25 * randn(1, 2, num_units), randn(1, 2)), randn(30, num_units)
    probs = moments(decoders, rate, hidden).probs[:, 0]
    w, b = decoders.weight[0, 0] - decoders.weight[0, 1], (decoders.bias[0, 0] - decoders.bias[0, 1]).item()
    num_better = 0
    for row, p in zip(hidden, probs.tolist(), strict=True):
        true = variance = third = 0.0
        mu = (row @ w).item() + b
        for mask in itertools.product((0, 1), repeat=num_units):
            weight = math.prod(1 - rate if kept else rate for kept in mask)
            x = sum(kept * v for kept, v in zip(mask, (row * w).tolist(), strict=True)) / (1 - rate) + b
            true += weight / (1 + math.exp(-x))
            variance += weight * (x - mu) ** 2
            third += weight * abs(x - mu) ** 3
        plain = 1 / (1 + math.exp(-mu))
        squares = ((1 - plain) ** 4 + plain**4) * variance**2
        largest = variance * abs(1 - 2 * plain) / 2 + squares / 16
        assert abs(p - true) <= third / 48 + 0.0482 * largest**2 + squares / 64
        num_better += abs(plain - true) > abs(p - true)
    assert num_better >= 20  # of 30; the third moment of masks can outweigh the second-order term near p = .5


@pytest.mark.parametrize("entropy", ["members", "batch"])
def test_the_entropy_of_an_ensemble_is_of_a_row_by_itself_and_the_released_one_is_not(entropy):
    recoder = Recoder(signal=AnchoredEnsemble(num_members=K, entropy=entropy), step=FixedStep(size=0.5))
    network, window, state, drawn = case(recoder, is_training=False)
    other = state.clone()
    other[:, 1] += 1
    with torch.no_grad():
        runs = [network(window, start, drawn, network.own) for start in (state, other)]
    deltas = [torch.stack(run.trace.before) for run in runs]
    norms = [torch.stack(run.trace.norms) for run in runs]
    assert (deltas[0] != deltas[1])[:, 1].all()
    same = [torch.equal(parts[0][..., [0, 2]], parts[1][..., [0, 2]]) for parts in (deltas, norms)]
    assert same == [entropy == "members"] * 2
    assert (deltas[0] == deltas[0][:, :1]).all() == (entropy == "batch")


@pytest.mark.parametrize("name", [None, "nll", "mc_units", "mc_moments", "ensemble", "variational", "probe_low"])
def test_the_perplexity_of_a_uniform_model_is_the_size_of_the_vocabulary(name):
    recoder = Recoder(signal=SIGNALS[name]) if name else None
    network, *_ = case(recoder)
    with torch.no_grad():
        network.decoder_weight.zero_()
        network.decoder_bias.zero_()
    score = evaluation.score(network, torch.randint(V, (60,)), network.own, 4, 1, measures_delta=True)
    assert score.perplexity == pytest.approx(V, rel=1e-12)
    if name and name != "probe_low":
        assert (score.before, score.after) == pytest.approx((math.log(V), math.log(V)), rel=1e-12)
    else:
        assert score.before is None
