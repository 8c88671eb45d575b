"""Step sizes, finite differences, gradients that are not finite, and gates."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from scipy.linalg import hadamard

from tests.trainables.lm.signals.test_signals import SEVERAL_SIGNALS, softmax_by_hand
from tests.trainables.lm.test_network import SIGNALS, B, H, K, T, V, case, own
from trainables.lm import evaluation, noise, recoding
from trainables.lm.config import ClosedForm, FiniteDifference, Recoder, Surprisal, Variational
from trainables.lm.gate_config import Chance, Threshold
from trainables.lm.network import Network, make_steps
from trainables.lm.signals.surprisal import SurprisalSignal
from trainables.lm.step_config import FixedStep, LearnedStep, LipschitzStep, PredictedStep
from trainables.lm.streams import NO_TARGET, Window


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


def test_the_curvature_is_looked_at_a_hundredth_of_the_hidden_states_length_away(monkeypatch):
    """So a state that is ten times as long is moved ten times as far."""
    read, looks = SurprisalSignal.read, []

    def spy(self, step, hidden, *rest):
        looks.append(hidden[-1].clone())
        return read(self, step, hidden, *rest)

    monkeypatch.setattr(SurprisalSignal, "read", spy)
    recoder = Recoder(signal=Surprisal(), step=LipschitzStep(num_iterations=2))
    network, window, state, drawn = case(recoder, is_training=False)
    with torch.no_grad():
        network(window, state, drawn, network.own)
    assert len(looks) == 3 * T
    for number, one in enumerate(looks):
        if number % 3:
            first = looks[number - number % 3]
            torch.testing.assert_close((one - first).norm(dim=1), 0.01 * first.norm(dim=1))


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


@pytest.mark.parametrize("step", [FixedStep(size=0.3), LipschitzStep(), PredictedStep(source="output")])
def test_of_a_distribution_that_is_not_finite_nothing_is_followed_whatever_the_step(step):
    network, window, state, drawn = case(Recoder(step=step), is_training=False)
    with torch.no_grad():
        network.decoder_weight[0, 0, 0] = math.nan
        run = network(window, state, drawn, network.own)
        plain = network(window, state, drawn)
    assert not torch.stack(run.trace.norms).isfinite().any()
    torch.testing.assert_close(run.state, plain.state)


def test_gradients_that_are_not_finite_are_counted_once_for_each_activation_of_a_token():
    """Twenty tokens, nineteen of them asked, in two streams: the last step of the second asks nothing."""
    recoder = Recoder(signal=Surprisal(), step=FixedStep(size=0.3))
    network, *_ = case(recoder)
    tokens = torch.randint(V, (20,))
    assert evaluation.score(network, tokens, network.own, 2, 1).num_not_finite == 0
    with torch.no_grad():
        network.decoder_weight[0, 0, 0] = math.inf
    score = evaluation.score(network, tokens, network.own, 2, 1)
    assert score.num_not_finite == 19 * 4


def test_gradients_behind_a_shut_gate_are_not_counted():
    """Finite differences are computed in every row; as in training, they count only where it recodes."""
    network, window, state, drawn = case(Recoder(gate=Chance(probability=0.4), gradient=FiniteDifference()))
    run = network(window, state, drawn, network.own)
    assert evaluation.count_not_finite(run) == 0
    run.trace.norms = [torch.full_like(norms, math.nan) for norms in run.trace.norms]
    num_recoded = evaluation.count_recoded(run)
    assert 0 < num_recoded < T * B
    assert evaluation.count_not_finite(run) == num_recoded * 4


@pytest.mark.parametrize("kind", ["chance", "threshold"])
@pytest.mark.parametrize("name", [name for name in SIGNALS if name != "variational"])
def test_behind_a_shut_gate_the_model_is_the_one_without_a_recoder(name, kind):
    most = 0.4446 if name.startswith(("eq44", "sigmoid")) else 1e300
    gate = Chance(probability=0) if kind == "chance" else Threshold(min_delta=most)
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


@pytest.mark.parametrize("step", [LipschitzStep(num_iterations=2), PredictedStep(source="output")], ids=["l", "p"])
@pytest.mark.parametrize("name", ["nll", "eq44", "mc_units", "mc_weights", "mc_moments", "ensemble", "variational"])
@pytest.mark.parametrize("measures_after", [False, True], ids=["bare", "measured"])
def test_rows_left_out_are_as_rows_computed_and_not_moved(name, step, measures_after):
    """The same gates, drawn before, in front of an open recoder, which computes all rows."""
    recoder = Recoder(signal=SIGNALS[name], step=step, gate=Chance())
    network, window, state, drawn = case(recoder)
    whole = replace(network.own, recoder=recoder.model_copy(update={"gate": Recoder().gate}))
    with torch.no_grad():
        left_out = network(window, state, drawn, network.own, measures_after)
        masked = network(window, state, drawn, whole, measures_after)
    for part in ("loss", "nats", "state"):
        torch.testing.assert_close(getattr(left_out, part), getattr(masked, part), rtol=1e-10, atol=1e-12)
    gates = torch.stack(masked.trace.gates)
    assert torch.equal(torch.stack(left_out.trace.gates), gates) and 0 < gates.mean() < 1
    alphas = torch.stack(masked.trace.alphas) * gates[:, None]
    torch.testing.assert_close(torch.stack(left_out.trace.alphas), alphas, rtol=1e-10, atol=1e-12)


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
