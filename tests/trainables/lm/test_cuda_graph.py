"""A window's work on a CPU and, recorded, on a GPU."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.test_network import SIGNALS, B, T, V, config_for
from trainables.lm import noise, train
from trainables.lm.config import Dropout, LmConfig, McDropout, Recoder, Surprisal
from trainables.lm.cuda_graph import CudaGraph
from trainables.lm.network import Network
from trainables.lm.optimisation import Optimisation
from trainables.lm.step_config import FixedByLayer, FixedStep, LearnedStep, LipschitzStep, PredictedStep
from trainables.lm.streams import Window
from trainables.lm.text_config import Data, Vocabulary

RECODABLE = [name for name in SIGNALS if not name.startswith("probe")]


def learning(network):
    def work(window, state, drawn):
        run = network(window, state, drawn, network.own)
        run.loss.mean().backward()
        return run

    return work


def inputs(network, recoder, seed):
    device = network.decoder_weight.device
    generator = torch.Generator(device).manual_seed(seed)
    tokens = [torch.randint(V, (T, B), device=device, generator=generator) for _ in range(2)]
    state = torch.randn(network.zeros(B, recoder).shape, device=device, generator=generator)
    return Window(*tokens), state, noise.draw(network.config, recoder, (T, B), V, generator, is_training=True)


def gradients(network):
    return [parameter.grad.clone() for parameter in network.parameters()]


def test_gradients_of_a_call_are_not_added_to_those_of_the_last():
    recoder = Recoder(step=FixedStep(size=0.3))
    network = Network(config_for(recoder), V)
    graph = CudaGraph(learning(network), list(network.parameters()))
    graph(*inputs(network, recoder, 1))
    once = gradients(network)
    graph(*inputs(network, recoder, 1))
    assert all(torch.equal(a, b) for a, b in zip(once, gradients(network), strict=True))


@pytest.mark.parametrize(("masks", "is_drawn"), [("units", True), ("weights", False)])
def test_masks_of_units_are_drawn_before_a_window_and_recorded_also_of_a_process_share(masks, is_drawn):
    recoder = Recoder(signal=McDropout(num_samples=2, masks=masks))
    whole = noise.draw(config_for(recoder), recoder, (T, B), V, torch.Generator(), is_training=True)
    share = whole.streams(torch.tensor([2, 0]), B)
    assert (whole.is_drawn, share.is_drawn) == (is_drawn, is_drawn)
    if is_drawn:
        assert torch.equal(share.samples[1], whole.samples[1][:, [2, 0]])


STEPS = {
    "fixed_by_layer": FixedByLayer(h=(0.3, 0.2), c=(0.1, 0.4)),
    "learned": LearnedStep(),
    "predicted": PredictedStep(),
    "lipschitz": LipschitzStep(),
}


@pytest.mark.parametrize("step", STEPS)
def test_nothing_is_copied_to_a_gpu_in_a_window(step):
    """While a graph is recorded it is refused."""
    config, copies = config_for(recoder := Recoder(step=STEPS[step])), []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            found = function(*args, **(kwargs or {}))
            before = {one.device.type for one in args if isinstance(one, torch.Tensor)}
            if isinstance(found, torch.Tensor) and before and before != {found.device.type}:
                copies.append(str(function))
            return found

    drawn = noise.draw(config, recoder, (T, B), V, torch.Generator(), is_training=True)
    with FakeTensorMode(allow_non_fake_inputs=True):
        with torch.device("cuda"):
            network, tokens = Network(config, V), torch.zeros(T, B, dtype=torch.long)
        on_gpu = drawn.mapped(lambda one: torch.empty(one.shape, dtype=one.dtype, device="cuda"))
        with Watch():
            run = network(Window(tokens, tokens), network.zeros(B, recoder), on_gpu, network.own)
    assert run.loss.is_cuda and copies == []


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*RECODABLE, *STEPS])
def test_a_replayed_window_equals_an_unrecorded_one(name):
    recoder = Recoder(signal=SIGNALS.get(name, Surprisal()), step=STEPS.get(name, FixedStep(size=0.3)))
    network = Network(config_for(recoder), V).cuda()
    graph, work = CudaGraph(learning(network), list(network.parameters())), learning(network)
    for seed in (1, 2, 3):
        replayed = graph(*inputs(network, recoder, seed))
        found = [replayed.loss.clone(), replayed.state.clone(), *gradients(network)]
        network.zero_grad()
        run = work(*inputs(network, recoder, seed))
        expected = [run.loss, run.state, *gradients(network)]
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("recoder", "tolerance"),
    [(None, 1e-3), (Recoder(), 1e-3), (Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=0.05)), 2e-2)],
    ids=["none", "surprisal", "mc_dropout"],
)
def test_a_gpu_trains_as_a_cpu_does_and_half_precision_comes_close(recoder, tolerance, tmp_path, monkeypatch):
    """Masks of MC dropout come from another stream on a GPU: by small steps the losses still agree."""
    config = LmConfig(
        data=Data(vocabulary=Vocabulary(max_size=300), num_train_tokens=3000, num_validation_tokens=500),
        embedding_size=16,
        hidden_size=16,
        dropout=Dropout(rate=0.0),
        recoder=recoder,
        training=Optimisation(batch_size=8, num_epochs=2),
    )
    train.train(config, on_gpu := FolderTrial(tmp_path / "gpu"))
    train.train(config.with_value("training.precision", "bfloat16"), half := FolderTrial(tmp_path / "half"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    train.train(config, on_cpu := FolderTrial(tmp_path / "cpu"))
    last = on_cpu.reports[2]["valid_loss_nats"]
    assert on_gpu.reports[2]["valid_loss_nats"] == pytest.approx(last, rel=tolerance)
    assert half.reports[2]["valid_loss_nats"] == pytest.approx(last, rel=5e-2)
