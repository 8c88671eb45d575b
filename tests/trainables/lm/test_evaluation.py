"""Evaluations: perplexity token by token, recoders of others, masks, the windows that are measured."""

import csv
import itertools
import math

import numpy as np
import pytest
import torch

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.small_runs import ENSEMBLE, RECODERS, comparable, config_for, trained
from trainables import checkpoint
from trainables.lm import corpus, evaluation, train
from trainables.lm.config import (
    AnchoredEnsemble,
    Evaluation,
    LmConfig,
    McDropout,
    Recoder,
    Surprisal,
    WeakSupervision,
)
from trainables.lm.gate_config import Always, Threshold
from trainables.lm.metrics import METRICS
from trainables.lm.network import Network, attach_recoder
from trainables.lm.noise import Noise
from trainables.lm.step_config import FixedStep, LearnedStep, PredictedStep
from trainables.lm.streams import Streams

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


DELTAS = {"delta_before", "delta_after", "raised_share", "share_recoded"}


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
    """Also the tests' names, the share of unknown words and the sample text's table and figure."""
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
        (Recoder(step=FixedStep(size=0.7)), True, False),
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


@pytest.mark.parametrize(
    ("gate", "added"),
    [
        (Threshold(min_delta=2.5), lambda nats: [n for n in nats if n > 2.5]),
        (Threshold(min_delta=50), lambda _: []),
        (Always(), lambda nats: nats),
    ],
    ids=["some", "none", "all"],
)
def test_a_test_costs_what_the_recoded_tokens_cost_and_tells_their_share(
    baseline, text, tmp_path, gate, added, no_figures
):
    """By hand: a step of 0 changes nothing, so that surprisal is the plain model's; V = 15, H = 8, E = 6."""
    cfg = config_for(text)
    evaluation = Evaluation(recoder=Recoder(step=FixedStep(size=0), gate=gate), batch_size=1)
    train.evaluate(cfg, baseline.folder / "2.pt", evaluation, tested := FolderTrial(tmp_path))
    saved = checkpoint.load(baseline.folder / "2.pt")["network"]
    found = corpus.load(cfg.data)
    nats = nats_by_hand({name: tensor.double().numpy() for name, tensor in saved.items()}, found.test.tolist())
    share = len(added(nats)) / len(nats)
    plain, extra = 4 * 8 * (6 + 8) + 4 * 8 * (8 + 8) + 8 * found.size, 8 * found.size + 4 * 8 * 8
    assert tested.reports[2]["share_recoded"] == pytest.approx(share, rel=1e-9)
    assert tested.reports[2]["macs_per_token"] == pytest.approx(plain + share * extra, rel=1e-9)
    assert share in (0, 1) or isinstance(gate, Threshold)


@pytest.mark.parametrize(("decoder_std", "noise"), [(None, 1 / math.sqrt(3 * 8)), (0.4, 0.4)])
def test_members_added_around_one_decoder_differ_by_as_much_as_its_own_start(text, decoder_std, noise):
    """Torch starts it with U(-1 / sqrt(H), 1 / sqrt(H)); a prior of .54 would drown what it learnt."""
    torch.manual_seed(0)
    network = Network(config_for(text).with_value("decoder_std", decoder_std), 2000)
    assert network.decoder_weight.std().item() == pytest.approx(noise, rel=0.02)
    members = attach_recoder(network, Recoder(signal=AnchoredEnsemble(num_members=3)), 1).members
    distances = members.weight - network.decoder_weight
    assert distances.std().item() == pytest.approx(noise, rel=0.02)
    assert distances.mean(0).std().item() == pytest.approx(noise / math.sqrt(3), rel=0.02)
    assert (members.bias - network.decoder_bias).std().item() == pytest.approx(noise, rel=0.05)


def test_at_the_thesis_width_an_added_ensembles_noise_is_that_of_the_decoder():
    network = Network(LmConfig(embedding_size=2, num_layers=1), 300)
    members = attach_recoder(network, Recoder(signal=AnchoredEnsemble(num_members=2)), 1).members
    assert (members.weight - network.decoder_weight).std().item() == pytest.approx(0.0226, abs=2e-4)


LEARNT = {
    "learned": Recoder(step=LearnedStep(start=0.5)),
    "predicted": Recoder(signal=McDropout(num_samples=3), step=PredictedStep()),
    "ensemble": ENSEMBLE.model_copy(update={"step": LearnedStep(start=0.5)}),
    "variational": RECODERS["variational"],
}


@pytest.mark.parametrize("name", LEARNT)
def test_a_trained_recoder_is_tested_on_the_weights_of_the_baseline(baseline, text, tmp_path, name, no_figures):
    """Section 5.3.5: the mechanism of one trained model, with its step sizes, on the weights of another."""
    cfg = config_for(text, LEARNT[name]).with_value("training.weight_decay", 1e-4)
    trained(cfg, tmp_path / "trained")
    path, found = tmp_path / "trained" / "2.pt", {}
    for recoder in ("own", "none"):
        tested = FolderTrial(tmp_path / recoder, product=baseline.folder / "2.pt")
        train.evaluate(cfg, path, Evaluation(recoder=recoder, weights="baseline", batch_size=4), tested)
        found[recoder] = tested.reports[2]
    plain = FolderTrial(tmp_path / "plain")
    train.evaluate(config_for(text), baseline.folder / "2.pt", Evaluation(batch_size=4), plain)
    assert comparable({2: found["none"]}) == comparable(plain.reports)
    assert found["own"]["test_loss_nats"] != found["none"]["test_loss_nats"]
    assert found["own"]["delta_after"] < found["own"]["delta_before"]
    own = Network(cfg, corpus.load(cfg.data).size)
    own.load_state_dict(checkpoint.load(path)["network"])
    network, attached = evaluation.on_baseline(own, own.own, baseline.folder / "2.pt", Evaluation())
    started = Network(cfg, corpus.load(cfg.data).size)
    expected = checkpoint.load(path)["network"]
    for key, value in attached.steps.state_dict().items():
        assert torch.equal(value, expected[f"steps.{key}"])
        assert not torch.equal(value, started.state_dict()[f"steps.{key}"])
    for key, value in checkpoint.load(baseline.folder / "2.pt")["network"].items():
        assert torch.equal(network.state_dict()[key], value)


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
        score = evaluation.score(network, corpus.load(cfg.data).test, network.own, 2, 1, measures_delta=True)
        found[window] = [score.loss_nats] + ([score.before, score.after] if recoder else [])
    assert found[5] == pytest.approx(found[50], rel=1e-6)


@pytest.mark.parametrize("num_streams", [1, 2, 7])
def test_delta_is_measured_over_the_same_tokens_as_perplexity(text, num_streams):
    """Also behind the twentieth window; the delta of nll before recoding is the loss itself."""
    cfg = config_for(text, Recoder(step=FixedStep(size=0.5)), window=3)
    torch.manual_seed(0)
    network = Network(cfg, 14)
    tokens = torch.cat([torch.randint(3, (70 * num_streams,)), torch.randint(3, 14, (70 * num_streams,))])
    streams = Streams(tokens, num_streams, 3)
    assert streams.num_windows > 40
    score = evaluation.score(network, tokens, network.own, num_streams, 1, measures_delta=True)
    assert score.before == pytest.approx(score.loss_nats, rel=1e-6)
    state, after = network.zeros(num_streams, None), []
    with torch.no_grad():
        for index in range(streams.num_windows):
            window = streams.window(index)
            run = network(window, state, Noise(), network.own, measures_after=True)
            state = run.state
            after += torch.stack(run.trace.after)[window.targets >= 0].tolist()
    assert len(after) == len(tokens) - 1
    assert score.after == pytest.approx(sum(after) / len(after), rel=1e-6)
    plain = evaluation.score(network, tokens, network.own, num_streams, 1)
    assert (plain.before, plain.after, plain.loss_nats) == (None, None, score.loss_nats)


def test_tests_with_other_seeds_draw_other_masks(wholes, text, tmp_path, no_figures):
    cfg, found = config_for(text, RECODERS["mc_dropout"]), []
    for seed in (1, 1, 2):
        trial = FolderTrial(tmp_path)
        train.evaluate(cfg, wholes["mc_dropout"].folder / "4.pt", Evaluation(seed=seed), trial)
        found.append(trial.reports[4]["delta_before"])
    assert found[0] == found[1] != found[2]


def test_replicates_draw_their_masks_and_added_members_each_for_itself(text):
    added = Evaluation(recoder=Recoder(signal=AnchoredEnsemble(num_members=2)))
    found = []
    for seed in (1, 2, 1):
        network = Network(config_for(text).model_copy(update={"seed": seed}), 14)
        with torch.no_grad():
            network.decoder_weight.zero_()
        attached = evaluation.recoder_of(network, added)
        found.append((attached.members.weight, evaluation.test_seed(network, added)))
    for first, second, again in zip(*found, strict=True):
        assert torch.equal(torch.as_tensor(first), torch.as_tensor(again))
        assert not torch.equal(torch.as_tensor(first), torch.as_tensor(second))
