"""Gates are decided by what is there when they are."""

import pytest
import torch

from trainables.lm import noise
from trainables.lm.config import AnchoredEnsemble, LmConfig, McDropout, Recoder, Surprisal
from trainables.lm.gate_config import EntropyThreshold, Threshold
from trainables.lm.network import Network
from trainables.lm.streams import Window


@pytest.mark.parametrize(
    ("signal", "gate", "is_known_before"),
    [
        (Surprisal(), Threshold(min_delta=4.6), False),
        (Surprisal(), EntropyThreshold(min_entropy=1.3), True),
        (AnchoredEnsemble(num_members=3), Threshold(min_delta=1.5), True),
        (McDropout(num_samples=3), Threshold(min_delta=1.75), True),
    ],
    ids=["surprisal", "entropy", "ensemble", "mc_dropout"],
)
def test_a_gate_uses_no_word_that_comes_later(signal, gate, is_known_before):
    """Nor, where it is known before the word, the word itself; what comes before turns gates."""
    torch.manual_seed(0)
    recoder = Recoder(signal=signal, gate=gate)
    config = LmConfig(embedding_size=5, hidden_size=6, recoder=recoder)
    network = Network(config, 17).eval()
    tokens = torch.randint(17, (9, 6))
    drawn = noise.draw(config, recoder, (8, 6), 17, torch.Generator().manual_seed(0), is_training=False)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(8)  # or all distributions are much alike

    def read(words):
        with torch.no_grad():
            run = network(Window(words[:-1], words[1:]), network.zeros(6, recoder), drawn, network.own)
        return torch.stack(run.trace.gates), run.nats

    gates, nats = read(tokens)
    assert 0.1 < gates.mean() < 0.9
    turned = 0
    for place in range(1, 9):
        changed = tokens.clone()
        changed[place] = (tokens[place] + 1 + torch.randint(16, (6,))) % 17
        other_gates, other_nats = read(changed)
        num_same = place if is_known_before else place - 1
        assert torch.equal(other_gates[:num_same], gates[:num_same])
        assert torch.equal(other_nats[: place - 1], nats[: place - 1])
        turned += int((other_gates[num_same:] != gates[num_same:]).sum())
    assert turned > 0
