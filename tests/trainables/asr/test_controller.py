import numpy as np
import pytest
import torch
from scipy.special import expit

from trainables.asr.config import AlwaysBig, AlwaysSmall, Random, Surprisal
from trainables.asr.controller import SurprisalFit, decide, draw, fit_surprisal, p_big


def test_fit_finds_the_scalars_that_made_the_moments():
    surprisals = np.random.default_rng(0).gamma(2.0, 30.0, size=20_000)
    p = expit(0.021 * surprisals - 1.3)
    fit = fit_surprisal(surprisals, Surprisal(mu=float(p.mean()), sigma2=float(p.var())))
    assert fit.w == pytest.approx(0.021, rel=1e-4)
    assert fit.b == pytest.approx(-1.3, rel=1e-4)


@pytest.mark.parametrize(("mu", "sigma2"), [(0.5, 0.04), (0.65, 0.04), (0.2, 0.02), (0.8, 0.1)])
def test_fit_attains_the_targets_on_heavy_tails(mu: float, sigma2: float):
    surprisals = np.random.default_rng(1).lognormal(4, 1, size=10_000)
    fit = fit_surprisal(surprisals, Surprisal(mu=mu, sigma2=sigma2))
    p = expit(fit.w * surprisals + fit.b)
    assert (p.mean(), p.var()) == pytest.approx((mu, sigma2), abs=1e-6)
    assert (fit.mean_p, fit.var_p) == (p.mean(), p.var())
    assert fit.w > 0


def test_an_unattainable_variance_is_said_by_what_was_attained():
    fit = fit_surprisal(np.full(100, 7.0), Surprisal(mu=0.3, sigma2=0.04))
    assert fit.mean_p == pytest.approx(0.3)
    assert fit.var_p == pytest.approx(0.0, abs=1e-20)


def test_p_big_of_each_controller():
    surprisals = torch.tensor([[0.0, 2.0]])
    fit = SurprisalFit(w=0.5, b=-1.0, mean_p=0.4, var_p=0.0)
    assert p_big(Surprisal(), surprisals, fit)[0].tolist() == pytest.approx([1 / (1 + np.e), 0.5])
    assert p_big(Random(p_big=0.25), surprisals, None).tolist() == [[0.25, 0.25]]
    assert p_big(AlwaysSmall(), surprisals, None).tolist() == [[0.0, 0.0]]
    assert p_big(AlwaysBig(), surprisals, None).tolist() == [[1.0, 1.0]]
    with pytest.raises(ValueError, match="needs its fit"):
        p_big(Surprisal(), surprisals, None)


def test_draws_at_the_ends_are_certain_and_decisions_strict():
    uniform = torch.tensor([[0.0, 0.999999, 0.3]])
    assert not draw(torch.zeros(1, 3), uniform).any()
    assert draw(torch.ones(1, 3), uniform).all()
    assert decide(torch.tensor([[0.5, 0.50001]])).tolist() == [[False, True]]
