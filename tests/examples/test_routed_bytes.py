"""Routed bytes: no choice and no probability knows later bytes, each byte runs one network, what is counted ran."""

import math

import pytest
import torch
from routed_bytes import cost, feed_forward, pretrain, sequences, text, train
from routed_bytes.byte_model import START, FrozenByteModel
from routed_bytes.config import Text
from routed_bytes.model import RoutedTransformer
from routed_bytes.sweeps import gpu, laptop

from orchestrator.worker.contract import check_contract
from ponderay import InputError
from tests.orchestrator.cli.test_main import call
from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError
from trainables.conditional.macs import count_macs
from trainables.conditional.route import mix

SMOKE = laptop("smoke")
CONDITIONS = [one.name for one in SMOKE.conditions]


def built(name: str):
    """An untrained model of the condition whose choices are mixed, and bytes to read."""
    torch.manual_seed(1)
    config = SMOKE.config(SMOKE.condition(name), 1)
    model = RoutedTransformer(config, FrozenByteModel(config.byte_model) if cost.asks_byte_model(config) else None)
    read = torch.randint(256, (6, config.model.context))
    if cost.asks_byte_model(config):
        model.fit_threshold(read)
    return config, model, read


def predicted(model, read):
    return model(read, torch.Generator().manual_seed(2))


def test_all_ways_of_choosing_are_there():
    kinds = [
        "always_small",
        "always_big",
        "random_25",
        "surprisal_25",
        "entropy_25",
        "learned_25",
        "top_k_25",
        "plain_25",
    ]
    assert kinds == CONDITIONS
    for sweep in (SMOKE, laptop("full"), gpu("smoke"), gpu("full")):
        check_contract(sweep)
    for sweep in (laptop("full"), gpu("full")):
        by_rate = {
            f"{kind}_{rate}" for kind in ("random", "surprisal", "entropy", "learned", "top_k") for rate in (25, 50)
        }
        fixed = {"always_small", "always_big", "plain_25", "plain_50"}
        assert {one.name for one in sweep.conditions} == fixed | by_rate
        assert [one.metric for one in sweep.objectives] == ["bits_per_byte", "macs_per_token"]
        assert len(sweep.seeds) == 5


@pytest.mark.parametrize("name", CONDITIONS)
def test_later_bytes_change_no_earlier_choice_or_probability(name):
    _, model, read = built(name)
    model.eval()
    for place in (0, 1, 7, 30):
        other = read.clone()
        other[:, place + 1 :] = torch.randint(256, other[:, place + 1 :].shape)
        one, two = predicted(model, read), predicted(model, other)
        assert torch.equal(one.chosen[..., : place + 1], two.chosen[..., : place + 1])
        torch.testing.assert_close(one.logits[:, : place + 1], two.logits[:, : place + 1])
        assert not torch.allclose(one.logits[:, place + 1 :], two.logits[:, place + 1 :])


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("name", CONDITIONS)
def test_counted_is_what_ran(name, is_training):
    config, model, read = built(name)
    model.train(is_training)
    with count_macs() as macs, torch.no_grad():
        big_share = predicted(model, read).chosen.double().mean().item()
    # of causal attention the pairs with later bytes are counted, too: T T where T (T + 1) / 2 are needed
    later = config.model.num_layers * config.model.width * (config.model.context - 1)
    counted = cost.training_macs_per_token if is_training else cost.macs_per_token
    assert macs.total == pytest.approx(read.numel() * (counted(config, big_share) + later), rel=1e-12)
    if not name.startswith(("always", "plain")):
        assert 0 < big_share < 1


@pytest.mark.parametrize("sweep", [SMOKE, laptop("full"), gpu("full")])
def test_a_plain_network_costs_what_surprisal_does_at_its_rate(sweep):
    plain = {one.name.removeprefix("plain_"): one for one in sweep.conditions if one.name.startswith("plain")}
    assert plain
    for percent, condition in plain.items():
        routed = sweep.config(sweep.condition(f"surprisal_{percent}"), 1)
        there = cost.macs_per_token(sweep.config(condition, 1), 1.0)
        assert there == pytest.approx(cost.macs_per_token(routed, int(percent) / 100), rel=0.01)


def test_what_is_passed_straight_through_trains_gates_alone():
    _, model, read = built("learned_25")
    predicted(model, read).penalty.backward()
    trained = {part for part, one in model.named_parameters() if one.grad is not None and one.grad.any()}
    assert trained == {f"layers.{i}.feed_forward.gate.{part}" for i in range(2) for part in ("weight", "bias")}


@pytest.mark.parametrize("name", CONDITIONS)
def test_routed_and_masked_agree_in_outputs_and_gradients(name, monkeypatch):
    _, model, read = built(name)
    weights = torch.randn(*read.shape, 256)
    found = []
    for is_masked in (False, True):
        if is_masked:
            monkeypatch.setattr(feed_forward, "route", lambda x, chosen, *both: mix(x, chosen.float(), *both))
        model.zero_grad()
        logits = predicted(model.eval(), read).logits
        (logits * weights).mean().backward()
        found.append([logits, *(p.grad for p in model.parameters() if p.grad is not None)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["surprisal_25", "entropy_25"])
def test_a_quarter_of_the_text_that_fits_the_threshold_is_above_it(name):
    _, model, read = built(name)
    assert model.told(read, torch.Generator()).float().mean() == pytest.approx(0.25, abs=0.01)


def test_surprisal_and_entropy_are_those_of_the_definition():
    torch.manual_seed(1)
    config = SMOKE.base
    model, (read,) = FrozenByteModel(config.byte_model), torch.randint(256, (1, 9)).tolist()
    measured, entropy = (one(torch.tensor([read]))[0] for one in (model.surprisal, model.entropy))
    for place in range(9):
        after = model(torch.tensor([read]))[0, place].softmax(0)
        assert entropy[place].item() == pytest.approx(-sum(p * math.log(p) for p in after.tolist()), rel=1e-5)
        if place < 8:
            assert measured[place + 1].item() == pytest.approx(-math.log(after[read[place + 1]].item()), rel=1e-5)


def test_the_text_with_nothing_before_it_has_a_probability_too():
    model = FrozenByteModel(SMOKE.base.byte_model)
    all_bytes = torch.arange(256)[:, None]
    assert (-model.surprisal(all_bytes)).exp().sum().item() == pytest.approx(1, rel=1e-5)


def pretrained(tmp_path, **changes):
    """The config, and its frozen model."""
    config = SMOKE.base.pretraining
    config = config.model_copy(update={"byte_model": config.byte_model.model_copy(update=changes)})
    pretrain.train(config, trial := FolderTrial(tmp_path / "byte_model"))
    return config, pretrain.load(config, trial.restore())


def test_what_stands_before_the_first_byte_is_trained(tmp_path, monkeypatch):
    gradients, descend = [], sequences.descend

    def watched(model, *rest):
        descend(model, *rest)
        gradients.append(model.embedding.weight.grad[START].abs().max().item())

    monkeypatch.setattr(sequences, "descend", watched)
    pretrained(tmp_path, num_steps=2)
    assert len(gradients) == 2
    assert min(gradients) > 0


def test_the_first_byte_surprises_as_its_frequency_says(tmp_path):
    config, model = pretrained(tmp_path, num_steps=400, length=16, batch_size=64)
    read = sequences.numbers(text.parts(config.text)["train"])
    shares = torch.bincount(read, minlength=256) / len(read)
    entropy = torch.special.entr(shares).sum().item()
    first = (shares * model.surprisal(torch.arange(256)[:, None])[:, 0]).sum().item()
    assert first == pytest.approx(entropy, abs=0.1)  # a cross-entropy: not below it
    later = model.surprisal(sequences.spread(read, 100, 32))[:, 8:].mean().item()
    assert later < first - 0.3


class _EnoughError(Exception):
    pass


def beginning(name, product, tmp_path, monkeypatch):
    """First weights and first batches of the condition's training."""
    config, weights, batches = SMOKE.config(SMOKE.condition(name), 1), {}, []
    draw, descend = sequences.drawn, sequences.descend

    def drawn(*arguments):
        batches.append(draw(*arguments))
        return batches[-1]

    def watched(model, *rest):
        if len(batches) == 1:
            weights.update({part: one.clone() for part, one in model.state_dict().items()})
        if len(batches) == 3:
            raise _EnoughError
        descend(model, *rest)

    with monkeypatch.context() as patch, pytest.raises(_EnoughError):
        patch.setattr(sequences, "drawn", drawn)
        patch.setattr(sequences, "descend", watched)
        train.train(config, FolderTrial(tmp_path / name, product=product))
    return weights, torch.stack(batches)


def test_all_conditions_of_a_seed_begin_with_equal_weights_and_read_equal_batches(tmp_path, monkeypatch):
    pretrained(tmp_path, num_steps=1)
    product = FolderTrial(tmp_path / "byte_model").restore()
    found = {name: beginning(name, product, tmp_path, monkeypatch) for name in CONDITIONS}
    shared, batches = found.pop("always_small")
    assert len(shared) > 20
    for name, (weights, read) in found.items():
        assert torch.equal(read, batches), name
        for part, one in shared.items():
            own = part == "threshold" or (name == "plain_25" and ".big." in part)
            assert own or torch.equal(weights[part], one), (name, part)


@pytest.mark.parametrize("name", ["random_25", "surprisal_25", "learned_25", "top_k_25"])
def test_a_replicate_that_was_cut_off_has_equal_digits(name, tmp_path):
    config = SMOKE.config(SMOKE.condition(name), 1)
    pretrain.train(config.pretraining, first := FolderTrial(tmp_path / "byte_model"))
    trials = [FolderTrial(tmp_path / one, product=first.restore()) for one in ("whole", "cut")]
    train.train(config, trials[0])
    trials[1].cut_after = 2
    with pytest.raises(InterruptedTrialError):
        train.train(config, trials[1])
    trials[1].cut_after = None
    train.train(config, trials[1])
    assert trials[1].reports == trials[0].reports
    assert list(trials[0].reports) == [2, 4, 6]
    for trial in trials:
        train.evaluate(config, trial.restore(), None, trial)
    assert trials[1].reports[6] == trials[0].reports[6]
    names = {one.name for one in train.metrics}
    assert {name for row in trials[0].reports.values() for name in row} <= names
    assert trials[0].reports[6]["bits_per_byte"] < 8.2


def test_sequences_of_a_text_predict_each_byte_once():
    batches = list(sequences.consecutive(torch.arange(22, dtype=torch.uint8), context=4, num_sequences=2))
    assert [batch[:, 1:].flatten().tolist() for batch in batches] == [
        list(range(1, 9)),
        list(range(9, 17)),
        list(range(17, 21)),
    ]


def test_sequences_are_spread_over_a_text_of_any_length():
    read = torch.zeros(2**24 + 11, dtype=torch.uint8)  # the last place, 2^24 + 3, is no float32
    read[-8:] = 1
    assert sequences.spread(read, 3, 8).sum(1).tolist() == [0, 0, 8]
    assert sequences.spread(torch.arange(10), 4, 4)[:, 0].tolist() == [0, 2, 4, 6]
    assert sequences.spread(torch.arange(4), 2, 4).tolist() == [[0, 1, 2, 3]] * 2


IMPOSSIBLE = {
    "heads": ("model.width", 10, "width must be a multiple of num_heads = 4, but got 10; give 8 or 12"),
    "fewer_units_than_heads": ("model.width", 3, "width must be a multiple of num_heads = 4, but got 3; give 4"),
    "big_is_small": (
        "model.small_width",
        512,
        "small_width must be less than big_width = 256, but got 512; lower it or raise big_width",
    ),
    "equal": (
        "model.big_width",
        32,
        "small_width must be less than big_width = 32, but got 32; lower it or raise big_width",
    ),
    "all_read": ("byte_model.length", 6, "length must be more than num_read = 6, but got 6; give at least 7"),
}


@pytest.mark.parametrize(("name", "value", "told"), IMPOSSIBLE.values(), ids=list(IMPOSSIBLE))
def test_impossible_models_are_refused_at_the_door(workplace, monkeypatch, capsys, name, value, told):
    assert call(monkeypatch, "plan", "routed_bytes.sweeps:laptop", "--set", f"{name}={value}") == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_text_that_is_not_there_is_told_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.delenv("PONDERAY_DATA", raising=False)
    with pytest.raises(InputError, match=r"No text is set; give `--set text.folder=PATH` or set PONDERAY_DATA"):
        text.fingerprint(Text(), 8)
    with pytest.raises(InputError, match=r"train.txt cannot be read: No such file or directory; give `--set text"):
        text.fingerprint(Text(folder=tmp_path), 8)
    for part in text.PARTS:
        (tmp_path / f"{part}.txt").write_bytes(b"abc")
    text.parts.cache_clear()
    with pytest.raises(InputError, match=r"The part train needs more than 8 bytes, but has 3"):
        text.fingerprint(Text(folder=tmp_path), 8)


def test_files_are_read_as_bytes(tmp_path):
    for part in text.PARTS:
        (tmp_path / f"{part}.txt").write_bytes(f"{part} ä".encode())
    found = text.parts(Text(folder=tmp_path, num_train_bytes=7, num_test_bytes=3))
    assert found == {"train": b"train \xc3", "valid": b"val", "test": b"tes"}
