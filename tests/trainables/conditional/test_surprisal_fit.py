"""The fits against the scalars that made the moments, and the one-pass fits against a loop by hand."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from trainables.conditional.surprisal_fit import fit_in_one_pass, fit_surprisal, fit_with_mean


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


@pytest.mark.parametrize("sigma", [1.0, 1.5])
@pytest.mark.parametrize("sigma2", [0.06, 0.08])
def test_a_steep_controller_far_from_the_middle_is_found(sigma: float, sigma2: float):
    """Nine frames of ten go through the big network, of surprisals with a long tail."""
    surprisals = np.random.default_rng(0).lognormal(3, sigma, size=1500)
    fit = fit_surprisal(surprisals, 0.9, sigma2)
    assert (fit.mean_p, fit.var_p) == pytest.approx((0.9, sigma2), abs=1e-6)


def test_of_targets_out_of_reach_the_nearest_is_no_worse_than_a_grids():
    draws = np.random.default_rng(5)
    surprisals = np.r_[draws.normal(40, 1, 1350), np.full(150, 0.5)]
    fit = fit_surprisal(surprisals, 0.1, 0.2)
    loss = ((fit.mean_p - 0.1) ** 2 + (fit.var_p - 0.2) ** 2) / 2
    slopes, thresholds = np.meshgrid(np.geomspace(0.01, 30, 60), np.linspace(0, 45, 91))
    p = expit(slopes[..., None] * (surprisals - thresholds[..., None]))
    assert loss < 1.02 * (((p.mean(-1) - 0.1) ** 2 + (p.var(-1) - 0.2) ** 2) / 2).min()


def test_one_frame_alone_is_a_batch_too():
    """Such as the one utterance that is left over for the last batch."""
    fit = fit_in_one_pass([np.array([3.0])], 0.5, 0.04, "released", torch.Generator().manual_seed(1))
    assert np.isfinite([fit.w, fit.b, fit.mean_p, fit.var_p]).all()


def test_an_unattainable_variance_is_said_by_what_was_attained():
    """Also where the mean of equal numbers is no such number."""
    alike = np.full(1000, np.log(10))
    assert alike.std() > 0
    for surprisals in (np.full(100, 7.0), alike):
        for fit in (fit_surprisal(surprisals, mu=0.3, sigma2=0.04), fit_with_mean(surprisals, mu=0.3, sigma2=0.04)):
            assert fit.w == 0
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


@pytest.mark.parametrize("kind", ["paper", "released"])
def test_one_pass_is_that_of_the_sources(kind):
    """Batches of 32, rate .01, from w = .1 and b = -1; Adam (Kingma and Ba 2015) on the surprisal without its 1/2."""
    draws = np.random.default_rng(2)
    utterances = [draws.gamma(2.0, 1.0, size=int(draws.integers(3, 9))) for _ in range(70)]
    order = torch.randperm(70, generator=torch.Generator().manual_seed(3)).tolist()
    is_adam, point, first, second = kind == "released", np.array([0.1, -1.0]), np.zeros(2), np.zeros(2)
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
