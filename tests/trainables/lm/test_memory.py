"""Training keeps nothing of the windows behind it."""

import gc
from pathlib import Path

import pytest
import torch

from tests.trainables.lm.small_runs import config_for
from tests.trainables.lm.test_network import B, T, case
from trainables.lm import epoch_part
from trainables.lm.config import Recoder, SecondOrder
from trainables.lm.meters import Meters
from trainables.lm.network import Network
from trainables.lm.step_config import LearnedStep
from trainables.lm.streams import NO_TARGET, Streams


def alive() -> tuple[int, int]:
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
    return len(tensors), sum(tensor.numel() for tensor in tensors)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["closed_form", "second_order"])
def test_windows_leave_nothing_behind(text, monkeypatch, gradient):
    recoder = Recoder(step=LearnedStep(start=0.5), gradient={"kind": gradient})
    cfg = config_for(text, recoder, batch_size=16, window=4).with_value("hidden_size", 32)
    streams = Streams(torch.randint(300, (16 * 4 * 80 + 1,)), 16, 4)
    network, add, found = Network(cfg, 300), Meters.add, []

    def spy(self, *arguments):
        add(self, *arguments)
        if self.num_windows in (20, 80):
            found.append((*alive(), resident_bytes()))

    monkeypatch.setattr(Meters, "add", spy)
    for _ in range(2):  # the first time the allocator itself grows
        found.clear()
        epoch_part.train_part(cfg, network, streams, [5.0], network.zeros(16, None))
    assert len(found) == 2
    assert found[0][:2] == found[1][:2]
    assert found[1][2] - found[0][2] < 2_000_000


def test_training_does_not_keep_a_graph_of_its_metrics(text):
    recoder = Recoder(step=LearnedStep(start=0.5), gradient=SecondOrder())
    network, window, state, drawn = case(recoder)
    run = network(window, state, drawn, network.own)
    meters = Meters()
    meters.add(run, window.targets != NO_TARGET, T * B, 1.0)
    assert [name for name, value in meters._sums.items() if value.requires_grad] == []
