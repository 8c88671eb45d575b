"""Error signals, gradients, step sizes and gates against definitions in plain Python, limits and hand-made cases."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from scipy.linalg import hadamard

from tests.trainables.lm.test_network import SIGNALS, B, H, K, T, V, case, own
from trainables.lm import noise, recoding, testing
from trainables.lm.config import (
    AnchoredEnsemble,
    Chance,
    ClosedForm,
    FiniteDifference,
    FixedStep,
    LearnedStep,
    LipschitzStep,
    McDropout,
    PredictedStep,
    Recoder,
    Surprisal,
    Threshold,
    Variational,
    WeakSupervision,
)
from trainables.lm.entropy import entropy_of_mean, entropy_over_batch
from trainables.lm.network import Network, make_steps
from trainables.lm.noise import Noise
from trainables.lm.reading import Decoders
from trainables.lm.streams import NO_TARGET, Window
from trainables.lm.surprisal import SurprisalSignal
from trainables.lm.uncertainty import DropoutSignal, MomentsSignal

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
    score = testing.score(network, torch.randint(V, (60,)), network.own, 4, 1)
    assert score.perplexity == pytest.approx(V, rel=1e-12)
    if name and name != "probe_low":
        assert (score.before, score.after) == pytest.approx((math.log(V), math.log(V)), rel=1e-12)
    else:
        assert score.before is None


def hessian_of_nll(weight: torch.Tensor, bias: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    """W^T (diag p - p p^T) W."""
    p = torch.tensor(softmax_by_hand((weight @ hidden + bias).tolist()), dtype=torch.float64)
    return weight.T @ (torch.diag(p) - p[:, None] * p) @ weight


def largest_eigenvalue(matrix: torch.Tensor) -> float:
    return torch.linalg.eigvalsh(matrix).abs().max().item()


@pytest.mark.parametrize(("distance", "tolerance"), [(0.01, 0.05), (1e-6, 1e-4)])
def test_a_lipschitz_step_divides_by_the_largest_eigenvalue_of_the_hessian(distance, tolerance, monkeypatch):
    monkeypatch.setattr(recoding, "CURVATURE_DISTANCE", distance)
    recoder = Recoder(signal=Surprisal(), step=LipschitzStep(share=1.5, num_iterations=150))
    network, window, state, drawn = case(recoder, is_training=False)
    with torch.no_grad():
        run = network(window, state, drawn, network.own)
        for step, row in itertools.product(range(T), range(B)):
            top = run.trace.tops[step][row]
            largest = largest_eigenvalue(hessian_of_nll(network.decoder_weight[0], network.decoder_bias[0], top))
            alphas = run.trace.alphas[step][:, row].tolist()
            assert alphas == pytest.approx([1.5 / largest] * 4, rel=tolerance)


def test_the_eigenvalue_of_a_signal_of_several_copies_is_of_all_of_them_together(monkeypatch):
    monkeypatch.setattr(recoding, "CURVATURE_DISTANCE", 1e-6)
    recoder = Recoder(signal=SIGNALS["variational"], step=LipschitzStep(num_iterations=300))
    network, window, state, drawn = case(recoder, is_training=False)
    with torch.no_grad():
        run = network(window, state, drawn, network.own)
    mask = drawn.decoder[0].double().view(K, B, H)

    def entropy(tops, row):
        logits = (tops.view(K, H) * mask[:, row]) @ network.decoder_weight[0].T + network.decoder_bias[0]
        mean = logits.softmax(-1).mean(0)
        return -(mean * mean.log()).sum()

    for row in range(B):
        tops = run.trace.tops[0].view(K, B, H)[:, row].flatten()
        hessian = torch.autograd.functional.hessian(lambda x, row=row: entropy(x, row), tops).detach()
        alphas = run.trace.alphas[0].view(4, K, B)[:, :, row]
        torch.testing.assert_close(alphas, torch.full_like(alphas, 1 / largest_eigenvalue(hessian)), rtol=1e-3, atol=0)


def test_delta_never_rises_with_a_step_up_to_twice_the_inverse_of_a_global_bound_on_the_curvature():
    """Theorem 1. The largest eigenvalue of diag p - p p^T is at most 1/2 (Gershgorin: 2 p (1 - p))."""
    network, window, state, drawn = case(Recoder(signal=Surprisal()), is_training=False)
    bound = torch.linalg.matrix_norm(network.decoder_weight[0].detach(), 2).item() ** 2 / 2
    rises = {}
    for share in (0.1, 1.0, 1.9, 2.0, 100.0):
        recoder = Recoder(signal=Surprisal(), step=FixedStep(size=share / bound))
        network, window, state, drawn = case(recoder, is_training=False)
        for attempt in range(20):
            torch.manual_seed(attempt)
            far = 3 * torch.randn_like(state)
            with torch.no_grad():
                run = network(window, far, drawn, network.own, measures_after=True)
            differences = torch.stack(run.trace.after) - torch.stack(run.trace.before)
            rises[share] = rises.get(share, 0) + int((differences > 0).sum())
    assert [rises[share] for share in (0.1, 1.0, 1.9, 2.0)] == [0] * 4
    assert rises[100.0] > 0


def recoding_gradients(network, window, state, drawn, recoder) -> torch.Tensor:
    """Of one token: how far the state goes with a step size of 1 (A R H)."""
    first = Window(window.inputs[:1], window.targets[:1])
    if drawn.embeddings is not None:
        between = [mask[:1] for mask in drawn.between]
        drawn = replace(drawn, embeddings=drawn.embeddings[:1], between=between, decoder=drawn.decoder[:1])
    states = []
    for size in (0.0, 1.0):
        step = recoder.model_copy(update={"step": FixedStep(size=size)})
        attached = replace(own(network, recoder), recoder=step, steps=make_steps(network.config, step, V))
        with torch.no_grad():
            states.append(network(first, state, drawn, attached).state)
    return states[0] - states[1]


def all_signs(num_activations: int, num_rows: int) -> torch.Tensor:
    """Directions of one token whose outer products sum to a multiple of the identity exactly (1 N A R H)."""
    count = num_rows * H
    rows = torch.from_numpy(hadamard(2 ** math.ceil(math.log2(count)))).double()[:, :count]
    return rows.view(-1, 1, num_rows, H).expand(-1, num_activations, -1, -1)[None]


@pytest.mark.parametrize("name", SEVERAL_SIGNALS)
def test_finite_differences_over_orthogonal_directions_are_the_gradient_up_to_the_squared_distance(name):
    exact = Recoder(signal=SIGNALS[name])
    network, window, state, drawn = case(exact, is_training=False)
    torch.manual_seed(5)
    expected = recoding_gradients(network, window, state, drawn, exact)
    drawn = replace(drawn, directions=all_signs(*expected.shape[:2]))
    errors = []
    for distance in (0.1, 0.05, 1e-4):
        recoder = Recoder(signal=SIGNALS[name], gradient=FiniteDifference(distance=distance))
        torch.manual_seed(5)  # of the probe
        found = recoding_gradients(network, window, state, drawn, recoder)
        errors.append((found - expected).norm().item())
    assert errors[2] < 1e-6 * expected.norm()
    assert errors[0] < 0.3 * expected.norm()
    assert 3.6 < errors[0] / errors[1] < 4.4


@pytest.mark.parametrize("name", SEVERAL_SIGNALS)
def test_one_direction_gives_the_derivative_along_it(name):
    recoder = Recoder(signal=SIGNALS[name], gradient=FiniteDifference(distance=1e-5))
    network, window, state, drawn = case(recoder, is_training=False)
    torch.manual_seed(5)
    exact = recoding_gradients(network, window, state, drawn, Recoder(signal=SIGNALS[name]))
    torch.manual_seed(5)
    found = recoding_gradients(network, window, state, drawn, recoder)
    z = drawn.directions[0, 0].double()
    copies = noise.num_copies(recoder)
    for activation, row in itertools.product(range(len(exact)), range(B)):
        rows = range(B) if name == "ensemble_released" else range(row, copies * B, B)
        slope = sum((z[activation, other] @ exact[activation, other]).item() for other in rows)
        for copy in range(row, copies * B, B):
            torch.testing.assert_close(found[activation, copy], slope * z[activation, copy], rtol=1e-5, atol=1e-9)


def test_the_mean_over_many_random_directions_approaches_the_gradient():
    """Entry j errs with the variance sum_{i != j} g_i^2 / N."""
    count = 200
    recoder = Recoder(signal=Surprisal(), gradient=FiniteDifference(num_directions=count, distance=1e-4))
    network, window, state, drawn = case(recoder, is_training=False)
    exact = recoding_gradients(network, window, state, drawn, Recoder(signal=Surprisal()))
    found = recoding_gradients(network, window, state, drawn, recoder)
    deviations = ((exact.square().sum(-1, keepdim=True) - exact.square()) / count).sqrt()
    scores = (found - exact) / deviations
    assert scores.abs().max() < 4.5
    assert 0.6 < scores.square().mean() < 1.5


def test_directions_are_fair_signs_each_by_itself():
    recoder = Recoder(gradient=FiniteDifference(num_directions=300))
    *_, drawn = case(recoder, is_training=False)
    assert drawn.directions.shape == (T, 300, 4, B, H)
    assert torch.equal(drawn.directions.abs(), torch.ones_like(drawn.directions))
    samples = drawn.directions.transpose(0, 1).reshape(300, -1)
    assert samples.mean().abs() < 5 / math.sqrt(samples.numel())
    products = samples.T @ samples / 300  # off the diagonal of mean 0 and variance 1 / 300
    products.fill_diagonal_(0)
    assert products.abs().max() < 5.5 / math.sqrt(300)


@pytest.mark.parametrize("not_finite", ["left", "one"])
def test_a_gradient_that_is_not_finite_leaves_its_activation_or_becomes_ones(not_finite, monkeypatch):
    """The third entry of row 1's gradient in the top h is NaN, and so is that of c, and all in the layer below."""
    size, read = 0.3, SurprisalSignal.read

    def broken(self, step, hidden):
        reading = read(self, step, hidden)
        gradient = reading.gradient.clone()
        gradient[1, 2] = math.nan
        return replace(reading, gradient=gradient)

    recoder = Recoder(signal=Surprisal(), step=FixedStep(size=size), not_finite=not_finite)
    network, window, state, drawn = case(recoder, is_training=False)
    window = Window(window.inputs[:1], window.targets[:1])
    plain = network(window, state, drawn).state
    with torch.no_grad():
        whole = network(window, state, drawn, network.own)
        monkeypatch.setattr(SurprisalSignal, "read", broken)
        run = network(window, state, drawn, network.own)
    expected = whole.state.clone()
    expected[:, 1] = plain[:, 1]
    if not_finite == "one":
        expected[:2, 1] = plain[:2, 1] - size
        for kept in (0, 1, 3, 4):
            expected[2:, 1, kept] = whole.state[2:, 1, kept]
        expected[2:, 1, 2] = plain[2:, 1, 2] - size
    torch.testing.assert_close(run.state, expected)
    is_finite = torch.stack(run.trace.norms).isfinite()[0]
    assert is_finite.tolist() == [[True, False, True]] * 4


def test_gradients_that_are_not_finite_are_counted_once_for_each_activation_of_a_token():
    """Twenty tokens, nineteen of them asked, in two streams: the last step of the second asks nothing."""
    recoder = Recoder(signal=Surprisal(), step=FixedStep(size=0.3))
    network, *_ = case(recoder)
    tokens = torch.randint(V, (20,))
    assert testing.score(network, tokens, network.own, 2, 1).num_not_finite == 0
    with torch.no_grad():
        network.decoder_weight[0, 0, 0] = math.inf
    score = testing.score(network, tokens, network.own, 2, 1)
    assert score.num_not_finite == 19 * 4


@pytest.mark.parametrize("gate", [Chance(probability=0), Threshold(min_delta=1e300)], ids=str)
@pytest.mark.parametrize("name", [name for name in SIGNALS if name != "variational"])
def test_behind_a_shut_gate_the_model_is_the_one_without_a_recoder(name, gate):
    recoder = Recoder(signal=SIGNALS[name], step=FixedStep(size=3.0), gate=gate)
    network, window, state, drawn = case(recoder)
    attached = own(network, recoder)
    shut, none = network(window, state, drawn, attached), network(window, state, drawn)
    is_open = replace(attached, recoder=recoder.model_copy(update={"gate": Recoder().gate}))
    opened = network(window, state, replace(drawn, gates=None), is_open)
    for part in ("loss", "nats", "state"):
        torch.testing.assert_close(getattr(shut, part), getattr(none, part), rtol=1e-10, atol=1e-12)
    assert (opened.state - none.state).abs().max() > 1e-3
    assert not torch.stack(shut.trace.gates).any()


def test_a_gate_by_batch_opens_for_all_rows_or_none_and_one_by_token_does_not():
    found = {}
    for each in ("batch", "token"):
        recoder = Recoder(signal=SIGNALS["variational"], gate=Chance(probability=0.4, each=each))
        network, *_ = case(recoder)
        window = Window(torch.randint(V, (200, B)), torch.randint(V, (200, B)))
        drawn = noise.draw(network.config, recoder, (200, B), V, torch.Generator().manual_seed(0), is_training=False)
        with torch.no_grad():
            run = network(window, network.zeros(B, recoder), drawn, network.own)
        found[each] = torch.stack(run.trace.gates)
        assert found[each].mean().item() == pytest.approx(0.4, abs=0.11)
        assert torch.equal(found[each].view(200, K, B), found[each][:, None, :B].expand(-1, K, -1))
    is_alike = {each: (gates == gates[:, :1]).all(1).double().mean().item() for each, gates in found.items()}
    assert is_alike["batch"] == 1
    assert is_alike["token"] == pytest.approx(0.4**B + 0.6**B, abs=0.1)


def test_a_threshold_lets_through_what_exceeds_it_and_nothing_behind_the_end_of_a_text():
    recoder = Recoder(signal=Surprisal(), step=FixedStep(size=0.3), gate=Threshold(min_delta=2.4))
    network, window, state, drawn = case(recoder)
    window.targets[2, 1] = NO_TARGET
    run = network(window, state, drawn, network.own)
    expected = [[float(delta > 2.4) for delta in row] for row in torch.stack(run.trace.before).tolist()]
    expected[2][1] = 0.0
    assert torch.stack(run.trace.gates).tolist() == expected
    assert 0 < sum(map(sum, expected)) < T * B - 1
    assert run.loss[2, 1] == run.nats[2, 1] == 0


STEPS = {
    "fixed": FixedStep(size=0.5),
    "learned": LearnedStep(start=0.5),
    "seen": PredictedStep(),
    "output": PredictedStep(source="output"),
    "lipschitz": LipschitzStep(share=0.5, num_iterations=2),
}
GRADIENTS = {"closed": ClosedForm(), "differences": FiniteDifference(num_directions=2)}


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["nll", "sigmoid_argmax", "mc_units", "ensemble", "variational", "probe_low"])
def test_a_test_without_a_graph_reads_what_training_reads(name, step, gradient):
    """Where nothing is kept, arrays are used again."""
    if (name, step) == ("probe_low", "output"):
        pytest.skip("a probe has no output distribution")
    recoder = Recoder(signal=SIGNALS[name], step=STEPS[step], gradient=GRADIENTS[gradient])
    network, window, state, drawn = case(recoder)
    attached = own(network, recoder)
    kept = network(window, state, drawn, attached, measures_after=True)
    with torch.no_grad():
        free = network(window, state, drawn, attached, measures_after=True)
    for part in ("loss", "nats", "state"):
        torch.testing.assert_close(getattr(free, part), getattr(kept, part).detach(), rtol=1e-9, atol=1e-12)
    for part in ("before", "after", "alphas", "norms"):
        torch.testing.assert_close(
            torch.stack(getattr(free.trace, part)),
            torch.stack(getattr(kept.trace, part)).detach(),
            rtol=1e-7,
            atol=1e-10,
        )


def test_step_sizes_start_where_they_are_told_to():
    network, *_ = case(None)
    network = Network(network.config.with_value("recoder", Recoder(step=LearnedStep(start=0.03))), V)
    sizes = [math.log1p(math.exp(theta)) for theta in network.steps.theta.tolist()]
    assert sizes == pytest.approx([0.03] * 4, rel=1e-5)
    released = Network(network.config.with_value("recoder.step.start", "released"), V)
    thetas = released.steps.theta.tolist()
    assert len(set(thetas)) == 4 and all(0 <= theta < 1 for theta in thetas)


def test_samples_of_variational_dropout_keep_their_masks_for_a_window():
    recoder = Recoder(signal=Variational(num_samples=K, rate=0.3))
    *_, drawn = case(recoder, is_training=False)
    parts = [drawn.embeddings, *drawn.between, drawn.decoder]
    assert all(torch.equal(part, part[:1].expand_as(part)) for part in parts)
    for part in [*parts, *drawn.recurrent]:
        assert part.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert not torch.equal(drawn.recurrent[0], drawn.recurrent[1])
