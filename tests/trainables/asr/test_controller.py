import numpy as np
import pytest
import torch
from scipy.special import expit

from trainables.asr.config import AlwaysBig, AlwaysSmall, Learned, Random, Surprisal
from trainables.asr.controller import Control, SurprisalFit, choose, p_big, penalty, threshold
from trainables.asr.controller_fit import fit_in_one_pass, fit_surprisal, fit_with_mean


def test_fit_finds_the_scalars_that_made_the_moments():
    surprisals = np.random.default_rng(0).gamma(2.0, 30.0, size=20_000)
    p = expit(0.021 * surprisals - 1.3)
    fit = fit_surprisal(surprisals, mu=float(p.mean()), sigma2=float(p.var()))
    assert fit.w == pytest.approx(0.021, rel=1e-4)
    assert fit.b == pytest.approx(-1.3, rel=1e-4)


@pytest.mark.parametrize(("mu", "sigma2"), [(0.5, 0.04), (0.65, 0.04), (0.2, 0.02), (0.8, 0.1)])
def test_fit_attains_the_targets_on_heavy_tails(mu: float, sigma2: float):
    surprisals = np.random.default_rng(1).lognormal(4, 1, size=10_000)
    fit = fit_surprisal(surprisals, mu, sigma2)
    p = expit(fit.w * surprisals + fit.b)
    assert (p.mean(), p.var()) == pytest.approx((mu, sigma2), abs=1e-6)
    assert (fit.mean_p, fit.var_p) == (p.mean(), p.var())
    assert fit.w > 0


def test_an_unattainable_variance_is_said_by_what_was_attained():
    fit = fit_surprisal(np.full(100, 7.0), mu=0.3, sigma2=0.04)
    assert fit.mean_p == pytest.approx(0.3)
    assert fit.var_p == pytest.approx(0.0, abs=1e-20)


def gradients(frames, w, b, mu, sigma2, is_unbiased):
    """Of equation 4 in w and b, by the chain rule."""
    p = 1 / (1 + np.exp(-(w * frames + b)))
    slope, n = p * (1 - p), len(frames)
    correction = n / (n - 1) if is_unbiased else 1
    from_mean, from_variance = p.mean() - mu, p.var() * correction - sigma2
    each = from_mean / n + from_variance * correction * 2 * (p - p.mean()) / n
    return np.array([(each * slope * frames).sum(), (each * slope).sum()])


@pytest.mark.parametrize("kind", ["one_pass_sgd", "one_pass_adam"])
def test_one_pass_is_that_of_the_sources(kind):
    """Batches of 32, rate .01, from w = .1 and b = -1; Adam (Kingma and Ba 2015) on the surprisal without its 1/2."""
    draws = np.random.default_rng(2)
    utterances = [draws.gamma(2.0, 1.0, size=int(draws.integers(3, 9))) for _ in range(70)]
    order = torch.randperm(70, generator=torch.Generator().manual_seed(3)).tolist()
    is_adam, point, first, second = kind == "one_pass_adam", np.array([0.1, -1.0]), np.zeros(2), np.zeros(2)
    for step, start in enumerate(range(0, 70, 32), start=1):
        frames = np.concatenate([utterances[i] for i in order[start : start + 32]]) * (2 if is_adam else 1)
        gradient = gradients(frames, *point, mu=0.5, sigma2=0.04, is_unbiased=is_adam)
        if is_adam:
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            gradient = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        point = point - 0.01 * gradient
    fit = fit_in_one_pass(utterances, 0.5, 0.04, kind, torch.Generator().manual_seed(3))
    assert (fit.w, fit.b) == pytest.approx((point[0] * (2 if is_adam else 1), point[1]), rel=1e-6)
    p = expit(fit.w * np.concatenate(utterances) + fit.b)
    assert (fit.mean_p, fit.var_p) == pytest.approx((p.mean(), p.var()))


@pytest.mark.parametrize("mu", [0.02, 0.98])
def test_a_mean_is_met_though_the_variance_is_out_of_reach(mu: float):
    """A variance of .04 needs mu (1 - mu) of at least .04; the nearest is that of a step, mu (1 - mu)."""
    surprisals = np.random.default_rng(0).gamma(2.0, 30.0, size=5000)
    assert abs(fit_surprisal(surprisals, mu, 0.04).mean_p - mu) > 0.005
    held = fit_with_mean(surprisals, mu, 0.04)
    assert held.mean_p == pytest.approx(mu, abs=1e-9)
    assert held.var_p == pytest.approx(mu * (1 - mu), rel=0.02)


def test_where_both_are_in_reach_holding_the_mean_changes_nothing():
    surprisals = np.random.default_rng(0).gamma(2.0, 30.0, size=5000)
    held, both = (fit(surprisals, 0.4, 0.04) for fit in (fit_with_mean, fit_surprisal))
    assert (held.w, held.b) == pytest.approx((both.w, both.b), rel=1e-4)


def test_p_big_of_each_controller():
    surprisals = torch.tensor([[0.0, 2.0]])
    fit = SurprisalFit(w=0.5, b=-1.0, mean_p=0.4, var_p=0.0)
    expected = [1 / (1 + np.e), 0.5]
    assert p_big(Control(Surprisal(), fit=fit), surprisals)[0].tolist() == pytest.approx(expected)
    assert p_big(Control(Random(p_big=0.25)), surprisals).tolist() == [[0.25, 0.25]]
    assert p_big(Control(AlwaysSmall()), surprisals).tolist() == [[0.0, 0.0]]
    assert p_big(Control(AlwaysBig()), surprisals).tolist() == [[1.0, 1.0]]
    with pytest.raises(ValueError, match="needs its fit"):
        p_big(Control(Surprisal()), surprisals)
    with pytest.raises(ValueError, match="decides by its gate"):
        p_big(Control(Learned()), surprisals)


def test_draws_at_the_ends_are_certain_and_decisions_strict():
    uniform = torch.tensor([[0.0, 0.999999, 0.3]])
    assert not choose(torch.zeros(1, 3), uniform, "stochastic").any()
    assert choose(torch.ones(1, 3), uniform, "stochastic").all()
    assert choose(torch.tensor([[0.5, 0.50001]]), uniform[:, :2], "deterministic").tolist() == [[False, True]]


def test_a_bias_is_raised_from_where_it_was_fitted_to_that_plus_four():
    """Appendix B: from b to b + 4, not to 4."""
    fit = SurprisalFit(w=0.5, b=-2.0, mean_p=0.4, var_p=0.04)
    assert [fit.raised(by).b for by in (0.0, 1.0, 2.0, 4.0)] == [-2.0, -1.0, 0.0, 2.0]
    assert fit.raised(4.0).w == 0.5


def test_threshold_passes_its_gradient_straight_through():
    """By definition d threshold(z) / dz := 1, whatever the sign of z."""
    logits = torch.tensor([-2.0, -0.1, 0.0, 0.1, 3.0], requires_grad=True)
    weights = torch.tensor([1.0, -2.0, 3.0, 5.0, -7.0])
    chosen = threshold(logits)
    (chosen * weights).sum().backward()
    assert chosen.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert torch.equal(logits.grad, weights)


USED = [[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 9.0, 9.0]]
LENGTHS = torch.tensor([4, 2])


@pytest.mark.parametrize(
    ("kind", "value", "gradient"),
    [
        (
            "corrected",
            10 * ((3 / 4 - 0.4) ** 2 + (1 / 2 - 0.4) ** 2),
            [[10 * 2 * 0.35 / 4] * 4, [10 * 2 * 0.1 / 2] * 2],
        ),
        ("paper", 10 * 6 * 0.25, [[10, 10, -10, 10], [-10, 10]]),
        ("released", 10 * 6 * 0.25 * 32, [[320, 320, -320, 320], [-320, 320]]),
    ],
)
def test_each_penalty_and_its_gradient_by_hand(kind, value, gradient):
    """Padding, filled with nines, counts for nothing; only the corrected gradient knows how much is used."""
    used = torch.tensor(USED, requires_grad=True)
    found = penalty(Learned(penalty=kind, weight=10.0, target=0.4), used, LENGTHS, batch_size=32)
    found.backward()
    assert found.item() == pytest.approx(value)
    for row, (expected, length) in enumerate(zip(gradient, LENGTHS.tolist(), strict=True)):
        assert used.grad[row, :length].tolist() == pytest.approx(expected, rel=1e-5)
        assert not used.grad[row, length:].any()


def test_only_the_corrected_gradient_knows_the_usage():
    """At 90 % and at 10 % usage: the paper's gradient of a frame is the same, the corrected one changes its sign."""
    gradients = {}
    for kind in ("paper", "corrected"):
        for usage in (9, 1):
            used = torch.tensor([[1.0] * usage + [0.0] * (10 - usage)], requires_grad=True)
            penalty(Learned(penalty=kind), used, torch.tensor([10]), batch_size=1).backward()
            gradients[kind, usage] = float(used.grad[0, 0])
    assert gradients["paper", 9] == gradients["paper", 1] > 0
    assert gradients["corrected", 9] == pytest.approx(-gradients["corrected", 1])
    assert gradients["corrected", 9] > 0
