"""Whole runs of very small models: equal to plain ones where they must be, resumable in all digits, metrics by hand."""

import csv
import gc
import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn import functional as F

from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states, untimed
from tests.trainables.lm.test_network import SIGNALS, B, T, case, gradients, own
from trainables import checkpoint, config, rng
from trainables.errors import DivergedError, InputError
from trainables.lm import corpus, noise, passage, testing, train
from trainables.lm.config import (
    AnchoredEnsemble,
    Chance,
    CutOnPlateau,
    Data,
    Dropout,
    Evaluation,
    FixedStep,
    HalveEachEpoch,
    LearnedStep,
    LmConfig,
    McDropout,
    OneFile,
    Optimisation,
    PredictedStep,
    Recoder,
    SecondOrder,
    Surprisal,
    Threshold,
    Variational,
    WeakSupervision,
)
from trainables.lm.metrics import METRICS
from trainables.lm.network import Network, attach
from trainables.lm.noise import Noise
from trainables.lm.schedule import learning_rate
from trainables.lm.streams import NO_TARGET, Streams
from trainables.lm.tally import Tally

RECODERS = {
    "surprisal": Recoder(step=LearnedStep(start=0.5)),
    "mc_dropout": Recoder(signal=McDropout(num_samples=3), step=FixedStep(size=0.5), gate=Chance()),
    "variational": Recoder(signal=Variational(num_samples=2), step=PredictedStep()),
}
ENSEMBLE = Recoder(signal=AnchoredEnsemble(num_members=2, prior_std=0.2, pull=0.5), step=FixedStep(size=0.5))
EVALUATED = {
    "perplexity",
    "test_loss_nats",
    "unknown_share",
    "num_not_finite",
    "macs_per_token",
    "eval_tokens_per_s",
    "valid_loss_nats",
    "valid_perplexity",
    "peak_memory_mb",
}
DELTAS = {"delta_before", "delta_after"}


def write_text(path: Path, num_lines: int = 50) -> Path:
    """Sentences in which one of twelve words often follows the one before; the last lines have words of their own."""
    draws, lines = random.Random(0), []
    for line in range(num_lines):
        words = [draws.randrange(12)]
        while len(words) < 6:
            words.append((words[-1] + 1) % 12 if draws.random() < 0.7 else draws.randrange(12))
        lines.append(" ".join(f"w{word}" for word in words) + (" new" if line >= num_lines - 2 else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


def config_for(path: Path, recoder: Recoder | None = None, **training: object) -> LmConfig:
    """Of about 15 windows an epoch."""
    quick = {"learning_rate": 2.0, "batch_size": 4, "window": 5, "num_epochs": 2} | training
    return LmConfig(
        data=Data(text=OneFile(path=path, validation_share=0.15, test_share=0.15, tokens="spaces")),
        embedding_size=6,
        hidden_size=8,
        dropout=Dropout(rate=0.2),
        recoder=recoder,
        training=Optimisation(**quick),
    )


def comparable(reports):
    """Without what depends on the clock, or on what the process did before."""
    kept = untimed(reports)
    return {step: {k: v for k, v in row.items() if k != "peak_memory_mb"} for step, row in kept.items()}


def trained(cfg: LmConfig, folder: Path, **trial: object) -> FolderTrial:
    train.train(cfg, found := FolderTrial(folder, **trial))
    return found


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="module")
def wholes(text, tmp_path_factory) -> dict[str, FolderTrial]:
    """Each model trained without a break."""
    return {
        name: trained(config_for(text, recoder, reports_per_epoch=2), tmp_path_factory.mktemp(name))
        for name, recoder in RECODERS.items()
    }


@pytest.fixture(scope="module")
def baseline(text, tmp_path_factory) -> FolderTrial:
    return trained(config_for(text), tmp_path_factory.mktemp("baseline"))


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes longer than all the rest."""
    monkeypatch.setattr(passage, "draw", lambda *_: [])


class PlainModel(nn.Module):
    """A language model as everyone writes it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        vocabulary_size, embedding_size = network.embedding.weight.shape
        hidden_size = network.decoder_weight.shape[2]
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.lstm = nn.LSTM(embedding_size, hidden_size, num_layers=2)
        self.decoder = nn.Linear(hidden_size, vocabulary_size)
        self.double()
        with torch.no_grad():
            self.embedding.weight.copy_(network.embedding.weight)
            self.decoder.weight.copy_(network.decoder_weight[0])
            self.decoder.bias.copy_(network.decoder_bias[0])
            for number, layer in enumerate(network.layers):
                for name, parameter in layer.named_parameters():
                    getattr(self.lstm, name.replace("_l0", f"_l{number}")).copy_(parameter)

    def losses(self, window, state):
        tops, _ = self.lstm(self.embedding(window.inputs), (state[::2].contiguous(), state[1::2].contiguous()))
        return F.cross_entropy(self.decoder(tops).flatten(0, 1), window.targets.flatten(), reduction="none")

    def named_gradients(self):
        found = {
            "embedding.weight": self.embedding.weight.grad,
            "decoder_weight": self.decoder.weight.grad[None],
            "decoder_bias": self.decoder.bias.grad[None],
        }
        for name, parameter in self.lstm.named_parameters():
            found[f"layers.{name[-1]}.{name[:-1]}0"] = parameter.grad
        return found


ONE_DECODER = {name: signal for name, signal in SIGNALS.items() if not isinstance(signal, AnchoredEnsemble)} | {
    "no_recoder": None,
    "variational": Variational(num_samples=3, rate=0.0),
    "one_member": AnchoredEnsemble(num_members=1),
}


@pytest.mark.parametrize("name", ONE_DECODER)
def test_with_a_step_of_0_it_is_a_plain_language_model_in_loss_and_all_gradients(name):
    signal = ONE_DECODER[name]
    recoder = Recoder(signal=signal, step=FixedStep(size=0)) if signal else None
    network, window, state, drawn = case(recoder, dropout=Dropout(rate=0))
    copies = noise.num_copies(recoder)
    state = state[:, :B].repeat(1, copies, 1)
    plain = PlainModel(network)
    run = network(window, state, drawn, own(network, recoder) if recoder else None)
    losses = plain.losses(window, state[:, :B]).view(T, B)
    torch.testing.assert_close(run.loss, losses, rtol=1e-12, atol=0)
    torch.testing.assert_close(run.nats, losses.detach(), rtol=1e-12, atol=0)
    found = gradients(network, run.loss.mean())
    losses.mean().backward()
    expected = plain.named_gradients()
    assert found.keys() == expected.keys()
    for gradient_name, gradient in expected.items():
        error = (found[gradient_name] - gradient).norm() / gradient.norm()
        assert error < 1e-12, gradient_name


@pytest.mark.parametrize(("recoder", "num_epochs"), [(None, 4), (RECODERS["surprisal"], 2)], ids=["plain", "surprisal"])
def test_a_repeated_sentence_is_learnt_by_heart(tmp_path, recoder, num_epochs, no_figures):
    path = tmp_path / "repeated.txt"
    path.write_text("the cat saw the dog\n" * 300)
    cfg = config_for(path, recoder, learning_rate=10.0, window=12, num_epochs=num_epochs)
    cfg = cfg.with_value("dropout.rate", 0).with_value("hidden_size", 16)
    trial = trained(cfg, tmp_path / "trial")
    assert trial.reports[0]["valid_perplexity"] > 4
    assert trial.reports[num_epochs]["valid_perplexity"] < 1.1
    path, tested = trial.folder / f"{num_epochs}.pt", FolderTrial(tmp_path / "tested")
    train.evaluate(cfg, path, Evaluation(batch_size=4), tested)
    assert 1 <= tested.reports[num_epochs]["perplexity"] < 1.1


@pytest.mark.parametrize("name", RECODERS)
def test_a_run_resumed_within_and_behind_an_epoch_equals_an_uninterrupted_one_in_all_digits(
    tmp_path, text, wholes, name
):
    cfg, reports = config_for(text, RECODERS[name], reports_per_epoch=2), {}
    for cut_after in (1, 2):
        with pytest.raises(InterruptedTrialError):
            train.train(cfg, cut := FolderTrial(tmp_path, cut_after=cut_after))
        reports |= cut.reports
    resumed = trained(cfg, tmp_path)
    assert sorted(resumed.reports) == [3, 4]
    assert comparable(reports | resumed.reports) == comparable(wholes[name].reports)
    assert_equal_states(tmp_path / "4.pt", wholes[name].folder / "4.pt")


def test_state_runs_on_through_an_epoch_and_starts_again_in_the_next(text, tmp_path, monkeypatch):
    """The state before each window is the one behind the window before, but for the first of an epoch."""
    cfg, seen = config_for(text, RECODERS["variational"], reports_per_epoch=2), []
    forward = Network.forward

    def spy(self, window, state, *others, **more):
        run = forward(self, window, state, *others, **more)
        if self.training:
            seen.append((state.clone(), run.state))
        return run

    monkeypatch.setattr(Network, "forward", spy)
    trained(cfg, tmp_path)
    num_windows = Streams(corpus.load(cfg.data).train, 4, 5).num_windows
    assert len(seen) == 2 * num_windows
    for index, (before, _) in enumerate(seen):
        if index % num_windows == 0:
            assert not before.any()
        else:
            assert before.any() and torch.equal(before, seen[index - 1][1])


@pytest.mark.parametrize("name", RECODERS)
def test_reports_come_before_training_and_at_even_distances_with_known_metrics(wholes, text, name):
    reports, names = wholes[name].reports, {metric.name for metric in METRICS}
    assert list(reports) == [0, 1, 2, 3, 4]
    assert train.num_steps(config_for(text, RECODERS[name], reports_per_epoch=2)) == 4
    assert set(reports[0]) == {"valid_loss_nats", "valid_perplexity", "peak_memory_mb", "train_macs_per_token"}
    kinds = [f"{kind}_{layer}" for layer in (1, 2) for kind in "hc"]
    expected = {f"step_size_{kind}" for kind in kinds} | {f"recoding_norm_{kind}" for kind in kinds}
    expected |= {"train_loss_nats", "train_perplexity", "train_delta", "train_not_finite", "learning_rate"}
    expected |= {"gradient_norm", "train_tokens_per_s"}
    assert set(reports[4]) == set(reports[0]) | expected <= names
    assert all(math.isfinite(value) for row in reports.values() for value in row.values())
    assert reports[4]["train_perplexity"] < reports[1]["train_perplexity"]
    assert all(row["valid_perplexity"] == math.exp(row["valid_loss_nats"]) for row in reports.values())


def nats_by_hand(weights: dict[str, np.ndarray], tokens: list[int]) -> list[float]:
    """-log p of every token but the first, one after another, in NumPy and float64."""

    def sigmoid(values):
        return 1 / (1 + np.exp(-values))

    size, nats = weights["layers.0.weight_hh_l0"].shape[1], []
    state = [(np.zeros(size), np.zeros(size)) for _ in range(2)]
    for token, following in itertools.pairwise(tokens):
        values = weights["embedding.weight"][token]
        for number, (h, c) in enumerate(state):
            part = {name: weights[f"layers.{number}.{name}_l0"] for name in ("weight_ih", "weight_hh")}
            bias = weights[f"layers.{number}.bias_ih_l0"] + weights[f"layers.{number}.bias_hh_l0"]
            i, f, g, o = np.split(part["weight_ih"] @ values + part["weight_hh"] @ h + bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            values = sigmoid(o) * np.tanh(c)
            state[number] = (values, c)
        logits = weights["decoder_weight"][0] @ values + weights["decoder_bias"][0]
        nats.append(float(np.log(np.exp(logits).sum()) - logits[following]))
    return nats


def test_perplexity_of_one_stream_is_that_of_reading_one_token_after_another(baseline, text, tmp_path):
    """Also the tests' names, the share of unknown words and the passage's table and figure."""
    cfg = config_for(text)
    evaluation = Evaluation(name="alone", batch_size=1)
    train.evaluate(cfg, baseline.folder / "2.pt", evaluation, tested := FolderTrial(tmp_path))
    saved = checkpoint.load(baseline.folder / "2.pt")["network"]
    weights = {name: tensor.double().numpy() for name, tensor in saved.items()}
    found, parts = corpus.load(cfg.data), {}
    for part in ("validation", "test"):
        nats = nats_by_hand(weights, getattr(found, part).tolist())
        parts[part] = sum(nats) / len(nats)
    metrics = tested.reports[2]
    assert set(metrics) == EVALUATED <= {metric.name for metric in METRICS}
    assert metrics["test_loss_nats"] == pytest.approx(parts["test"], rel=1e-6)
    assert metrics["perplexity"] == pytest.approx(math.exp(parts["test"]), rel=1e-6)
    assert metrics["valid_perplexity"] == pytest.approx(math.exp(parts["validation"]), rel=1e-6)
    assert metrics["unknown_share"] == 2 / (7 * 7 + 2)
    assert metrics["num_not_finite"] == 0
    assert metrics["peak_memory_mb"] > 50
    with (tmp_path / "passage_alone.csv").open() as file:
        rows = list(csv.DictReader(file))
    words = found.test[:40].tolist()
    assert [row["word"] for row in rows] == [found.words[token] for token in words]
    bits = [nats / math.log(2) for nats in nats_by_hand(weights, [found.index["<eos>"], *words])]
    for column in ("bits_before", "bits_after"):
        assert [float(row[column]) for row in rows] == pytest.approx(bits, rel=1e-4)
    assert (tmp_path / "passage_alone.png").read_bytes().startswith(b"\x89PNG")


def test_the_last_report_validates_what_the_checkpoint_holds(baseline, text, tmp_path, no_figures):
    cfg = config_for(text)
    train.evaluate(cfg, baseline.folder / "2.pt", Evaluation(batch_size=4), tested := FolderTrial(tmp_path))
    assert tested.reports[2]["valid_loss_nats"] == baseline.reports[2]["valid_loss_nats"]


def test_streams_of_which_one_ends_early_have_the_perplexity_of_all_tokens(baseline, text, tmp_path, no_figures):
    """Each stream starts from zeros with the token before its first; by hand, stream by stream."""
    cfg = config_for(text)
    train.evaluate(cfg, baseline.folder / "2.pt", Evaluation(batch_size=7), tested := FolderTrial(tmp_path))
    saved = checkpoint.load(baseline.folder / "2.pt")["network"]
    weights = {name: tensor.double().numpy() for name, tensor in saved.items()}
    tokens = corpus.load(cfg.data).test.tolist()
    length = math.ceil((len(tokens) - 1) / 7)
    assert (len(tokens) - 1) % 7
    nats = [x for start in range(0, 7 * length, length) for x in nats_by_hand(weights, tokens[start:][: length + 1])]
    assert len(nats) == len(tokens) - 1
    assert tested.reports[2]["test_loss_nats"] == pytest.approx(sum(nats) / len(nats), rel=1e-6)


@pytest.mark.parametrize(
    ("recoder", "is_recoded", "is_same"),
    [
        ("own", False, True),
        ("none", False, True),
        (Recoder(signal=McDropout(num_samples=4), step=FixedStep(size=0.1)), True, False),
        (Recoder(signal=AnchoredEnsemble(num_members=3), step=FixedStep(size=0.1)), True, False),
        (Recoder(step=LearnedStep(start=0.7)), True, False),
        (Recoder(step=FixedStep(size=0)), True, True),
        (Recoder(signal=WeakSupervision()), False, True),
    ],
    ids=["own", "none", "mc_dropout", "ensemble", "surprisal", "still", "probe"],
)
def test_a_baseline_is_tested_with_any_recoder(baseline, text, tmp_path, recoder, is_recoded, is_same, no_figures):
    cfg, found = config_for(text), []
    for one in (recoder, "none"):
        evaluation = Evaluation(recoder=one, batch_size=4)
        train.evaluate(cfg, baseline.folder / "2.pt", evaluation, tested := FolderTrial(tmp_path))
        found.append(tested.reports[2])
    assert set(found[0]) == EVALUATED | (DELTAS if is_recoded else set())
    if is_same:
        assert found[0]["test_loss_nats"] == pytest.approx(found[1]["test_loss_nats"], rel=1e-6)
    else:
        assert abs(found[0]["test_loss_nats"] - found[1]["test_loss_nats"]) > 1e-5
        assert found[0]["delta_after"] < found[0]["delta_before"]
    if isinstance(recoder, Recoder) and isinstance(recoder.signal, Surprisal):
        assert found[0]["delta_before"] == pytest.approx(found[0]["test_loss_nats"], rel=1e-6)
    assert (found[0]["macs_per_token"] > found[1]["macs_per_token"]) == is_recoded


def test_members_of_an_ensemble_around_one_decoder_have_the_priors_spread(text):
    torch.manual_seed(0)
    network = Network(config_for(text), 2000)
    members = attach(network, Recoder(signal=AnchoredEnsemble(num_members=3, prior_std=0.3)), 1).members
    distances = members.weight - network.decoder_weight
    assert distances.std().item() == pytest.approx(0.3, rel=0.02)
    assert distances.mean(0).std().item() == pytest.approx(0.3 / math.sqrt(3), rel=0.02)
    assert (members.bias - network.decoder_bias).std().item() == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("name", ["surprisal", "variational"])
def test_without_its_recoder_a_model_is_one_that_never_had_any(wholes, text, tmp_path, name, no_figures):
    path, evaluation = wholes[name].folder / "4.pt", Evaluation(recoder="none", batch_size=4)
    saved = checkpoint.load(path)
    network = {key: value for key, value in saved["network"].items() if not key.startswith("steps.")}
    assert len(network) < len(saved["network"])
    bare = checkpoint.save(tmp_path / "bare.pt", saved | {"network": network})
    cases = [(RECODERS[name], path), (None, bare)]
    found = []
    for recoder, checkpoint_path in cases:
        tested = FolderTrial(tmp_path / "tested")
        train.evaluate(config_for(text, recoder), checkpoint_path, evaluation, tested)
        found.append(comparable(tested.reports)[4])
    assert found[0] == found[1]
    train.evaluate(config_for(text, RECODERS[name]), path, Evaluation(batch_size=4), own := FolderTrial(tmp_path))
    assert own.reports[4]["test_loss_nats"] != found[0]["test_loss_nats"]


@pytest.mark.parametrize("recoder", [None, RECODERS["surprisal"], ENSEMBLE], ids=["none", "surprisal", "ensemble"])
def test_state_runs_on_over_windows_of_a_test(text, recoder):
    found = {}
    for window in (5, 50):
        cfg = config_for(text, recoder, window=window)
        torch.manual_seed(0)
        network = Network(cfg, corpus.load(cfg.data).size)
        with torch.no_grad():
            for parameter in network.layers.parameters():
                parameter.mul_(3)
        score = testing.score(network, corpus.load(cfg.data).test, network.own, 2, 1)
        found[window] = [score.loss_nats] + ([score.before, score.after] if recoder else [])
    assert found[5] == pytest.approx(found[50], rel=1e-6)


def test_delta_is_measured_over_the_first_windows_only(text, monkeypatch):
    cfg = config_for(text, Recoder(step=FixedStep(size=0.5)), window=3)
    torch.manual_seed(0)
    network = Network(cfg, 14)
    tokens = torch.randint(14, (31,))  # 15 steps of two streams
    monkeypatch.setattr(testing, "NUM_MEASURED_WINDOWS", 2)
    score = testing.score(network, tokens, network.own, 2, 1)
    with torch.no_grad():
        window = Streams(tokens, 2, 6).window(0)
        run = network(window, network.zeros(2, None), Noise(), network.own, measures_after=True)
    assert score.before == pytest.approx(run.nats.mean().item(), rel=1e-6)
    assert score.before != pytest.approx(score.loss_nats, rel=1e-4)
    assert score.after == pytest.approx(torch.stack(run.trace.after).mean().item(), rel=1e-6)


@pytest.mark.parametrize("name", RECODERS)
def test_epochs_without_the_recoder_are_those_of_a_model_that_has_none(text, baseline, tmp_path, name):
    cfg = config_for(text, RECODERS[name], num_plain_epochs=1)
    late, plain = (comparable(trial.reports) for trial in (trained(cfg, tmp_path), baseline))
    for metric in ("train_loss_nats", "train_perplexity", "gradient_norm", "learning_rate"):
        assert late[1][metric] == plain[1][metric]
    assert "train_delta" not in late[1] and "train_delta" in late[2]
    assert late[2]["train_loss_nats"] != plain[2]["train_loss_nats"]
    with_steps = checkpoint.load(tmp_path / "1.pt")["network"]
    for key, value in checkpoint.load(baseline.folder / "1.pt")["network"].items():
        assert torch.equal(with_steps[key], value), key


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5.0], 20.0),
        ([5.0, 4.0], 20.0),
        ([5.0, 4.0, 4.0], 10.0),
        ([5.0, 4.0, 4.5, 3.0], 10.0),
        ([5.0, 4.0, 4.5, 4.2], 5.0),
        ([5.0, 6.0, 5.5, 5.2, 5.1], 1.25),
    ],
)
def test_the_learning_rate_is_halved_after_an_epoch_without_improvement(losses, expected):
    assert learning_rate(Optimisation(schedule=HalveEachEpoch()), losses) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [([5, 9, 4, 9], 20), ([5, 9, 4, 3, 4.5], 10), ([5, 6, 6, 6, 5, 6], 5), ([5, 1, 6], 10)],
)
def test_validations_within_an_epoch_do_not_halve_it(losses, expected):
    training = Optimisation(reports_per_epoch=2)
    assert learning_rate(training, [float(loss) for loss in losses]) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5], 20),
        ([5, 6], 20),
        ([5, 6, 6], 5),
        ([5, 6, 4, 4], 5),
        ([5, 6, 6, 6], 5),
        ([5, 6, 6, 6, 6], 1.25),
        ([5, 4, 3, 2], 20),
    ],
)
def test_the_learning_rate_is_quartered_at_every_second_validation_without_improvement(losses, expected):
    training = Optimisation(schedule=CutOnPlateau(), reports_per_epoch=3)
    assert learning_rate(training, [float(loss) for loss in losses]) == expected


def test_training_goes_on_with_the_learning_rate_of_its_schedule(text, tmp_path, monkeypatch):
    losses = iter([5.0, 4.0, 4.5, 4.2, 1.0])
    monkeypatch.setattr(testing, "score", lambda *_: testing.Score(next(losses), 1.0, 0, None, None))
    trial = trained(config_for(text, num_epochs=4), tmp_path)
    assert [trial.reports[step]["learning_rate"] for step in (1, 2, 3, 4)] == [2, 2, 1, 0.5]


def test_a_huge_learning_rate_stops_with_its_window(text, tmp_path):
    with pytest.raises(DivergedError, match=r"gradient is (nan|inf) at window \d+ of epoch 1\b"):
        train.train(config_for(text, learning_rate=3e38, max_gradient_norm=100.0), FolderTrial(tmp_path))


def test_seeds_differ_and_a_seed_repeats(text, wholes, tmp_path):
    cfg = config_for(text, RECODERS["mc_dropout"], reports_per_epoch=2)
    again, other = FolderTrial(tmp_path / "again", cut_after=1), FolderTrial(tmp_path / "other", cut_after=1)
    for seed, trial in ((1, again), (2, other)):
        with pytest.raises(InterruptedTrialError):
            train.train(cfg.with_value("seed", seed), trial)
    first = comparable(wholes["mc_dropout"].reports)
    assert comparable(again.reports) == {step: first[step] for step in (0, 1)}
    for step, metric in ((0, "valid_loss_nats"), (1, "train_loss_nats")):
        assert other.reports[step][metric] != first[step][metric]


def test_tests_with_other_seeds_draw_other_masks(wholes, text, tmp_path, no_figures):
    cfg, found = config_for(text, RECODERS["mc_dropout"]), []
    for seed in (1, 1, 2):
        trial = FolderTrial(tmp_path)
        train.evaluate(cfg, wholes["mc_dropout"].folder / "4.pt", Evaluation(seed=seed), trial)
        found.append(trial.reports[4]["delta_before"])
    assert found[0] == found[1] != found[2]


def test_step_sizes_do_not_decay(text, tmp_path):
    """Behind a gate that is always shut they get no gradient, and only decay could move them."""
    recoder = Recoder(step=LearnedStep(start=0.5), gate=Chance(probability=0))
    cfg = config_for(text, recoder, weight_decay=0.05, num_epochs=1)
    trained(cfg, tmp_path)
    first, last = (checkpoint.load(tmp_path / f"{step}.pt")["network"] for step in (0, 1))
    assert torch.equal(first["steps.theta"], last["steps.theta"])
    assert last["decoder_weight"].norm() < 0.5 * first["decoder_weight"].norm()


def test_a_window_of_an_ensemble_is_one_step_down_the_mean_loss_and_the_pull_by_hand(text, tmp_path):
    """Away from the anchors, in one window that is the whole epoch, cut to the greatest norm."""
    cfg = config_for(text, ENSEMBLE, window=10_000, learning_rate=3.0, max_gradient_norm=0.05)
    cfg = cfg.with_value("dropout.rate", 0)
    found = corpus.load(cfg.data)
    streams = Streams(found.train, 4, 10_000)
    torch.manual_seed(0)
    network, expected = Network(cfg, found.size), Network(cfg, found.size)
    with torch.no_grad():
        network.decoder_weight += 0.5
        network.decoder_bias -= 0.3 * torch.rand_like(network.decoder_bias)
    expected.load_state_dict(network.state_dict())
    metrics, _ = train._train_part(cfg, network, streams, [5.0], network.zeros(4, None))
    run = expected(streams.window(0), expected.zeros(4, None), Noise(), expected.own)
    distance = 0.0
    for name in ("weight", "bias"):
        for member in range(2):
            anchor, own = (getattr(expected, f"{kind}_{name}")[member] for kind in ("anchor", "decoder"))
            distance = distance + sum((x - a) ** 2 for x, a in zip(own.flatten(), anchor.flatten(), strict=True))
    num_tokens = len(found.train) - 1
    pull = 0.5 / num_tokens * distance / 2
    assert pull.item() > 0.01
    assert expected.pull(num_tokens).item() == pytest.approx(pull.item(), rel=1e-5)
    (run.loss.sum() / num_tokens + pull).backward()
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in expected.parameters()))
    assert metrics["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    assert norm > 0.06
    for parameter, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter, other - 3.0 * 0.05 / norm * other.grad, rtol=1e-4, atol=1e-6)
    assert metrics["train_loss_nats"] == pytest.approx(run.loss.sum().item() / num_tokens, rel=1e-5)
    assert metrics["train_perplexity"] == pytest.approx(math.exp(run.nats.sum().item() / num_tokens), rel=1e-5)
    assert metrics["train_perplexity"] < math.exp(metrics["train_loss_nats"])


@pytest.mark.parametrize("anchors", ["own", "shared"])
def test_members_start_at_their_anchors_which_are_draws_from_the_prior(text, anchors):
    signal = AnchoredEnsemble(num_members=3, prior_std=0.4, anchors=anchors)
    torch.manual_seed(0)
    network = Network(config_for(text, Recoder(signal=signal)), 1000)
    assert network.pull(10).item() == 0
    for name in ("weight", "bias"):
        anchor = getattr(network, f"anchor_{name}")
        assert torch.equal(anchor, getattr(network, f"decoder_{name}"))
        assert anchor[0].std().item() == pytest.approx(0.4, rel=0.06)
        is_same = [torch.equal(anchor[0], anchor[member]) for member in (1, 2)]
        assert is_same == [anchors == "shared"] * 2
    assert Network(config_for(text), 10).pull(10) == 0


def test_metrics_of_training_by_hand(text):
    """Two streams of three steps of which one asks nothing; delta, steps and norms are those of the trace."""
    cfg = config_for(text, Recoder(step=PredictedStep(), gate=Threshold(min_delta=2.65)))
    torch.manual_seed(0)
    network = Network(cfg, 14)
    window = Streams(torch.randint(14, (6,)), 2, 3).window(0)
    run = network(window, network.zeros(2, None), Noise(), network.own)
    tally = Tally()
    tally.add(run, window.targets != NO_TARGET, 5, 3.0)
    tally.add(run, window.targets != NO_TARGET, 5, 4.0)
    metrics = tally.metrics()
    asked = [(step, row) for step in range(3) for row in range(2) if (step, row) != (2, 1)]
    nats = [run.nats[step, row].item() for step, row in asked]
    assert metrics["train_loss_nats"] == metrics["train_delta"] == pytest.approx(sum(nats) / 5, rel=1e-6)
    assert metrics["train_perplexity"] == pytest.approx(math.exp(sum(nats) / 5), rel=1e-6)
    assert metrics["gradient_norm"] == 3.5
    recoded = [place for place, one in zip(asked, nats, strict=True) if one > 2.65]
    assert 0 < len(recoded) < 5
    for number, kind in enumerate(("h_1", "c_1", "h_2", "c_2")):
        sizes = [run.trace.alphas[step][number, row].item() for step, row in recoded]
        assert metrics[f"step_size_{kind}"] == pytest.approx(sum(sizes) / len(sizes), rel=1e-6)
        norms = [run.trace.norms[step][number, row].item() for step, row in asked]
        assert metrics[f"recoding_norm_{kind}"] == pytest.approx(sum(norms) / 5, rel=1e-6)
    assert metrics["train_not_finite"] == 0


def alive() -> tuple[int, int]:
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
    return len(tensors), sum(tensor.numel() for tensor in tensors)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("gradient", ["closed_form", "second_order"])
def test_windows_leave_nothing_behind(text, monkeypatch, gradient):
    recoder = Recoder(step=LearnedStep(start=0.5), gradient={"kind": gradient})
    cfg = config_for(text, recoder, batch_size=16, window=4).with_value("hidden_size", 32)
    streams = Streams(torch.randint(300, (16 * 4 * 80 + 1,)), 16, 4)
    network, add, found = Network(cfg, 300), Tally.add, []

    def spy(self, *arguments):
        add(self, *arguments)
        if self.num_windows in (20, 80):
            found.append((*alive(), resident_bytes()))

    monkeypatch.setattr(Tally, "add", spy)
    train._train_part(cfg, network, streams, [5.0], network.zeros(16, None))
    assert len(found) == 2
    assert found[0][:2] == found[1][:2]
    assert found[1][2] - found[0][2] < 2_000_000


def test_training_does_not_keep_a_graph_of_its_metrics(text):
    recoder = Recoder(step=LearnedStep(start=0.5), gradient=SecondOrder())
    network, window, state, drawn = case(recoder)
    run = network(window, state, drawn, network.own)
    tally = Tally()
    tally.add(run, window.targets != NO_TARGET, T * B, 1.0)
    assert [name for name, value in tally._sums.items() if value.requires_grad] == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "recoder",
            {"signal": {"kind": "mc_dropout", "estimator": "moments", "masks": "weights"}},
            "masks must be units where the estimator is moments, but got weights.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision"}, "step": {"kind": "predicted", "source": "output"}},
            "step.source must be activation with a probe, which has no output, but got output.",
        ),
        (
            "recoder",
            {"signal": {"kind": "weak_supervision", "layer": 3}},
            "signal.layer must be at most num_layers = 2, but got 3.",
        ),
        (
            "evaluations",
            [{"recoder": {"signal": {"kind": "weak_supervision", "layer": 4}}}],
            "signal.layer must be at most num_layers = 2, but got 4.",
        ),
        (
            "evaluations",
            [{}, {}],
            "the names of evaluations must differ, but got test, test.",
        ),
        ("evaluations", [], "at least 1 item"),
        ("dropout.rate", 1.0, "`dropout.rate`: Input should be less than 1, but got 1.0."),
        ("recoder", {"gate": {"kind": "chance", "probability": 1.5}}, "less than or equal to 1, but got 1.5."),
        ("recoder", {"step": {"kind": "fixed", "size": -1}}, "greater than or equal to 0, but got -1."),
        ("training.schedule", {"kind": "plateau", "factor": 1}, "less than 1, but got 1."),
        ("recoder.step", 1, "`recoder.step` is no config path: `recoder` has no fields of its own."),
    ],
)
def test_what_cannot_be_is_refused_with_rule_and_value(path, value, said):
    with pytest.raises(InputError) as raised:
        LmConfig().with_value(path, value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("signal", [Surprisal(), AnchoredEnsemble(num_members=3), McDropout(num_samples=2)])
def test_an_ensemble_is_tested_with_its_own_members_only(signal):
    with pytest.raises(ValidationError) as raised:
        LmConfig(recoder=ENSEMBLE, evaluations=(Evaluation(recoder=Recoder(signal=signal)),))
    assert config.explain(raised.value).endswith(
        f"a model with an ensemble can be tested with the recoder own, none or another one with its 2 members, "
        f"but got {signal.kind}."
    )
    other = AnchoredEnsemble(num_members=2, entropy="batch")
    assert LmConfig(recoder=ENSEMBLE, evaluations=(Evaluation(recoder=Recoder(signal=other)),))


def test_more_reports_than_windows_are_refused(text, tmp_path):
    cfg = config_for(text, window=1000, reports_per_epoch=2)
    with pytest.raises(
        InputError, match=r"training\.reports_per_epoch must be at most the 1 windows of an epoch, but got 2"
    ):
        train.train(cfg, trial := FolderTrial(tmp_path))
    assert trial.reports == {}


def test_what_does_not_change_what_is_learnt_is_not_in_the_key(text):
    base = config_for(text)
    same = [base.with_value("seed", 2), base.with_value("evaluations", (Evaluation(recoder="none"),))]
    same.append(base.with_value("data.text.path", "elsewhere.txt"))
    other = [base.with_value("recoder", Recoder()), base.with_value("training.num_plain_epochs", 1)]
    assert {config.content_hash(one) for one in same} == {config.content_hash(base)}
    assert len({config.content_hash(one) for one in [base, *other]}) == 3


def test_masks_of_training_are_drawn_anew_for_every_window_of_every_epoch(text, tmp_path, monkeypatch):
    seeds, draw = [], noise.draw

    def spy(cfg, recoder, shape, size, generator, is_training):
        if is_training:
            seeds.append(generator.initial_seed())
        return draw(cfg, recoder, shape, size, generator, is_training)

    monkeypatch.setattr(noise, "draw", spy)
    cfg = config_for(text)
    trained(cfg, tmp_path)
    assert len(seeds) == len(set(seeds)) == 2 * Streams(corpus.load(cfg.data).train, 4, 5).num_windows
    assert seeds[0] == rng.derive(1, "train", 0, 0)
