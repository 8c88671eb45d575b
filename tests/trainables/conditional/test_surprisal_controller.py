"""What surprisal decides, and that a decision uses nothing that comes later."""

import pytest
import torch

from trainables.conditional.surprisal_controller import SurprisalFit, choose, p_big


def test_draws_at_the_ends_are_certain_and_decisions_strict():
    uniform = torch.tensor([[0.0, 0.999999, 0.3]])
    assert not choose(torch.zeros(1, 3), uniform).any()
    assert choose(torch.ones(1, 3), uniform).all()
    assert choose(torch.tensor([[0.5, 0.50001]])).tolist() == [[False, True]]


def test_a_bias_is_raised_from_where_it_was_fitted_to_that_plus_four():
    """Appendix B: from b to b + 4, not to 4."""
    fit = SurprisalFit(w=0.5, b=-2.0, mean_p=0.4, var_p=0.04)
    assert [fit.raised(by).b for by in (0.0, 1.0, 2.0, 4.0)] == [-2.0, -1.0, 0.0, 2.0]
    assert fit.raised(4.0).w == 0.5


FIT = SurprisalFit(w=0.5, b=-1.0, mean_p=0.4, var_p=0.0)


def test_the_probability_by_hand():
    """1 / (1 + e) and 1 / 2."""
    assert p_big(FIT, torch.tensor([0.0, 2.0])).tolist() == pytest.approx([1 / (1 + 2.718281828), 0.5])
    assert p_big(FIT, torch.zeros(2, 3, 4)).shape == (2, 3, 4)


def test_the_probability_has_the_gradient_of_finite_differences():
    assert torch.autograd.gradcheck(
        lambda one: p_big(FIT, one), torch.randn(6, dtype=torch.float64, requires_grad=True)
    )


def surprisals_of(tokens, logits_after):
    """Of each token under a predictor that has read the ones before it; the first is predicted from nothing."""
    before = torch.cat([torch.zeros(len(tokens), 1, logits_after.shape[-1]), logits_after[:, :-1]], dim=1)
    return -before.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_decision_uses_nothing_that_comes_later(is_drawn):
    """With a causal predictor: a change of token t may change decisions from t on, and changes some, none before."""
    table, fit = torch.randn(7, 7), SurprisalFit(w=3.0, b=-6.0, mean_p=0.5, var_p=0.2)
    tokens, uniform = torch.randint(7, (20, 9)), torch.rand(20, 9) if is_drawn else None
    decide = lambda tokens: choose(p_big(fit, surprisals_of(tokens, 2 * table[tokens])), uniform)  # noqa: E731
    before = decide(tokens)
    for t in range(9):
        changed = tokens.clone()
        changed[:, t:] = torch.randint(7, (20, 9 - t))
        assert torch.equal(decide(changed)[:, :t], before[:, :t])
        assert not torch.equal(decide(changed)[:, t:], before[:, t:])
