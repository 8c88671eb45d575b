"""Whole training runs of a very small recogniser: resumption to the last digit, metrics by their definition."""

import dataclasses
import gc
import itertools
import math
from pathlib import Path

import pytest
import torch
from torchaudio.functional import edit_distance

from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states, untimed
from trainables import checkpoint, item_errors
from trainables.asr import cost, decode, epoch, macs, pretrain, train
from trainables.asr.config import (
    AlwaysBig,
    AsrConfig,
    Budget,
    Convolutional,
    Evaluation,
    Learned,
    Optimisation,
    Pretraining,
    Random,
    Recurrent,
    Surprisal,
)
from trainables.asr.controller import uses_surprisal
from trainables.asr.controller_fit import all_fits, control, restored_fits
from trainables.asr.ctc_loss import ctc_losses
from trainables.asr.data.batches import Batch, collate
from trainables.asr.data.config import Synthetic
from trainables.asr.data.examples import load_examples
from trainables.asr.metrics import METRICS
from trainables.asr.recogniser import Recogniser, keyed_draws, load_ar
from trainables.config import content_hash
from trainables.errors import DivergedError

DATA = Synthetic(num_train_utterances=12, num_validation_utterances=3, num_test_utterances=4, num_words_per_utterance=2)
QUICK = Optimisation(learning_rate=1e-3, batch_size=4, num_epochs=4)
CONFIG = AsrConfig(
    data=DATA,
    ar=Pretraining(data=DATA, hidden_size=12, training=QUICK.model_copy(update={"num_epochs": 3})),
    network=Recurrent(pre_hidden_size=8, big_hidden_size=24, post_hidden_size=8, dropout=0.2),
    controller=Surprisal(mu=0.5),
    training=QUICK,
    evaluations=(
        Evaluation(),
        Evaluation(name="deterministic", routing="deterministic"),
        Evaluation(name="random", controller=Random()),
        Evaluation(name="other_targets", controller=Surprisal(mu=0.3, sigma2=0.02), bias_raise=0.2),
    ),
)
JOINT = CONFIG.with_value("ar_loss_weight", 1e-3)
RELEASED = CONFIG.with_value("ar_dropout", "released").with_value("ar.dropout", 0.3)
LEARNED = CONFIG.with_value("evaluations", (Evaluation(),)).with_value("controller", Learned(weight=100.0))


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


@pytest.mark.parametrize(
    "config", [CONFIG, JOINT, LEARNED, RELEASED], ids=["surprisal", "joint", "learned", "released"]
)
def test_a_resumed_run_equals_an_uninterrupted_one_in_all_digits(tmp_path, ar, config, monkeypatch):
    monkeypatch.setenv("PONDERAY_CACHE", str(tmp_path / "cache"))  # the first run fills it
    whole, cut = FolderTrial(tmp_path / "whole", ar), FolderTrial(tmp_path / "cut", ar, cut_after=2)
    train.train(config, whole)
    with pytest.raises(InterruptedTrialError):
        train.train(config, cut)
    resumed = FolderTrial(tmp_path / "cut", ar)
    train.train(config, resumed)
    assert sorted(resumed.reports) == [3, 4]
    assert untimed(cut.reports | resumed.reports) == untimed(whole.reports)
    assert_equal_states(resumed.folder / "4.pt", whole.folder / "4.pt")


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


def test_training_reports_its_cost_by_hand(tmp_path, ar, trained):
    """Of 12 features, layers of 8 units in two directions, and a big network of 24 units: small 256, big 768."""
    num_outputs = len(load_examples(CONFIG.data, CONFIG.ar.features).labels) + 1
    around = 6 * (12 * 8 + 8 * 8) + 6 * (16 * 8 + 8 * 8) + 16 * num_outputs
    report = trained.reports[4]
    assert 0 < (rate := report["train_routing_rate"]) < 1
    assert report["train_macs_per_frame"] == pytest.approx(around + (1 - rate) * 256 + rate * 768, rel=1e-12)
    gate = 12 * LEARNED.controller.hidden_size + LEARNED.controller.hidden_size
    train.train(LEARNED, learned := FolderTrial(tmp_path, ar))
    assert {report["train_macs_per_frame"] for step, report in learned.reports.items() if step} == {
        around + gate + 256 + 768
    }


def test_training_counts_an_autoregressive_model_that_drops_out_by_hand(tmp_path, ar, trained):
    """It reads 80 bins with layers of 12 units: a step more than there are frames, and the regressor once a frame."""
    config = RELEASED.with_value("training.num_epochs", 1)
    train.train(config, trial := FolderTrial(tmp_path, ar))
    lengths = [len(example.frames) for example in load_examples(config.data, config.ar.features).train]
    step = 3 * (80 * 12 + 12 * 12) + 12 * 12 + 3 * (12 * 12 + 12 * 12) + 12 * 12
    added = sum((length + 1) * step + length * 12 * 80 for length in lengths) / sum(lengths)
    frozen_report, report = trained.reports[1], trial.reports[1]
    assert report["train_loss_nats"] != frozen_report["train_loss_nats"]
    around = frozen_report["train_macs_per_frame"] - frozen_report["train_routing_rate"] * 512
    expected = around + report["train_routing_rate"] * 512 + added
    assert report["train_macs_per_frame"] == pytest.approx(expected, rel=1e-12)
    validated = {f"valid_macs_per_frame@{one.name}" for one in config.evaluations}
    assert {name: trial.reports[0][name] for name in validated} == {n: trained.reports[0][n] for n in validated}


def test_validation_comes_every_so_many_epochs_and_behind_the_last(tmp_path, ar):
    config = CONFIG.with_value("training.validate_every", 3).with_value("training.num_epochs", 4)
    train.train(config, trial := FolderTrial(tmp_path / "recogniser", ar))
    pretrain.train(
        config.pretraining.with_value("training.validate_every", 2), pretrained := FolderTrial(tmp_path / "ar")
    )
    assert [step for step, report in trial.reports.items() if "valid_per@random" in report] == [0, 3, 4]
    assert [step for step, report in pretrained.reports.items() if "valid_mse" in report] == [0, 2, 3]
    assert all((tmp_path / "recogniser" / f"{step}.pt").exists() for step in (1, 2, 3, 4))
    assert all("train_loss_nats" in report for step, report in trial.reports.items() if step)


def one_by_one(config, trained, ar, evaluation, part="test"):
    """Each metric from its definition, one utterance of a part of the data at a time."""
    examples, state = load_examples(config.data, config.ar.features), checkpoint.load(trained.folder / "4.pt")
    recogniser = Recogniser(config, len(examples.labels), load_ar(config, trained)).eval()
    recogniser.network.load_state_dict(state["recogniser"])
    working = control(config, restored_fits(state), evaluation)
    edits = labels = frames = big = num_macs = 0
    parts = macs.part_macs(config, len(examples.labels))
    for example in getattr(examples, part):
        batch = collate([example])
        draws = keyed_draws(batch, config.seed, evaluation.name)
        output = recogniser(batch.frames, batch.num_frames, working, draws)
        (hypothesis,) = decode.beam_search(output.log_probs.detach(), batch.num_frames, 10)
        edits, labels = edits + edit_distance(example.labels, hypothesis), labels + len(example.labels)
        num_big = (
            int((draws < output.p_big).sum()) if evaluation.routing == "stochastic" else int((output.p_big > 0.5).sum())
        )
        frames, big = frames + len(example.frames), big + num_big
        num_macs += cost.utterance_macs(config, working.controller, parts, len(example.frames), num_big)
    return {"per": edits / labels, "routing_rate": big / frames, "macs_per_frame": num_macs / frames}


@pytest.mark.parametrize("evaluation", CONFIG.evaluations, ids=lambda e: e.name)
def test_evaluation_reports_its_metrics_by_definition_whatever_the_batches(tmp_path, ar, trained, evaluation):
    trial = FolderTrial(tmp_path, ar)
    train.evaluate(CONFIG, trained.folder / "4.pt", evaluation, trial)
    (found,) = trial.reports.values()
    expected = one_by_one(CONFIG, trained, ar, evaluation)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert found["valid_per"] == trained.reports[4][f"valid_per@{evaluation.name}"]
    validated = one_by_one(CONFIG, trained, ar, evaluation, "validation")["macs_per_frame"]
    assert found["valid_macs_per_frame"] == pytest.approx(validated, rel=1e-12)
    assert trained.reports[4][f"valid_macs_per_frame@{evaluation.name}"] == found["valid_macs_per_frame"]
    assert 0 < found["routing_rate"] < 1
    kinds = ("substitution_rate", "insertion_rate", "deletion_rate")
    assert sum(found[kind] for kind in kinds) == pytest.approx(found["per"])
    assert ("surprisal_p50_nats" in found) == uses_surprisal(evaluation.controller or CONFIG.controller)
    assert set(found) <= {metric.name for metric in METRICS}
    assert (tmp_path / f"utterance_{evaluation.name}.png").read_bytes().startswith(b"\x89PNG")


def test_an_evaluation_that_comes_later_fits_its_controller_and_trains_nothing(tmp_path, ar, trained, monkeypatch):
    monkeypatch.setattr(epoch, "train_epoch", None)
    parts = macs.part_macs(CONFIG, 16)
    cheap = cost.utterance_macs(CONFIG, Budget(macs_per_frame=1.0), parts, 100, 0) / 100
    budget = cheap + 0.4 * (parts.big - parts.small)
    later = Evaluation(name="later", controller=Budget(macs_per_frame=budget))
    trial = FolderTrial(tmp_path, ar)
    train.evaluate(CONFIG, trained.folder / "4.pt", later, trial)
    assert trial.reports[4]["macs_per_frame"] == pytest.approx(budget, rel=0.05)


def test_a_cut_off_run_goes_on_with_an_evaluation_that_came_later(tmp_path, ar):
    few = CONFIG.with_value("evaluations", CONFIG.evaluations[:1])
    with pytest.raises(InterruptedTrialError):
        train.train(few, FolderTrial(tmp_path, ar, cut_after=2))
    resumed = FolderTrial(tmp_path, ar)
    train.train(CONFIG, resumed)
    assert "valid_per@other_targets" in resumed.reports[4]


def test_raised_biases_share_a_checkpoint_and_use_the_big_network_more(tmp_path, ar):
    raised = [
        Evaluation(name=f"bias_{k}", bias_raise=4 * k / 3, checkpoint_of="bias_0" if k else None) for k in range(4)
    ]
    config = CONFIG.with_value("evaluations", tuple(raised)).with_value("training.num_epochs", 1)
    assert set(train.selection(config).values()) == {"valid_per@bias_0"}
    trial = FolderTrial(tmp_path, ar)
    train.train(config, trial)
    assert [name for name in trial.reports[1] if name.startswith("valid_per")] == ["valid_per@bias_0"]
    rates = []
    for evaluation in raised:
        tested = FolderTrial(tmp_path, ar)
        train.evaluate(config, tmp_path / "1.pt", evaluation, tested)
        rates.append(tested.reports[1]["routing_rate"])
    assert rates == sorted(rates)
    assert rates[-1] > 0.95 > rates[0]


def test_the_fit_of_a_separate_audio_set_differs_from_that_of_the_tasks_own(ar):
    trial = FolderTrial(ar.parent, ar)
    examples = load_examples(CONFIG.data, CONFIG.ar.features)
    separate = CONFIG.with_value("controller.data", DATA.model_copy(update={"seed": 5, "noise": 0.1}))
    fits = [
        all_fits(config, load_ar(config, trial), examples)[content_hash(config.controller)]
        for config in (CONFIG, separate)
    ]
    assert fits[0].mean_p == pytest.approx(fits[1].mean_p, abs=1e-6)
    assert fits[0].b != pytest.approx(fits[1].b, rel=1e-3)


def test_the_fingerprint_follows_the_audio_of_a_separate_fit():
    separate = [CONFIG.with_value("controller.data", DATA.model_copy(update={"seed": seed})) for seed in (5, 6)]
    assert len({train.fingerprint(config) for config in (CONFIG, *separate)}) == 3


def test_a_test_utterance_too_short_for_its_phones_counts_as_deletions_and_in_no_loss(
    tmp_path, ar, trained, monkeypatch
):
    whole = load_examples(CONFIG.data, CONFIG.ar.features)
    short = dataclasses.replace(whole.test[0], frames=whole.test[0].frames[:2])
    changed = dataclasses.replace(whole, test=(short, *whole.test[1:]))
    monkeypatch.setattr("trainables.asr.data.examples.load_examples", lambda *_: changed)
    trial = FolderTrial(tmp_path, ar)
    train.evaluate(CONFIG, trained.folder / "4.pt", CONFIG.evaluations[0], trial)
    (found,) = trial.reports.values()
    assert found["num_too_short"] == 1
    assert all(math.isfinite(value) for value in found.values())


def test_joint_training_changes_the_autoregressive_model_and_frozen_does_not(tmp_path, ar):
    trial = FolderTrial(tmp_path, ar)
    train.train(JOINT.with_value("training.num_epochs", 1), trial)
    before, after = checkpoint.load(ar)["model"], checkpoint.load(tmp_path / "1.pt")["ar"]
    assert all(not torch.equal(before[name], after[name]) for name in ("regressor.weight", "normaliser.bias"))
    assert trial.reports[0]["controller_w"] != trial.reports[1]["controller_w"]
    assert trial.reports[1]["controller_mean_p"] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("config", [CONFIG, JOINT, LEARNED], ids=["surprisal", "joint", "learned"])
def test_a_gpu_trains_and_tests(tmp_path, ar, config):
    """Draws and dropout come from other streams there, so no number is the CPU's."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    trial = FolderTrial(tmp_path, ar)
    train.train(config, trial)
    assert trial.reports[4]["train_loss_nats"] < trial.reports[1]["train_loss_nats"]
    train.evaluate(config, tmp_path / "4.pt", config.evaluations[0], FolderTrial(tmp_path / "test", ar))


def test_the_joint_loss_adds_the_weighted_surprisal_to_that_of_the_labels(ar):
    examples = load_examples(CONFIG.data, CONFIG.ar.features)
    batch = collate(examples.train[:3])
    recogniser = Recogniser(JOINT, len(examples.labels), load_ar(JOINT, FolderTrial(ar.parent, ar)))
    fits = all_fits(JOINT, recogniser.ar, examples)
    output = recogniser.train()(
        batch.frames, batch.num_frames, control(JOINT, fits), torch.rand(batch.frames.shape[:2])
    )
    added = epoch.added_losses(JOINT, output, batch, batch_size=3)
    predictions = recogniser.ar(batch.frames)[1].detach()
    expected = sum(
        0.5 * float((batch.frames[row, :length] - predictions[row, :length]).square().sum())
        for row, length in enumerate(batch.num_frames.tolist())
    )
    assert float(added.detach()) == pytest.approx(1e-3 * expected, rel=1e-5)
    assert not recogniser.ar.training and recogniser.network.training


def test_deterministic_routing_ignores_the_seed_and_stochastic_does_not(trained, ar):
    examples = load_examples(DATA, CONFIG.ar.features)
    batch = collate(examples.test)
    recogniser = Recogniser(CONFIG, len(examples.labels), load_ar(CONFIG, trained)).eval()
    fits = all_fits(CONFIG, recogniser.ar, examples)
    used = {}
    for evaluation in CONFIG.evaluations[:2]:
        for seed in (1, 2):
            draws = keyed_draws(batch, seed, evaluation.name)
            working = control(CONFIG, fits, evaluation)
            used[evaluation.name, seed] = recogniser(batch.frames, batch.num_frames, working, draws).used_big
    assert torch.equal(used["deterministic", 1], used["deterministic", 2])
    assert not torch.equal(used["stochastic", 1], used["stochastic", 2])


def test_ctc_losses_are_the_sums_over_alignments():
    log_probs = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    batch = Batch(("a", "b"), torch.zeros(2, 4, 1), torch.tensor([4, 3]), ((0, 1), (1,)))
    expected = []
    for row, (labels, length) in enumerate(zip(batch.labels, (4, 3), strict=True)):
        total = sum(
            math.exp(sum(float(log_probs[row, t, s]) for t, s in enumerate(alignment)))
            for alignment in itertools.product(range(3), repeat=length)
            if tuple(s for s, _ in itertools.groupby(alignment) if s != 2) == labels
        )
        expected.append(-math.log(total))
    assert ctc_losses(log_probs, batch.num_frames, batch.labels).tolist() == pytest.approx(expected)


def test_a_loss_that_is_no_number_stops_with_its_step(tmp_path, ar, monkeypatch):
    monkeypatch.setattr(epoch, "ctc_losses", lambda log_probs, *_: log_probs.sum() * math.nan)
    with pytest.raises(DivergedError, match="The loss is nan at epoch 1, batch 1"):
        train.train(CONFIG, FolderTrial(tmp_path, ar))


VARIANTS = {
    "random": {"controller": Random()},
    "always_big": {"controller": AlwaysBig()},
    "learned_paper": {"controller": Learned(penalty="paper", weight=1e-3)},
    "learned_released": {"controller": Learned(penalty="released", gate_input="pre_net", weight=1e-3)},
    "one_pass": {"controller": Surprisal(fit="one_pass_adam")},
    "deterministic": {"training_routing": "deterministic"},
    "frames": {"inputs": "frames"},
    **{
        f"model{n}": {
            "network": Convolutional(kind=f"model{n}", width=8, kernel_frames=3, big_hidden_size=9, dropout=0.1)
        }
        for n in (1, 2, 3)
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_trains_and_is_tested(tmp_path, ar, name):
    config = CONFIG.with_value("evaluations", (Evaluation(),)).with_value("training.num_epochs", 3)
    config = config.with_value("training.learning_rate", 0.01)
    for path, value in VARIANTS[name].items():
        config = config.with_value(path, value)
    trial = FolderTrial(tmp_path, ar)
    train.train(config, trial)
    assert trial.reports[3]["train_loss_nats"] < trial.reports[1]["train_loss_nats"]
    tested = FolderTrial(tmp_path, ar)
    train.evaluate(config, tmp_path / "3.pt", config.evaluations[0], tested)
    assert all(math.isfinite(value) for value in tested.reports[3].values())


def test_errors_of_each_utterance_add_up_to_the_error_rate(tmp_path, ar):
    trial, evaluation = FolderTrial(tmp_path, ar), CONFIG.evaluations[0]
    train.train(CONFIG, trial)
    tested = FolderTrial(tmp_path, ar)
    train.evaluate(CONFIG, trial.restore(), evaluation, tested)
    items = item_errors.read((tmp_path / item_errors.file_name(f"per@{evaluation.name}")).read_text(), "the file")
    utterances = {one.identity: one.speaker for one in load_examples(CONFIG.data, CONFIG.ar.features).test_utterances}
    assert {one.item: one.group for one in items} == utterances
    (metrics,) = tested.reports.values()
    assert sum(one.errors for one in items) / sum(one.length for one in items) == metrics["per"]


@pytest.mark.slow
def test_an_epoch_leaves_no_tensors_behind(tmp_path, ar):
    """The number of live tensors, and their size, after each of several epochs."""
    sizes = []

    class CountingTrial(FolderTrial):
        def report(self, metrics, *, step, checkpoint=None, artifacts=()):
            gc.collect()
            alive = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
            sizes.append((len(alive), sum(tensor.numel() for tensor in alive)))

    train.train(CONFIG.with_value("training.num_epochs", 5), CountingTrial(tmp_path, ar))
    assert sizes[2:] == [sizes[2]] * 4
