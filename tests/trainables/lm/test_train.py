"""Whole runs of very small models: equal to plain ones where they must be, resumable in all digits, metrics by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states
from tests.trainables.lm.small_runs import ENSEMBLE, RECODERS, comparable, config_for, trained
from tests.trainables.lm.test_network import SIGNALS, B, T, case, gradients, own
from trainables import checkpoint, rng
from trainables.errors import DivergedError, InputError
from trainables.lm import corpus, epoch_part, evaluation, noise, train
from trainables.lm.config import AnchoredEnsemble, Dropout, Evaluation, McDropout, Recoder, Variational
from trainables.lm.gate_config import Chance, Threshold
from trainables.lm.meters import Meters
from trainables.lm.metrics import METRICS
from trainables.lm.network import Network
from trainables.lm.noise import Noise
from trainables.lm.step_config import FixedStep, LearnedStep, PredictedStep
from trainables.lm.streams import NO_TARGET, Streams


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
    each = {"valid_loss_nats", "valid_perplexity", "peak_memory_mb", "train_macs_per_token"}
    assert set(reports[0]) == each | {"bigram_perplexity"}
    kinds = [f"{kind}_{layer}" for layer in (1, 2) for kind in "hc"]
    expected = {f"step_size_{kind}" for kind in kinds} | {f"recoding_norm_{kind}" for kind in kinds}
    expected |= {
        "train_loss_nats",
        "train_perplexity",
        "train_delta",
        "train_share_recoded",
        "train_not_finite",
        "learning_rate",
    }
    expected |= {"gradient_norm", "train_tokens_per_s"}
    assert set(reports[4]) == each | expected <= names
    assert all(math.isfinite(value) for row in reports.values() for value in row.values())
    assert reports[4]["train_perplexity"] < reports[1]["train_perplexity"]
    assert all(row["valid_perplexity"] == math.exp(row["valid_loss_nats"]) for row in reports.values())


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


def test_training_goes_on_with_the_learning_rate_of_its_schedule(text, tmp_path, monkeypatch):
    losses = iter([5.0, 4.0, 4.5, 4.2, 1.0])
    monkeypatch.setattr(evaluation, "score", lambda *_, **__: evaluation.Score(next(losses), 1.0, 0, None, None, None))
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


def test_step_sizes_do_not_decay(text, tmp_path):
    """Behind a gate that is always shut they get no gradient, and only decay could move them."""
    recoder = Recoder(step=LearnedStep(start=0.5), gate=Chance(probability=0))
    cfg = config_for(text, recoder, weight_decay=0.05, num_epochs=1)
    trained(cfg, tmp_path)
    first, last = (checkpoint.load(tmp_path / f"{step}.pt")["network"] for step in (0, 1))
    assert torch.equal(first["steps.theta"], last["steps.theta"])
    assert last["decoder_weight"].norm() < 0.5 * first["decoder_weight"].norm()


def test_a_window_of_an_ensemble_is_one_step_down_the_mean_loss_and_the_anchor_penalty_by_hand(text, tmp_path):
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
    metrics, _ = epoch_part.train_part(cfg, network, streams, [5.0], network.zeros(4, None))
    run = expected(streams.window(0), expected.zeros(4, None), Noise(), expected.own)
    distance = 0.0
    for name in ("weight", "bias"):
        for member in range(2):
            anchor, own = (getattr(expected, f"{kind}_{name}")[member] for kind in ("anchor", "decoder"))
            distance = distance + sum((x - a) ** 2 for x, a in zip(own.flatten(), anchor.flatten(), strict=True))
    num_tokens = len(found.train) - 1
    penalty = 0.5 / num_tokens * distance / 2
    assert penalty.item() > 0.01
    assert expected.anchor_penalty(num_tokens).item() == pytest.approx(penalty.item(), rel=1e-5)
    (run.loss.sum() / num_tokens + penalty).backward()
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in expected.parameters()))
    assert metrics["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    assert norm > 0.06
    for parameter, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter, other - 3.0 * 0.05 / norm * other.grad, rtol=1e-4, atol=1e-6)
    assert metrics["train_loss_nats"] == pytest.approx(run.loss.sum().item() / num_tokens, rel=1e-5)
    assert metrics["train_perplexity"] == pytest.approx(math.exp(run.nats.sum().item() / num_tokens), rel=1e-5)
    assert metrics["train_perplexity"] < math.exp(metrics["train_loss_nats"])


@pytest.mark.parametrize("anchors", ["own", "shared"])
def test_first_weights_and_anchors_are_two_draws_from_the_prior(text, anchors):
    """Figure B.3 of the thesis draws W(k) and W0(k); section 4.3.4 takes one W0 for all."""
    signal = AnchoredEnsemble(num_members=3, prior_variance=0.16, anchors=anchors)
    torch.manual_seed(0)
    network = Network(config_for(text, Recoder(signal=signal)), 1000)
    for name in ("weight", "bias"):
        first, anchor = getattr(network, f"decoder_{name}"), getattr(network, f"anchor_{name}")
        for member in range(3):
            assert first[member].std().item() == pytest.approx(0.4, rel=0.06)
            assert anchor[member].std().item() == pytest.approx(0.4, rel=0.06)
            both = torch.stack([first[member].flatten(), anchor[member].flatten()])
            assert torch.corrcoef(both)[0, 1].abs() < 0.1
            assert torch.equal(anchor[0], anchor[member]) == (anchors == "shared" or member == 0)
        assert not torch.equal(first[0], first[1]) and not torch.equal(first[1], first[2])
    assert Network(config_for(text), 10).anchor_penalty(10) == 0


def test_the_pull_of_the_thesis_is_so_weak_that_own_and_shared_anchors_give_the_same_model(text, tmp_path):
    """And a pull a million times as strong, on 200 words, does not."""
    found = {}
    for anchors in ("own", "shared"):
        for pull in (4.82e-5, 48.2):
            signal = AnchoredEnsemble(num_members=2, pull=pull, anchors=anchors)
            trial = trained(config_for(text, Recoder(signal=signal)), tmp_path / f"{anchors}{pull}")
            found[anchors, pull] = trial.reports[2]["valid_loss_nats"]
    assert found["own", 4.82e-5] == pytest.approx(found["shared", 4.82e-5], rel=1e-5)
    assert found["own", 48.2] != pytest.approx(found["shared", 48.2], rel=1e-2)


def test_the_prior_is_the_thesis_variance_of_29_hundredths(text):
    torch.manual_seed(0)
    network = Network(config_for(text, Recoder(signal=AnchoredEnsemble(num_members=2))), 3000)
    for part in (network.decoder_weight, network.anchor_weight):
        assert part.var().item() == pytest.approx(0.29, rel=0.02)


@pytest.mark.parametrize("anchors", ["own", "shared"])
@pytest.mark.parametrize("loss", ["mean_loss", "mean_logits"])
def test_members_differ_after_training_and_their_spread_is_reported(text, tmp_path, anchors, loss):
    signal = AnchoredEnsemble(num_members=3, prior_variance=0.04, pull=0.5, anchors=anchors, loss=loss)
    cfg = config_for(text, Recoder(signal=signal, step=FixedStep(size=0.5)))
    trial = trained(cfg, tmp_path)
    assert trial.reports[0]["member_spread"] == pytest.approx(0.2, rel=0.15)
    network = checkpoint.load(trial.folder / "2.pt")["network"]
    members = torch.cat([network["decoder_weight"].flatten(1), network["decoder_bias"]], 1).double()
    apart = members - members.mean(0)
    spread = math.sqrt(apart.square().sum().item() / 2 / members.shape[1])
    assert trial.reports[2]["member_spread"] == pytest.approx(spread, rel=1e-9)
    assert spread > 0.05
    assert all((members[a] - members[b]).abs().max() > 0.1 for a, b in ((0, 1), (1, 2), (0, 2)))


def test_the_printed_pull_is_the_root_of_lambda_times_the_distance(text):
    """Equation 3.37 has the norm of the root of lambda times the difference, without a square; MAP gives the square."""
    found = {}
    for penalty in ("squared", "norm"):
        signal = AnchoredEnsemble(num_members=2, pull=0.25, penalty=penalty)
        torch.manual_seed(0)
        network = Network(config_for(text, Recoder(signal=signal)), 7).double()
        with torch.no_grad():
            network.decoder_weight.copy_(network.anchor_weight)
            network.decoder_bias.copy_(network.anchor_bias)
            network.decoder_weight[0, 0, 0] += 3.0
            network.decoder_bias[0, 1] += 4.0
            network.decoder_weight[1, 2, 0] += 1.0
        found[penalty] = network.anchor_penalty(10)
        found[penalty].backward()
        found[f"{penalty} slope"] = network.decoder_weight.grad[0, 0, 0].item()
    assert found["squared"].item() == pytest.approx(0.25 * (25 + 1) / 10 / 2)
    assert found["norm"].item() == pytest.approx(0.5 * (5 + 1) / 10 / 2)
    assert found["squared slope"] == pytest.approx(0.25 * 2 * 3 / 10 / 2)
    assert found["norm slope"] == pytest.approx(0.5 * 3 / 5 / 10 / 2)


def test_metrics_of_training_by_hand(text):
    """Two streams of three steps of which one asks nothing; delta, steps and norms are those of the trace."""
    cfg = config_for(text, Recoder(step=PredictedStep(), gate=Threshold(min_delta=2.65)))
    torch.manual_seed(0)
    network = Network(cfg, 14)
    window = Streams(torch.randint(14, (6,)), 2, 3).window(0)
    run = network(window, network.zeros(2, None), Noise(), network.own)
    meters = Meters()
    meters.add(run, window.targets != NO_TARGET, 5, 3.0)
    meters.add(run, window.targets != NO_TARGET, 5, 4.0)
    metrics = meters.metrics()
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
        norms = [run.trace.norms[step][number, row].item() for step, row in recoded]
        assert metrics[f"recoding_norm_{kind}"] == pytest.approx(sum(norms) / len(norms), rel=1e-6)
    assert metrics["train_share_recoded"] == pytest.approx(len(recoded) / 5)
    assert metrics["train_not_finite"] == 0


def test_delta_in_training_is_the_mean_over_the_tokens_that_it_was_read_at(text):
    """Samples of MC dropout are not taken where a gate is shut that is known before."""
    recoder = Recoder(signal=McDropout(num_samples=2), step=FixedStep(size=0.5), gate=Chance(probability=0.5))
    cfg = config_for(text, recoder)
    torch.manual_seed(0)
    network = Network(cfg, 14)
    window = Streams(torch.randint(14, (41,)), 2, 20).window(0)
    drawn = noise.draw(cfg, recoder, (20, 2), 14, torch.Generator().manual_seed(0), is_training=True)
    run = network(window, network.zeros(2, None), drawn, network.own)
    (meters := Meters()).add(run, window.targets != NO_TARGET, 40, 3.0)
    deltas, gates = torch.stack(run.trace.before), torch.stack(run.trace.gates)
    read = [value for value in deltas.flatten().tolist() if not math.isnan(value)]
    assert 0 < len(read) < 40 and torch.equal(~deltas.isnan(), gates > 0)
    metrics = meters.metrics()
    assert metrics["train_delta"] == pytest.approx(sum(read) / len(read), rel=1e-6)
    assert metrics["train_share_recoded"] == len(read) / 40
    assert metrics["train_not_finite"] == 0


def test_more_reports_than_windows_are_refused(text, tmp_path):
    cfg = config_for(text, window=1000, reports_per_epoch=2)
    with pytest.raises(
        InputError, match=r"training\.reports_per_epoch must be at most the 1 windows of an epoch, but got 2"
    ):
        train.train(cfg, trial := FolderTrial(tmp_path))
    assert trial.reports == {}


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
