"""Whole training runs of very small networks: resumption to the last digit, metrics by their definition, budgets."""

import csv
import gc
import math

import numpy as np
import pytest
import torch

from search_spaces.act_sizes import PARITY
from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states, untimed
from trainables import checkpoint
from trainables.act import evaluation, iterations, time_penalty, train
from trainables.act.config import (
    ActConfig,
    Adaptive,
    Addition,
    Evaluation,
    Fixed,
    LearntTau,
    Logic,
    Optimisation,
    Parity,
    Sort,
    Text,
)
from trainables.act.metrics import METRICS
from trainables.act.network import Network
from trainables.act.tasks import batch as batches
from trainables.act.tasks import data
from trainables.errors import DivergedError, InputError

QUICK = Optimisation(learning_rate=1e-2, batch_size=12, num_iterations=50, report_every=20)
CONFIG = ActConfig(
    data=Logic(num_gates=3, num_vectors=3),
    cell="gru",
    hidden_size=12,
    halting=Adaptive(tau=LearntTau(mean_updates=1.5, rate=0.1), max_updates=4),
    training=QUICK,
    num_validation_sequences=40,
    evaluations=(Evaluation(num_sequences=60), Evaluation(name="other", num_sequences=70, seed=2)),
)
TASKS = {
    "parity": (Parity(num_bits=6), "rnn"),
    "logic": (Logic(num_gates=3, num_vectors=3), "lstm"),
    "addition": (Addition(num_digits=2, num_numbers=3), "lstm"),
    "sort": (Sort(num_items=4), "gru"),
    "text": (Text(num_steps=24, test_share=0.01), "lstm"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> FolderTrial:
    trial = FolderTrial(tmp_path_factory.mktemp("trained"))
    train.train(CONFIG, trial)
    return trial


WINDOWED = CONFIG.model_copy(update={"data": Text(num_steps=9), "cell": "lstm"}).with_value(
    "training.truncate_steps", 4
)


@pytest.mark.parametrize("config", [CONFIG, WINDOWED], ids=["budget", "text_in_windows"])
def test_a_resumed_run_equals_an_uninterrupted_one_in_all_digits(tmp_path, config):
    train.train(config, whole := FolderTrial(tmp_path / "whole"))
    cut = FolderTrial(tmp_path / "cut", cut_after=20)
    with pytest.raises(InterruptedTrialError):
        train.train(config, cut)
    resumed = FolderTrial(cut.folder)
    train.train(config, resumed)
    assert sorted(resumed.reports) == [40, 50]
    assert untimed(cut.reports | resumed.reports) == untimed(whole.reports)
    assert_equal_states(cut.folder / "50.pt", whole.folder / "50.pt")


def test_reports_come_before_training_in_between_and_at_the_end(trained):
    assert list(trained.reports) == [0, 20, 40, 50]
    assert train.num_steps(CONFIG) == 50
    assert set(trained.reports[0]) < set(trained.reports[50]) <= {metric.name for metric in METRICS}
    assert trained.reports[50]["train_loss_nats"] < trained.reports[20]["train_loss_nats"]


def test_seeds_differ_and_a_seed_repeats(tmp_path, trained):
    short = CONFIG.with_value("training.num_iterations", 20)
    again, other = FolderTrial(tmp_path / "again"), FolderTrial(tmp_path / "other")
    train.train(short, again)
    train.train(short.with_value("seed", 2), other)
    assert untimed(again.reports)[20] == untimed(trained.reports)[20]
    assert other.reports[20]["train_loss_nats"] != trained.reports[20]["train_loss_nats"]


def one_by_one(config: ActConfig, state, evaluation: Evaluation) -> dict[str, float]:
    """Each metric from its definition, one sequence at a time, in plain Python."""
    network = Network(config).eval()
    network.load_state_dict(state["network"])
    sequences = data.test_set(config, evaluation)
    nats, wrong_steps, asked_steps, wrong, asked, ponder, updates = 0.0, 0, 0, 0, 0, 0.0, []
    difficulties = []
    for row in range(len(sequences)):
        one = sequences.rows(slice(row, row + 1))
        run = network(one.inputs, one.num_steps, one.has_target)
        targets = one.targets[one.has_target].tolist()
        errors = []
        for log_probs, target in zip(run.log_probs.tolist(), targets, strict=True):
            nats -= sum(row[label] for row, label in zip(log_probs, target, strict=True))
            errors.append(any(max(row) != row[label] for row, label in zip(log_probs, target, strict=True)))
        wrong_steps, asked_steps = wrong_steps + sum(errors), asked_steps + len(errors)
        wrong, asked = wrong + any(errors), asked + bool(errors)
        length = one.num_steps.item()
        updates += run.num_updates[0, :length].tolist()
        ponder += float((run.num_updates + run.remainder.detach())[0, :length].sum())
        difficulties += one.difficulty[0, :length].tolist()
    found = {
        "test_loss_nats": nats / len(sequences),
        "step_error": wrong_steps / asked_steps,
        "mean_updates": sum(updates) / len(updates),
        "std_updates": float(np.std(updates)),
        "max_updates": max(updates),
        "p50_updates": float(np.median(updates)),
        "mean_ponder": ponder / len(updates),
    }
    for level in set(difficulties) - {0}:
        chosen = [n for n, difficulty in zip(updates, difficulties, strict=True) if difficulty == level]
        found[f"mean_updates_difficulty_{level}"] = sum(chosen) / len(chosen)
    if isinstance(config.data, Text):
        return found | {"bits_per_character": nats / asked_steps / math.log(2)}
    return found | {"sequence_error": wrong / asked}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_trained_and_tested_by_definition(tmp_path, task, monkeypatch):
    monkeypatch.setattr("trainables.act.evaluation.MAX_SEQUENCES", 23)
    the_data, cell = TASKS[task]
    config = CONFIG.model_copy(
        update={"data": the_data, "cell": cell, "halting": Adaptive(tau=1e-3, max_updates=5, halting_bias=-0.5)}
    ).with_value("training.num_iterations", 20)
    evaluation = config.evaluations[0]
    trial = FolderTrial(tmp_path)
    train.train(config, trial)
    train.evaluate(config, tmp_path / "20.pt", evaluation, tested := FolderTrial(tmp_path))
    (found,) = tested.reports.values()
    expected = one_by_one(config, checkpoint.load(tmp_path / "20.pt"), evaluation)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)
    assert {name for name in found if name.startswith("mean_updates_difficulty")} <= set(expected)
    assert found["valid_objective"] == pytest.approx(trial.reports[20]["valid_objective"], rel=1e-6)
    assert set(found) <= {metric.name for metric in METRICS}
    assert all(math.isfinite(value) for value in found.values())
    (figure,) = tmp_path.glob("*_test.png")
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_table_of_a_test_has_the_updates_and_errors_at_each_difficulty(tmp_path, trained):
    train.evaluate(CONFIG, trained.folder / "50.pt", CONFIG.evaluations[0], tested := FolderTrial(tmp_path))
    with (tmp_path / "difficulty_test.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["difficulty"] for row in rows] == ["1", "2", "3"]
    metrics = tested.reports[50]
    for row in rows:
        assert float(row["mean_updates"]) == metrics[f"mean_updates_difficulty_{row['difficulty']}"]
    wrong = sum(float(row["step_error"]) * int(row["num_steps"]) for row in rows)
    assert wrong / sum(int(row["num_steps"]) for row in rows) == pytest.approx(metrics["step_error"])


def test_the_table_of_a_text_has_each_byte_with_its_updates_surprisal_and_entropy(tmp_path):
    config = ActConfig(data=Text(num_steps=24), cell="rnn", hidden_size=8, training=QUICK)
    network = Network(config)
    state = checkpoint.save(tmp_path / "0.pt", {"network": network.state_dict(), "iteration": 0})
    train.evaluate(config, state, Evaluation(num_sequences=5), tested := FolderTrial(tmp_path))
    with (tmp_path / "passage_test.csv").open() as file:
        rows = list(csv.DictReader(file))
    sequence = data.test_set(config, Evaluation()).rows(slice(1))
    log_probs = network.eval()(sequence.inputs, sequence.num_steps, sequence.has_target).log_probs[:, 0].detach()
    assert [int(row["byte"]) for row in rows] == sequence.inputs[0].tolist()
    surprisals = [-log_probs[step, target].item() for step, target in enumerate(sequence.targets[0, :, 0])]
    assert [float(row["surprisal_nats"]) for row in rows] == pytest.approx(surprisals, rel=1e-5)
    entropies = torch.distributions.Categorical(logits=log_probs).entropy().tolist()
    assert [float(row["entropy_nats"]) for row in rows] == pytest.approx(entropies, rel=1e-5)
    assert 7 < tested.reports[0]["bits_per_character"] < 9


@pytest.mark.parametrize(
    ("halting", "expected"),
    [
        (Fixed(num_updates=2), 3.0),
        (Adaptive(tau=0.1), 3.0 + 0.1 * (4 + 1.5)),
        (Adaptive(tau=LearntTau(mean_updates=2.0)), 3.0),
        (Adaptive(tau=LearntTau(mean_updates=1.0)), 3.0 + 1000 * (2.0 - 1.02)),
    ],
)
def test_the_objective_by_hand(halting, expected):
    """One sequence of two steps, 1 and 3 updates with remainders 1 and .5, 1 and 2 nats."""
    results = evaluation.Results(
        num_steps=np.array([2]),
        num_updates=np.array([[1, 3]]),
        remainders=np.array([[1.0, 0.5]]),
        has_target=np.array([[True, True]]),
        is_right=np.array([[True, False]]),
        nats=np.array([[1.0, 2.0]]),
        entropies=np.zeros((1, 2)),
        difficulty=np.ones((1, 2), int),
        duration_s=np.ones(1),
    )
    assert evaluation.objective(CONFIG.with_value("halting", halting), results) == pytest.approx(expected)
    assert (results.step_error, results.sequence_error) == (0.5, 1.0)


def test_the_loss_is_the_cross_entropy_and_tau_times_the_ponder_cost_of_a_sequence(tmp_path):
    """One step of plain gradient descent from a known network, against autograd on the written-out loss."""
    config = CONFIG.with_value("halting", Adaptive(tau=0.3, max_updates=4, halting_bias=-1.0))
    torch.manual_seed(0)
    network, expected = Network(config), Network(config)
    expected.load_state_dict(network.state_dict())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    metrics, _ = iterations.train_until(config, network, optimizer, 0.3, 0, 1)
    batch = next(data.training_batches(config, [1]))
    run = expected(batch.inputs, batch.num_steps, batch.has_target)
    nats = torch.nn.functional.nll_loss(run.log_probs[:, 0], batch.targets[batch.has_target][:, 0], reduction="sum")
    loss = (nats + 0.3 * (run.num_updates.sum() + run.remainder.sum())) / len(batch)
    torch.optim.SGD(expected.parameters(), lr=0.1).zero_grad()
    loss.backward()
    for parameter, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter, other - 0.1 * other.grad)
    assert metrics["train_loss_nats"] == pytest.approx(nats.item() / len(batch))
    total = sum(float(parameter.grad.square().sum()) for parameter in expected.parameters())
    assert metrics["gradient_norm"] == pytest.approx(math.sqrt(total), rel=1e-5)


def test_gradients_do_not_reach_back_over_a_window():
    """The gradient of a truncated pass is the sum over windows, each from the detached state of the one before."""
    config = ActConfig(data=Sort(num_items=3), cell="lstm", hidden_size=6, training=QUICK).with_value(
        "training.truncate_steps", 2
    )
    torch.manual_seed(0)
    network, expected = Network(config), Network(config)
    expected.load_state_dict(network.state_dict())
    iterations.train_until(config, network, torch.optim.SGD(network.parameters(), lr=1.0), 0.01, 0, 1)
    batch, state, total = next(data.training_batches(config, [1])), None, torch.zeros(())
    for start in (0, 2, 4):
        steps = slice(start, start + 2)
        wanted = batch.has_target[:, steps]
        run = expected(batch.inputs[:, steps], (batch.num_steps - start).clamp(0, 2), wanted, state)
        losses = evaluation.cross_entropies(run.log_probs, batch.targets[:, steps][wanted])
        total = total + losses.sum() + 0.01 * (run.num_updates + run.remainder).sum()
        state = tuple(part.detach() for part in run.state)
    (total / len(batch)).backward()
    for parameter, other in zip(network.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter, other - other.grad)


def test_windows_as_long_as_the_sequence_change_nothing(tmp_path, trained):
    config = CONFIG.with_value("training.truncate_steps", 3)
    train.train(config, trial := FolderTrial(tmp_path))
    assert untimed(trial.reports) == untimed(trained.reports)


def test_a_learnt_tau_moves_as_its_formula_says():
    halting = Adaptive(tau=LearntTau(mean_updates=2.0, start=0.01, rate=0.1))
    assert time_penalty.first_tau(halting) == 0.01
    assert time_penalty.next_tau(halting, 0.01, 3.0) == pytest.approx(0.01 * math.exp(0.05))
    assert time_penalty.next_tau(halting, 0.01, 1.0) == pytest.approx(0.01 * math.exp(-0.05))
    assert time_penalty.next_tau(halting, 10.0, 3.0) == pytest.approx(10.0)
    assert time_penalty.next_tau(halting, 1e-6, 1.0) == pytest.approx(1e-6)
    strict = Adaptive(tau=LearntTau(mean_updates=1, rate=1), max_updates=10_000)
    assert time_penalty.next_tau(strict, 1e-3, 9000.0) == pytest.approx(10.0)
    assert time_penalty.next_tau(Adaptive(tau=0.2), 0.2, 99.0) == time_penalty.first_tau(Adaptive(tau=0.2)) == 0.2
    assert time_penalty.next_tau(Fixed(), 0.0, 1.0) == time_penalty.first_tau(Fixed()) == 0.0


@pytest.mark.slow
def test_a_budget_holds_where_the_task_alone_would_exceed_it(tmp_path):
    found = {}
    for name, tau in {"free": 0.0, "budget": LearntTau(mean_updates=1.6, rate=0.02, start=1e-2)}.items():
        config = CONFIG.with_value("halting", Adaptive(tau=tau, max_updates=6, halting_bias=-0.5))
        config = config.with_value("training.num_iterations", 500).with_value("training.report_every", 100)
        train.train(config, trial := FolderTrial(tmp_path / name))
        found[name] = trial.reports[500]["train_mean_updates"]
    assert found["free"] > 2.5
    assert 1.2 < found["budget"] < 1.6 * 1.02


def test_a_budget_that_cannot_be_exceeded_is_refused():
    with pytest.raises(
        InputError, match=r"`halting.adaptive`: tau.mean_updates must be at most max_updates = 4, but got 5\.$"
    ):
        CONFIG.with_value("halting", {"kind": "adaptive", "max_updates": 4, "tau": {"mean_updates": 5}})


def test_sequences_that_ask_for_nothing_are_refused_before_training(tmp_path):
    config = CONFIG.with_value("data", Addition()).with_value("evaluations", (Evaluation(num_sequences=1, seed=2),))
    with pytest.raises(
        InputError, match="num_sequences of the evaluation 'test' must be larger: none of its 1 sequences"
    ):
        train.train(config, trial := FolderTrial(tmp_path))
    assert trial.reports == {}


def test_a_text_too_short_is_known_by_its_fingerprint(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("short")
    with pytest.raises(InputError, match="The text must be longer"):
        train.fingerprint(CONFIG.with_value("data", Text(path=path)))


@pytest.mark.slow
@pytest.mark.long
def test_with_act_a_plain_recurrent_network_learns_parity_of_16_bits_and_without_it_does_not(tmp_path):
    """The first one ends once it has learnt, and the second one after as many iterations."""

    class Learning(FolderTrial):
        def report(self, metrics, **options):
            super().report(metrics, **options)
            if metrics["valid_sequence_error"] < 0.2:
                raise InterruptedTrialError

    config = PARITY.laptop.with_value("training.report_every", 500)
    with pytest.raises(InterruptedTrialError):
        train.train(config, learning := Learning(tmp_path / "act"))
    without = config.with_value("halting", Fixed()).with_value("training.num_iterations", max(learning.reports))
    train.train(without, trial := FolderTrial(tmp_path / "none"))
    assert min(report["valid_sequence_error"] for report in trial.reports.values()) > 0.4


def test_a_loss_that_is_no_number_stops_with_its_iteration(tmp_path, monkeypatch):
    monkeypatch.setattr(iterations, "cross_entropies", lambda log_probs, targets: log_probs.sum((1, 2)) * math.nan)
    with pytest.raises(DivergedError, match="The loss is nan and its gradient nan at iteration 1"):
        train.train(CONFIG, FolderTrial(tmp_path))


def test_iterations_leave_no_tensor_behind():
    def alive() -> tuple[int, int]:
        gc.collect()
        tensors = [thing for thing in gc.get_objects() if isinstance(thing, torch.Tensor)]
        return len(tensors), sum(tensor.numel() for tensor in tensors)

    network = Network(CONFIG)
    optimizer = torch.optim.Adam(network.parameters())
    iterations.train_until(CONFIG, network, optimizer, 1e-3, 0, 2)
    before = alive()
    iterations.train_until(CONFIG, network, optimizer, 1e-3, 2, 12)
    assert alive() == before


@pytest.mark.gpu
def test_a_gpu_learns_what_the_cpu_learns(tmp_path, trained):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    train.train(CONFIG, trial := FolderTrial(tmp_path))
    assert trial.reports[50]["train_loss_nats"] == pytest.approx(trained.reports[50]["train_loss_nats"], rel=1e-2)


def test_the_majoritys_error_is_that_of_the_answer_that_is_right_most_often():
    """Of five asked steps two want 1 0: a constant is right in two of five; what is not asked does not count."""
    none = batches.NO_TARGET
    targets = torch.tensor([[[1, 0], [1, 0], [none, none]], [[0, 0], [1, 1], [0, 1]]])
    sequences = batches.Batch(torch.zeros(2, 3, 1), torch.tensor([3, 3]), targets, torch.ones(2, 3, dtype=torch.int64))
    assert evaluation.majority_step_error(sequences) == pytest.approx(3 / 5)


AS_LARGE = Evaluation(num_sequences=64)  # as many as `examples` gives


@pytest.mark.parametrize(
    "config",
    [
        CONFIG.model_copy(update={"data": Parity(num_bits=6), "cell": "rnn", "evaluations": (AS_LARGE,)}),
        CONFIG.model_copy(update={"evaluations": (AS_LARGE,)}),
    ],
    ids=["parity", "logic"],
)
def test_an_audit_tests_the_predictions_that_the_reported_error_and_cost_are_of(tmp_path, config):
    train.train(config, trial := FolderTrial(tmp_path / "trained"))
    train.evaluate(config, trial.restore(), AS_LARGE, tested := FolderTrial(tmp_path / "tested"))
    (reported,) = tested.reports.values()
    examples = train.examples(config, "test")
    predictions = train.predict(config, trial.restore(), AS_LARGE, trial, examples)
    wrong, nats = 0, 0.0
    for example, prediction in zip(examples, predictions, strict=True):
        asked = np.isfinite(np.asarray(prediction.probabilities)).all(
            axis=tuple(range(1, prediction.probabilities.ndim))
        )
        pairs = zip(np.asarray(prediction.probabilities)[asked], np.asarray(example.targets)[asked], strict=True)
        errors = []
        for rows, labels in pairs:  # one label a step, or several
            right = [(row[label], row.max()) for row, label in zip(rows, np.atleast_1d(labels), strict=True)]
            nats -= sum(math.log(p) for p, _ in right)
            errors.append(any(p != best for p, best in right))
        wrong += any(errors)
    updates = np.concatenate([prediction.decisions for prediction in predictions])
    assert reported["sequence_error"] == wrong / 64
    assert reported["test_loss_nats"] == pytest.approx(nats / 64, rel=1e-5)
    assert reported["mean_updates"] == pytest.approx(updates.mean(), rel=1e-6)
    assert reported["macs_per_sequence"] == pytest.approx(sum(one.macs for one in predictions) / 64, rel=1e-6)
