"""A seed that does not reach the first weights, the order of the data or anything at all is found."""

import pytest
import torch
from torch import nn

from orchestrator.audit.seeds import EQUAL, OTHER, WEIGHTS, of_seeds


def trained(seed, weights=True, order=True, noise=0.0):
    """Reports and checkpoint of a few steps; `noise` that no seed decides."""
    draw = torch.Generator().manual_seed(seed if weights else 0)
    layer = nn.Linear(8, 8)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(8, 8, generator=draw))
        layer.bias.zero_()
    optimiser, draw = torch.optim.SGD(layer.parameters(), lr=0.1), torch.Generator().manual_seed(seed if order else 0)
    numbers = {}
    for step in (1, 2):
        x = torch.randn(16, 8, generator=draw)
        loss = (layer(x) - x.roll(1, 1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        numbers[step, "loss"] = loss.item() + noise * torch.rand(()).item()
    return numbers, {"layer": layer.state_dict(), "optimizer": optimiser.state_dict(), "step": 2}


@pytest.mark.parametrize(
    ("planted", "checks"),
    [
        ({}, []),
        ({"noise": 1.0}, [EQUAL]),
        ({"weights": False}, [WEIGHTS]),
        ({"weights": False, "order": False}, [OTHER, WEIGHTS]),
    ],
    ids=["all from the seed", "a stream of nobody's", "shuffling alone", "nothing"],
)
def test_what_a_seed_does_not_reach_is_found(planted, checks):
    (first, ours), (again, _), (other, theirs) = (trained(seed, **planted) for seed in (1, 1, 2))
    found = of_seeds(first, again, other, (ours, theirs))
    assert [one.check for one in found if one.result == "finding"] == checks
    ended_later = first | {(3, "loss"): 0.5}  # on a busy machine
    assert of_seeds(ended_later, again, other, (ours, theirs)) == found


def test_first_weights_that_are_downloaded_are_not_checked():
    (first, ours), (again, _), (other, theirs) = (trained(seed, weights=False) for seed in (1, 1, 2))
    found = {one.check: one for one in of_seeds(first, again, other, (ours, theirs), same_start=True)}
    assert found[WEIGHTS].why == "it is not promised (same_start=True)"
