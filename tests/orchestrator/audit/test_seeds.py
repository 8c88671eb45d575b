"""A seed that does not reach the first weights, a part of them, the order of the data or anything at all is found."""

import pytest
import torch
from torch import nn

from orchestrator.audit.first_steps import digests, first_steps, watch
from orchestrator.audit.seeds import EQUAL, ORDER, OTHER, WEIGHTS, of_checkpoints, of_first_weights, of_order, of_seeds
from trainables.prediction import Promises

NOTHING = Promises()
POSITIONS = torch.sin(torch.arange(32)[:, None] / 10 ** torch.arange(8))


class Frozen(nn.Module):
    """A part that is not trained, a table that no seed draws, and a readout."""

    def __init__(self, draw, shared):
        super().__init__()
        self.register_buffer("part", torch.randn(8, 8, generator=torch.Generator().manual_seed(0) if shared else draw))
        self.register_buffer("positions", POSITIONS)
        self.readout = nn.Linear(8, 8)
        with torch.no_grad():
            self.readout.weight.copy_(torch.randn(8, 8, generator=draw))
            self.readout.bias.zero_()

    def forward(self, x):
        return self.readout((x @ self.part).tanh() + self.positions[: len(x)])


def trained(seed, folder, weights=True, part=True, order=True, whole=False, noise=0.0, loose=False):
    """Reports, first checkpoint and first steps; `noise` that no seed decides; `whole`: all data in each step."""
    folder.mkdir(parents=True)
    model = Frozen(torch.Generator().manual_seed(seed if weights else 0), shared=not part)
    draw = torch.Generator().manual_seed(seed if order else 0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    handles, numbers, state = watch(folder), {}, {}
    for step in (1, 2):
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(0) if whole else draw)
        with torch.no_grad():
            model(torch.ones(16, 8))  # a validation is none of it
        loss = ((model.forward if loose else model)(x) - x.roll(1, 1)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        numbers[step, "loss"] = loss.item() + noise * torch.rand(()).item()
        state = state or {"model": {name: value.clone() for name, value in model.named_parameters()}, "step": 1}
    for handle in handles:
        handle.remove()
    return numbers, state, first_steps(folder)


def findings(tmp_path, promised=NOTHING, given=(), **planted):
    ones = [trained(seed, tmp_path / str(i), **planted) for i, seed in enumerate((1, 1, 2))]
    (first, ours, began), (again, *_), (other, theirs, other_began) = ones
    found = of_seeds(first, again, other)
    ended_later = first | {(3, "loss"): 0.5}  # on a busy machine
    assert of_seeds(ended_later, again, other) == found
    found += [of_first_weights(began, other_began, given, promised), of_order(began, other_began, promised)]
    return found, of_checkpoints(ours, theirs, promised)


@pytest.mark.parametrize(
    ("planted", "checks"),
    [
        ({}, []),
        ({"noise": 1.0}, [EQUAL]),
        ({"part": False}, [WEIGHTS]),
        ({"weights": False}, [WEIGHTS]),
        ({"weights": False, "loose": True}, [WEIGHTS]),
        ({"order": False}, [ORDER]),
        ({"whole": True}, []),
        ({"weights": False, "order": False}, [OTHER, WEIGHTS, ORDER]),
    ],
    ids=[
        "all",
        "a stream of nobody's",
        "a shared part",
        "shuffling alone",
        "a function",
        "no order",
        "whole",
        "nothing",
    ],
)
def test_what_a_seed_does_not_reach_is_found(tmp_path, planted, checks):
    found, by_checkpoints = findings(tmp_path, **planted)
    assert [one.check for one in found if one.result == "finding"] == checks
    assert (by_checkpoints.result == "finding") == (planted.get("weights") is False)


def test_what_is_shared_is_named_and_may_be_meant_or_come_from_a_prerequisite(tmp_path):
    found, _ = findings(tmp_path / "a", part=False)
    assert found[2].moved == "not Frozen.part: 1 of 2 weights are equal; draw them from `config.seed`"
    meant, _ = findings(tmp_path / "b", Promises(same_start=("part",), same_order=True), part=False, order=False)
    assert [one.result for one in meant] == ["ok", "ok", "ok", "not checked"]
    made_before = digests([("", torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))]).values()
    assert findings(tmp_path / "c", given=made_before, part=False)[0][2].result == "ok"


def test_first_weights_that_are_downloaded_are_not_checked(tmp_path):
    found, by_checkpoints = findings(tmp_path, Promises(same_start=True), weights=False)
    assert found[2] == by_checkpoints and by_checkpoints.why == "it is not promised (same_start=True)"


def test_what_numpy_does_not_know_is_read_too(tmp_path):
    handles, model = watch(tmp_path), nn.Linear(8, 8, dtype=torch.bfloat16)
    x = torch.ones(4, 8, dtype=torch.bfloat16)
    model(x).sum().backward()
    torch.optim.SGD(model.parameters()).step()
    for handle in handles:
        handle.remove()
    assert list(first_steps(tmp_path).read[0]) == ["Linear 0.0"]
