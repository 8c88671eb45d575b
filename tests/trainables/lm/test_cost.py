"""Costs by formula against the multiply-accumulates that ran, those in `nn.LSTM` too."""

from functools import partial

import pytest
import torch

from tests.trainables.lm import small_runs
from tests.trainables.lm.test_network import SIGNALS
from trainables.conditional.macs import count_macs
from trainables.lm import corpus, cost, noise
from trainables.lm.config import (
    AnchoredEnsemble,
    Dropout,
    FiniteDifference,
    LmConfig,
    Recoder,
    Surprisal,
    Variational,
    WeakSupervision,
)
from trainables.lm.gate_config import Chance, EntropyThreshold, Threshold
from trainables.lm.network import Network, Run, attach_recoder
from trainables.lm.step_config import FixedByLayer, FixedStep, LearnedStep, LipschitzStep, PredictedStep
from trainables.lm.streams import Window

T, B, E, H, V = 3, 4, 5, 6, 17
LSTM = 4 * H * (E + H) + 4 * H * (H + H)
RECODED = [name for name, signal in SIGNALS.items() if not isinstance(signal, WeakSupervision)]
STEPS = {
    "fixed": FixedStep(),
    "learned": LearnedStep(),
    "activation": PredictedStep(),
    "output": PredictedStep(source="output"),
    "lipschitz": LipschitzStep(num_iterations=3),
}


def config_for(recoder: Recoder | None, **changes: object) -> LmConfig:
    return LmConfig(embedding_size=E, hidden_size=H, recoder=recoder, dropout=Dropout(rate=0.2)).model_copy(
        update=changes
    )


def counted(config: LmConfig, recoder: Recoder | None, trains: bool) -> float:
    """Per token, by our counter."""
    return counted_with_share(config, recoder, trains)[0]


def counted_with_share(config: LmConfig, recoder: Recoder | None, trains: bool) -> tuple[float, float]:
    """Per token, by our counter, with the share of the tokens that were recoded."""
    total, run = ran(config, recoder, trains)
    share = run.trace.num_recoded() / (T * B) / noise.num_copies(recoder) if run.trace else 0.0
    return total / (T * B), share


def ran(config: LmConfig, recoder: Recoder | None, trains: bool) -> tuple[int, Run]:
    """What a window of random words multiplied, and its run.

    Inner products of rows, which are elementwise, are kept from our counter.
    """
    network = Network(config, V)
    attached = None
    if recoder is not None:
        attached = network.own if recoder == config.recoder else attach_recoder(network, recoder, 1)
    window = Window(torch.randint(V, (T, B)), torch.randint(V, (T, B)))
    drawn = noise.draw(config, recoder, (T, B), V, torch.Generator().manual_seed(0), is_training=trains)
    with pytest.MonkeyPatch.context() as patch, torch.set_grad_enabled(trains):
        patch.setattr(torch.linalg, "vecdot", lambda a, b: (a * b).sum(-1))
        with count_macs() as macs:
            run = network(window, network.zeros(B, recoder), drawn, attached)
            if trains:
                run.loss.mean().backward()
    return macs.total, run


def half_open(recoder: Recoder, trains: bool) -> Threshold:
    """A gate at the median of delta where all tokens are recoded."""
    torch.manual_seed(1)
    _, run = ran(config_for(recoder), recoder, trains)
    return Threshold(min_delta=float(torch.stack(run.trace.before).median()))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", RECODED)
def test_a_test_costs_what_has_run(name, step):
    config = config_for(Recoder(signal=SIGNALS[name], step=STEPS[step]))
    assert cost.macs_per_token(config, config.recoder, V) == counted(config, config.recoder, trains=False)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("name", RECODED)
def test_layers_cost_what_has_run(name, num_layers):
    config = config_for(Recoder(signal=SIGNALS[name], step=PredictedStep()), num_layers=num_layers)
    assert cost.macs_per_token(config, config.recoder, V) == counted(config, config.recoder, trains=False)


@pytest.mark.parametrize("name", RECODED)
def test_differences_cost_what_has_run(name):
    recoder = Recoder(signal=SIGNALS[name], gradient=FiniteDifference(num_directions=2))
    config = config_for(recoder, num_layers=3)
    assert cost.macs_per_token(config, recoder, V) == counted(config, recoder, trains=False)


GATES = {
    "by delta": half_open,
    "by entropy": lambda recoder, trains: EntropyThreshold(min_entropy=2.8117),
    "by chance": lambda recoder, trains: Chance(probability=0.4),
    "shut": lambda recoder, trains: Chance(probability=0),
}


def assert_counted_behind(name, step, gate, trains):
    recoder = Recoder(signal=SIGNALS[name], step=STEPS[step])
    recoder = recoder.model_copy(update={"gate": GATES[gate](recoder, trains)})
    torch.manual_seed(1)
    config = config_for(recoder)
    found, share = counted_with_share(config, config.recoder, trains)
    assert share == 0 if gate == "shut" else 0 < share < 1
    count = cost.training_macs_per_token if trains else partial(cost.macs_per_token, recoder=config.recoder)
    assert found == pytest.approx(count(config, vocabulary_size=V, share_recoded=share), rel=1e-12)


@pytest.mark.parametrize("trains", [False, True], ids=["test", "training"])
@pytest.mark.parametrize("gate", ["by delta", "by chance", "shut"])
@pytest.mark.parametrize("name", [name for name in RECODED if not name.endswith(("argmax", "printed"))])
def test_behind_a_gate_costs_are_what_has_run(name, gate, trains):
    assert_counted_behind(name, "learned", gate, trains)


@pytest.mark.parametrize("trains", [False, True], ids=["test", "training"])
@pytest.mark.parametrize("name", ["nll", "sigmoid", "inject"])
def test_behind_a_gate_by_the_outputs_entropy_costs_are_what_has_run(name, trains):
    assert_counted_behind(name, "learned", "by entropy", trains)


@pytest.mark.parametrize("trains", [False, True], ids=["test", "training"])
@pytest.mark.parametrize("step", ["fixed", "activation", "output", "lipschitz"])
@pytest.mark.parametrize("name", ["nll", "mc_units", "variational"])
def test_step_sizes_behind_a_gate_cost_what_has_run(name, step, trains):
    assert_counted_behind(name, step, "by chance", trains)


def test_a_gate_that_never_opens_leaves_the_cost_of_the_plain_model():
    """Of surprisal, whose logits are the output's; MC dropout reads its samples to know that delta is too small."""
    plain = cost.macs_per_token(config_for(None), None, V)
    shut = Recoder(gate=Threshold(min_delta=50))
    assert counted_with_share(config_for(shut), shut, trains=False) == (plain, 0)
    chance = Recoder(signal=SIGNALS["mc_units"], gate=Chance(probability=0))
    assert counted_with_share(config_for(chance), chance, trains=False) == (plain, 0)
    entropy = Recoder(signal=SIGNALS["mc_units"], gate=Threshold(min_delta=2.833))
    assert counted_with_share(config_for(entropy), entropy, trains=False) == (plain + 3 * H * V, 0)


def test_half_open_gates_by_hand():
    """2 x 650 and V = 10,000: half of the product with the decoder and of that with a layer's inputs."""
    config, plain = LmConfig(), 13_260_000
    added = 650 * 10_000 + 4 * 650 * 650
    gated = Recoder(gate=EntropyThreshold(min_entropy=5))
    assert cost.macs_per_token(config, gated, 10_000, 0.5) == plain + added / 2
    assert cost.macs_per_token(config, Recoder(), 10_000, 0.5) == plain + added
    training = cost.training_macs_per_token(config.with_value("recoder", gated), 10_000, 0.5)
    assert training == 3 * plain + 4 * 650 * 650 / 2  # the loss needs the decoder's product of every row


@pytest.mark.parametrize("gradient", [{"kind": "closed_form"}, {"kind": "finite_difference"}], ids=str)
@pytest.mark.parametrize("lowest", [0, 1, 2])
@pytest.mark.parametrize("name", ["nll", "variational"])
def test_below_the_lowest_layer_recoded_nothing_is_multiplied(name, lowest, gradient):
    step = FixedByLayer(h=(0,) * 3, c=tuple(float(layer >= lowest) for layer in range(3)))
    recoder = Recoder(signal=SIGNALS[name], step=step, gradient=gradient)
    config = config_for(None, num_layers=3).with_value("recoder", recoder)
    whole = config.with_value("recoder.step", FixedStep())
    found = counted(config, config.recoder, trains=False)
    assert cost.macs_per_token(config, config.recoder, V) == found
    if lowest or gradient != {"kind": "closed_form"}:
        assert found < counted(whole, whole.recoder, False)
    if gradient == {"kind": "closed_form"}:
        copies = noise.num_copies(config.recoder)
        assert cost.macs_per_token(whole, whole.recoder, V) - found == lowest * copies * 4 * H * H


@pytest.mark.parametrize("name", RECODED)
def test_a_recoder_for_a_model_trained_without_it_costs_what_has_run(name):
    config, recoder = config_for(None), Recoder(signal=SIGNALS[name])
    assert cost.macs_per_token(config, recoder, V) == counted(config, recoder, trains=False)


@pytest.mark.parametrize(
    ("recoder", "num_decoders"),
    [
        (None, 1),
        (Recoder(), 1),
        (Recoder(signal=Variational()), 1),
        (Recoder(signal=WeakSupervision()), 1),
        (Recoder(signal=AnchoredEnsemble(num_members=3)), 3),
        (Recoder(signal=AnchoredEnsemble(num_members=3, loss="mean_logits")), 1),
    ],
)
def test_without_a_recoder_it_is_the_layers_and_the_decoder_by_hand(recoder, num_decoders):
    """Two layers of 264 and 288, and a decoder of 102."""
    config = config_for(recoder)
    assert (LSTM, H * V) == (264 + 288, 102)
    assert cost.macs_per_token(config, None, V) == 264 + 288 + num_decoders * 102
    probe = Recoder(signal=WeakSupervision())
    assert cost.macs_per_token(config, probe, V) == cost.macs_per_token(config, None, V)


def test_a_plain_model_costs_what_has_run():
    config = config_for(None)
    assert cost.macs_per_token(config, None, V) == counted(config, None, trains=False)


@pytest.mark.parametrize("name", RECODED)
def test_training_costs_what_has_run(name):
    config = config_for(Recoder(signal=SIGNALS[name], step=LearnedStep()))
    assert cost.training_macs_per_token(config, V) == counted(config, config.recoder, trains=True)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["nll", "sigmoid", "inject", "mc_units", "variational"])
def test_training_with_any_step_costs_what_has_run(name, step):
    config = config_for(Recoder(signal=SIGNALS[name], step=STEPS[step]))
    assert cost.training_macs_per_token(config, V) == counted(config, config.recoder, trains=True)


@pytest.mark.parametrize("name", ["nll", "mc_units", "variational"])
def test_training_with_differences_costs_what_has_run(name):
    config = config_for(Recoder(signal=SIGNALS[name], gradient=FiniteDifference(num_directions=2)))
    assert cost.training_macs_per_token(config, V) == counted(config, config.recoder, trains=True)


@pytest.mark.parametrize("name", ["nll", "variational", "ensemble"])
def test_while_the_recoder_is_not_in_use_training_costs_what_has_run(name):
    """In plain epochs an ensemble has all its members, and variational dropout one copy of the state."""
    config = config_for(Recoder(signal=SIGNALS[name], step=PredictedStep()))
    assert cost.training_macs_per_token(config, V, None) == counted(config, None, trains=True)


@pytest.mark.parametrize("name", ["surprisal", "variational"])
def test_plain_epochs_report_the_cost_of_the_plain_model(tmp_path, name):
    cfg = small_runs.config_for(
        small_runs.write_text(tmp_path / "text.txt"), small_runs.RECODERS[name], num_plain_epochs=1
    )
    size = corpus.load(cfg.data).size
    plain = cost.training_macs_per_token(cfg.model_copy(update={"recoder": None}), size)
    reports = small_runs.trained(cfg, tmp_path).reports
    assert [reports[step]["train_macs_per_token"] for step in (0, 1)] == [plain, plain]
    assert reports[2]["train_macs_per_token"] == cost.training_macs_per_token(cfg, size) > plain


def test_training_a_plain_model_costs_three_times_its_forward_pass():
    """Each product has two in the backward pass, of its inputs and of its weights."""
    assert cost.training_macs_per_token(config_for(None), V) == 3 * (264 + 288 + 102)
    for step in (FixedStep(), PredictedStep()):  # a probe never runs on text
        probe = config_for(Recoder(signal=WeakSupervision(), step=step))
        assert cost.training_macs_per_token(probe, V) == 3 * (264 + 288 + 102)


def test_the_thesis_model_by_hand():
    """2 x 650 and V = 10,000: surprisal adds a product with the decoder and one with a layer's inputs."""
    config = LmConfig()
    plain = 4 * 650 * 1300 * 2 + 650 * 10_000
    assert cost.macs_per_token(config, None, 10_000) == plain == 13_260_000
    recoder = Recoder(signal=Surprisal())
    assert cost.macs_per_token(config, recoder, 10_000) == plain + 650 * 10_000 + 4 * 650 * 650
    training = cost.training_macs_per_token(config.with_value("recoder", recoder), 10_000)
    assert training == 3 * plain + 4 * 650 * 650
