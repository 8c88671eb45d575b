"""Whole training runs of a very small recogniser: resumption to the last digit, metrics by their definition."""

import itertools
import math
import shutil
from pathlib import Path

import pytest
import torch
from torchaudio.functional import edit_distance

from trainables import checkpoint
from trainables.asr import cost, data, pretrain, recognition, train
from trainables.asr.config import (
    AlwaysBig,
    AsrConfig,
    Evaluation,
    Network,
    Optimisation,
    Pretraining,
    Random,
    Surprisal,
    Synthetic,
)
from trainables.errors import DivergedError

DATA = Synthetic(num_train_utterances=12, num_validation_utterances=3, num_test_utterances=4, num_words_per_utterance=2)
QUICK = Optimisation(learning_rate=1e-3, batch_size=4, num_epochs=4)
CONFIG = AsrConfig(
    data=DATA,
    ar=Pretraining(data=DATA, hidden_size=12, training=QUICK.model_copy(update={"num_epochs": 3})),
    network=Network(pre_hidden_size=8, big_hidden_size=24, post_hidden_size=8, dropout=0.2),
    controller=Surprisal(mu=0.5),
    training=QUICK,
    evaluations=(Evaluation(), Evaluation(name="deterministic", routing="deterministic")),
)


class InterruptedTrialError(Exception):
    pass


class FolderTrial:
    """A trial that keeps everything, and may be cut off after a step."""

    def __init__(self, folder: Path, ar: Path | None = None, cut_after: int | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.ar, self.cut_after = folder, ar, cut_after
        self.reports: dict[int, dict[str, float]] = {}

    def report(self, metrics, *, step, checkpoint=None):
        self.reports[step] = dict(metrics)
        if checkpoint:
            shutil.copy(checkpoint, self.folder / f"{step}.pt")
        if step == self.cut_after:
            raise InterruptedTrialError

    def restore(self):
        return max(self.folder.glob("*.pt"), key=lambda path: int(path.stem), default=None)

    def prerequisite(self, name):
        assert name == "ar"
        return self.ar


def untimed(reports):
    return {step: {k: v for k, v in row.items() if not k.endswith("_per_s")} for step, row in reports.items()}


@pytest.fixture(scope="module")
def ar(tmp_path_factory) -> Path:
    trial = FolderTrial(tmp_path_factory.mktemp("ar"))
    pretrain.train(CONFIG.pretraining, trial)
    return trial.folder / "3.pt"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, ar) -> FolderTrial:
    trial = FolderTrial(tmp_path_factory.mktemp("trained"), ar)
    train.train(CONFIG, trial)
    return trial


def assert_equal_states(a: Path, b: Path) -> None:
    first, second = checkpoint.load(a), checkpoint.load(b)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_a_resumed_run_equals_an_uninterrupted_one_in_all_digits(tmp_path, ar, trained):
    cut = FolderTrial(tmp_path / "cut", ar, cut_after=2)
    with pytest.raises(InterruptedTrialError):
        train.train(CONFIG, cut)
    resumed = FolderTrial(tmp_path / "cut", ar)
    train.train(CONFIG, resumed)
    assert sorted(resumed.reports) == [3, 4]
    assert untimed(cut.reports | resumed.reports) == untimed(trained.reports)
    assert_equal_states(resumed.folder / "4.pt", trained.folder / "4.pt")


def test_resumed_pretraining_equals_an_uninterrupted_one(tmp_path, ar):
    with pytest.raises(InterruptedTrialError):
        pretrain.train(CONFIG.pretraining, FolderTrial(tmp_path, cut_after=1))
    pretrain.train(CONFIG.pretraining, FolderTrial(tmp_path))
    assert_equal_states(tmp_path / "3.pt", ar)


def test_seeds_differ_and_a_seed_repeats(tmp_path, ar, trained):
    again, other = FolderTrial(tmp_path / "again", ar), FolderTrial(tmp_path / "other", ar)
    train.train(CONFIG, again)
    train.train(CONFIG.with_value("seed", 2), other)
    assert untimed(again.reports) == untimed(trained.reports)
    assert other.reports[1]["train_loss_nats"] != trained.reports[1]["train_loss_nats"]


def test_training_lowers_the_loss_and_attains_the_controllers_targets(trained):
    assert trained.reports[4]["train_loss_nats"] < trained.reports[1]["train_loss_nats"]
    assert trained.reports[0]["controller_mean_p"] == pytest.approx(0.5, abs=1e-6)
    assert trained.reports[0]["controller_var_p"] == pytest.approx(0.04, abs=1e-6)


def one_by_one(config, trained, ar, evaluation):
    """Each metric from its definition, one utterance at a time."""
    examples, state = data.load(config.data, config.ar.features), checkpoint.load(trained.folder / "4.pt")
    model = train.Recogniser(config, len(examples.labels))
    model.load_state_dict(state["model"])
    model.eval()
    frozen = recognition.FrozenParts(recognition.load_ar(config, trained), train._fit_from(state))
    edits = labels = frames = big = macs = 0
    parts = cost.part_macs(config, len(examples.labels))
    for example in examples.test:
        batch = data.collate([example])
        features, p = frozen.see(config, batch)
        chosen = recognition.choose_in_test(p, batch, config.seed, evaluation)
        log_probs = model(features, batch.num_frames, chosen)
        (hypothesis,) = train_decode(log_probs, batch)
        edits, labels = edits + edit_distance(example.labels, hypothesis), labels + len(example.labels)
        frames, big = frames + len(example.frames), big + int(chosen.sum())
        macs += cost.utterance_macs(config, parts, len(example.frames), int(chosen.sum()))
    return {"per": edits / labels, "routing_rate": big / frames, "macs_per_frame": macs / frames}


def train_decode(log_probs, batch):
    return recognition.decode.beam_search(log_probs.detach(), batch.num_frames, 10)


@pytest.mark.parametrize("evaluation", CONFIG.evaluations, ids=lambda e: e.name)
def test_evaluation_reports_its_metrics_by_definition_whatever_the_batches(tmp_path, ar, trained, evaluation):
    trial = FolderTrial(tmp_path, ar)
    train.evaluate(CONFIG, trained.folder / "4.pt", evaluation, trial)
    expected = one_by_one(CONFIG, trained, ar, evaluation)
    assert {name: trial.reports[4][name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert trial.reports[4]["valid_per"] == trained.reports[4][f"valid_per@{evaluation.name}"]
    assert 0 < trial.reports[4]["routing_rate"] < 1


def test_deterministic_routing_ignores_the_seed_and_stochastic_does_not(trained, ar):
    batch = data.collate(data.load(DATA, CONFIG.ar.features).test)
    p = torch.linspace(0.05, 0.95, batch.frames.shape[1]).expand(len(batch.identities), -1)
    stochastic, deterministic = CONFIG.evaluations
    one, two = (recognition.choose_in_test(p, batch, seed, deterministic) for seed in (1, 2))
    assert torch.equal(one, two)
    one, two = (recognition.choose_in_test(p, batch, seed, stochastic) for seed in (1, 2))
    assert not torch.equal(one, two)


def test_ctc_loss_is_the_sum_over_alignments():
    log_probs = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    batch = data.Batch(("a", "b"), torch.zeros(2, 4, 1), torch.tensor([4, 3]), ((0, 1), (1,)))
    expected = 0.0
    for row, (labels, length) in enumerate(zip(batch.labels, (4, 3), strict=True)):
        total = sum(
            math.exp(sum(float(log_probs[row, t, s]) for t, s in enumerate(alignment)))
            for alignment in itertools.product(range(3), repeat=length)
            if tuple(s for s, _ in itertools.groupby(alignment) if s != 2) == labels
        )
        expected -= math.log(total)
    assert float(recognition.ctc_loss(log_probs, batch)) == pytest.approx(expected)


def test_a_loss_that_is_no_number_stops_with_its_step(tmp_path, ar, monkeypatch):
    monkeypatch.setattr(train, "ctc_loss", lambda log_probs, batch: log_probs.sum() * math.nan)
    with pytest.raises(DivergedError, match="The loss is nan at epoch 1, batch 1"):
        train.train(CONFIG, FolderTrial(tmp_path, ar))


@pytest.mark.parametrize("controller", [Random(), AlwaysBig()])
def test_other_controllers_train_too(tmp_path, ar, controller):
    config = CONFIG.with_value("controller", controller).with_value("training.num_epochs", 1)
    trial = FolderTrial(tmp_path, ar)
    train.train(config, trial)
    assert trial.reports[1]["train_routing_rate"] == pytest.approx(getattr(controller, "p_big", 1.0), abs=0.1)
