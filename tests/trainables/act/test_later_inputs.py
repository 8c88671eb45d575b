"""What a network does at a step is decided without the inputs behind it."""

import pytest
import torch

from trainables.act.config import ActConfig, Adaptive, Difference, EarlyExit, Logic, PonderNet
from trainables.act.network import Network


@pytest.mark.parametrize(
    "halting",
    [Adaptive(max_updates=6, halting_bias=-0.5), PonderNet(max_updates=6), EarlyExit(max_updates=6)],
    ids=lambda halting: halting.kind,
)
def test_updates_and_outputs_of_a_step_use_no_input_that_comes_later(halting):
    torch.manual_seed(0)
    config = ActConfig(data=Logic(num_gates=3, num_vectors=5), cell="gru", hidden_size=9, halting=halting)
    network = Network(config).eval()
    inputs = torch.randint(2, (20, 5, network.sizes.num_inputs)).float()
    changed = torch.cat([inputs[:, :3], 1 - inputs[:, 3:]], dim=1)
    asked, lengths, draws = torch.ones(20, 5, dtype=torch.bool), torch.full((20,), 5), torch.rand(20, 5)
    rule = Difference(above=0.5) if isinstance(halting, EarlyExit) else None
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)  # or all steps are much alike
        one, other = (network(read, lengths, asked, None, draws, rule) for read in (inputs, changed))
    assert len(one.num_updates[:, :3].unique()) > 1
    assert torch.equal(one.num_updates[:, :3], other.num_updates[:, :3])
    assert not torch.equal(one.num_updates, other.num_updates)
    outputs = [run.log_probs.unflatten(0, (20, 5))[:, :3] for run in (one, other)]
    assert torch.equal(*outputs)
