import numpy as np
import pytest
import torch

from trainables.asr.config import AlwaysBig, AlwaysSmall, Learned, Random, Surprisal
from trainables.asr.controller import Control, choose, p_big, penalty
from trainables.conditional.surprisal_controller import SurprisalFit


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


@pytest.mark.parametrize(("routing", "expected"), [("stochastic", [True, False]), ("deterministic", [False, True])])
def test_the_routing_of_the_config_says_whether_draws_are_used(routing, expected):
    p, uniform = torch.tensor([[0.4, 0.6]]), torch.tensor([[0.3, 0.7]])
    assert choose(Control(Surprisal(), routing), p, uniform)[0].tolist() == expected


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
