"""PonderNet and early exit in a recurrent network: rows that leave are where a full unroll has them; cost; the loss."""

import math

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from search_spaces.find import find_sweep
from tests.trainables.folder_trial import FolderTrial, InterruptedTrialError, assert_equal_states, untimed
from trainables.act import cost, evaluation, iterations, train
from trainables.act.config import (
    ActConfig,
    Addition,
    Difference,
    EarlyExit,
    Entropy,
    Evaluation,
    Logic,
    Mass,
    Optimisation,
    Parity,
    PonderNet,
    Sort,
    Text,
)
from trainables.act.network import Network, sureness
from trainables.act.tasks import data, parity
from trainables.conditional.ponder_net import drawn_update
from trainables.config import content_hash
from trainables.errors import InputError

KINDS = ("rnn", "gru", "lstm")
MOST = 6
HALTINGS = {"ponder_net": PonderNet(max_updates=MOST), "early_exit": EarlyExit(max_updates=MOST)}
QUICK = Optimisation(learning_rate=1e-2, batch_size=12, num_iterations=20, report_every=10)


def config(halting, cell: str = "gru", task=None, **values) -> ActConfig:
    return ActConfig(
        data=task or Logic(num_gates=3, num_vectors=3),
        cell=cell,
        hidden_size=8,
        halting=halting,
        training=QUICK,
        num_validation_sequences=30,
        **{"evaluations": (Evaluation(num_sequences=40),), **values},
    )


def made(settings: ActConfig) -> tuple[Network, data.Batch]:
    """A network in float64 whose rows differ in what they do, and sequences of all lengths."""
    torch.manual_seed(1)
    network = Network(settings).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)
    sequences = data.validation_set(settings)
    return network, data.Batch(sequences.inputs.double(), sequences.num_steps, sequences.targets, sequences.difficulty)


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("kind", HALTINGS)
def test_all_updates_of_all_steps_are_the_cell_applied_so_often(cell, kind):
    """One sequence at a time, in a plain loop; what goes on is the state behind the drawn update."""
    network, batch = made(config(HALTINGS[kind], cell))
    draws = torch.rand(batch.targets.shape[:2], dtype=torch.float64)
    whole = network.train()(batch.inputs, batch.num_steps, batch.has_target, None, draws)
    update, rows = network.cell.begin(), iter(range(len(whole.log_probs)))
    for i in range(len(batch)):
        state = (torch.zeros(1, 8, dtype=torch.float64),) * network.cell.num_states
        for step in range(int(batch.num_steps[i])):
            projected = batch.inputs[i, step : step + 1] @ network.input_weight.t() + network.input_bias
            states = [update(projected + network.first_flag, state)]
            for _ in range(MOST - 1):
                states.append(update(projected, states[-1]))
            visible = torch.cat([one[0] for one in states])
            log_p = network._log_p(visible[None])
            row = next(rows)
            torch.testing.assert_close(whole.log_probs[row], network._read_out(visible))
            torch.testing.assert_close(whole.log_p_wanted[row], log_p[0])
            state = states[drawn_update(log_p, draws[i, step : step + 1]).item()]
        torch.testing.assert_close([part[i] for part in whole.state], [part[0] for part in state])
    assert whole.num_updates.sum() == MOST * batch.num_steps.sum()


@pytest.mark.parametrize("cell", KINDS)
def test_rows_that_ponder_net_halts_are_where_the_full_unroll_has_them(cell):
    network, batch = made(config(HALTINGS["ponder_net"], cell))
    arguments = (batch.inputs, batch.num_steps, batch.has_target, None)
    draws = torch.rand(batch.targets.shape[:2], dtype=torch.float64)
    with torch.no_grad():
        whole, halted = network.train()(*arguments, draws), network.eval()(*arguments, draws)
    at = drawn_update(whole.log_p_wanted, draws[batch.has_target])
    assert torch.equal(halted.num_updates[batch.has_target], at + 1) and len(at.unique()) > 3
    torch.testing.assert_close(halted.log_probs, whole.log_probs[torch.arange(len(at)), at])
    torch.testing.assert_close(halted.state, whole.state)
    assert (halted.remainder == (halted.num_updates > 0)).all()


@pytest.mark.parametrize("halts", [Difference(above=0.9), Entropy(below=0.3)], ids=lambda one: one.kind)
@pytest.mark.parametrize("cell", KINDS)
def test_rows_exit_at_the_first_update_that_is_sure_and_that_state_goes_on(cell, halts):
    network, batch = made(config(HALTINGS["early_exit"], cell))
    with torch.no_grad():
        network.readout.weight.mul_(4)
        run = network.eval()(batch.inputs, batch.num_steps, batch.has_target, None, None, halts)
        update, rows, seen = network.cell.begin(), iter(range(len(run.log_probs))), set()
        for i in range(len(batch)):
            state = (torch.zeros(1, 8, dtype=torch.float64),) * network.cell.num_states
            for step in range(int(batch.num_steps[i])):
                projected = batch.inputs[i, step : step + 1] @ network.input_weight.t() + network.input_bias
                for n in range(1, MOST + 1):
                    state = update(projected + network.first_flag * (n == 1), state)
                    p = network._read_out(state[0])[0, 0].exp().tolist()
                    is_sure = (
                        abs(p[0] - p[1]) > 0.9
                        if halts.kind == "difference"
                        else -sum(one * math.log(one) for one in p if one > 0) < 0.3
                    )
                    if is_sure:
                        break
                seen.add(n)
                assert run.num_updates[i, step] == n
                torch.testing.assert_close(run.log_probs[next(rows)], network._read_out(state[0])[0])
            torch.testing.assert_close([part[i] for part in run.state], [part[0] for part in state])
    assert len(seen) > 2


def test_without_a_rule_an_exit_takes_all_updates_and_a_row_with_several_outputs_waits_for_all():
    network, batch = made(config(HALTINGS["early_exit"]))
    run = network.eval()(batch.inputs, batch.num_steps, batch.has_target)
    assert set(run.num_updates[batch.has_target].tolist()) == {MOST}
    log_probs = torch.tensor([[[0.99, 0.01], [0.5, 0.5]], [[0.99, 0.01], [0.01, 0.99]]]).log()
    assert sureness(Difference(above=0.9))(log_probs).tolist() == [False, True]
    assert sureness(Entropy(below=0.3))(log_probs).tolist() == [False, True]


def test_without_draws_ponder_net_halts_at_the_median_as_under_mass():
    settings = config(HALTINGS["ponder_net"])
    network, batch = made(settings)
    with torch.no_grad():
        run = network.eval()(batch.inputs, batch.num_steps, batch.has_target)
    network, sequences = network.float(), data.validation_set(settings)
    found = evaluation.score(network, sequences, Mass())
    assert (found.num_updates == run.num_updates.numpy()).mean() > 0.99
    drawn = evaluation.score(network, sequences)
    assert (drawn.num_updates != found.num_updates).any()
    assert (drawn.num_updates == evaluation.score(network, sequences).num_updates).all()


CASES = [
    ("ponder_net", None),
    ("ponder_net", Mass()),
    ("early_exit", None),
    ("early_exit", Difference(above=0.4)),
]


@pytest.mark.parametrize(("kind", "halts"), CASES)
@pytest.mark.parametrize(("task", "cell"), [(Parity(num_bits=7), "rnn"), (Sort(num_items=3), "lstm")])
def test_multiply_accumulates_are_those_that_torch_counts(kind, halts, task, cell):
    settings = config(HALTINGS[kind], cell, task)
    sequences = data.validation_set(settings)
    torch.manual_seed(0)
    network = Network(settings)
    with FlopCounterMode(display=False) as counter:
        results = evaluation.score(network, sequences, halts)
    assert evaluation.macs_per_sequence(settings, results, halts) == counter.get_total_flops() / 2 / 30


@pytest.mark.parametrize("kind", HALTINGS)
def test_training_is_charged_for_all_updates_as_torch_counts_them(kind):
    settings = config(HALTINGS[kind], "lstm", Sort(num_items=3))
    batch = data.validation_set(settings)
    network = Network(settings).train()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run = network(batch.inputs, batch.num_steps, batch.has_target)
    steps, targets = int(batch.num_steps.sum()), int(batch.has_target.sum())
    assert run.num_updates.sum() == MOST * steps
    found = cost.training_macs(settings, steps, MOST * steps, targets)
    assert found == counter.get_total_flops() / 2


@pytest.mark.parametrize("kind", HALTINGS)
def test_the_loss_is_the_written_out_one(kind):
    """sum_n p_n L_n at every target, and PonderNet's beta times the divergence at every step."""
    halting = PonderNet(max_updates=MOST, beta=0.5, lambda_p=0.3) if kind == "ponder_net" else HALTINGS[kind]
    settings = config(halting, "rnn")
    network, batch = made(settings)
    run = network.train()(batch.inputs, batch.num_steps, batch.has_target)
    targets = batch.targets[batch.has_target]
    losses, total = iterations.losses_of(settings, run, targets, 0.0)
    weights = run.log_p_wanted.exp()
    if kind == "early_exit":
        torch.testing.assert_close(weights[0], torch.arange(1.0, MOST + 1).double() / (MOST * (MOST + 1) / 2))
    expected = -sum(
        weights[row, n] * run.log_probs[row, n, 0, target] for row, (target,) in enumerate(targets.tolist())
        for n in range(MOST)
    )  # fmt: skip
    torch.testing.assert_close(losses.sum(), expected)
    if kind == "ponder_net":
        prior = np.array([0.3 * 0.7**n for n in range(MOST)])
        p = run.log_p.exp().detach().numpy()
        expected = expected + 0.5 * float((p * np.log(p / (prior / prior.sum()))).sum())
    torch.testing.assert_close(total, expected)


RESUMED = {
    "ponder_net": (PonderNet(max_updates=4), (Evaluation(num_sequences=40), Evaluation(name="median", halts=Mass()))),
    "early_exit": (
        EarlyExit(max_updates=4),
        (Evaluation(num_sequences=40), Evaluation(name="sure", num_sequences=40, halts=Difference(above=0.2))),
    ),
}


@pytest.mark.parametrize("kind", RESUMED)
def test_a_resumed_run_equals_an_uninterrupted_one_and_each_rule_chooses_its_checkpoint(tmp_path, kind):
    halting, evaluations = RESUMED[kind]
    settings = config(halting, evaluations=evaluations)
    train.train(settings, whole := FolderTrial(tmp_path / "whole"))
    with pytest.raises(InterruptedTrialError):
        train.train(settings, cut := FolderTrial(tmp_path / "cut", cut_after=10))
    train.train(settings, resumed := FolderTrial(cut.folder))
    assert untimed(cut.reports | resumed.reports) == untimed(whole.reports)
    assert_equal_states(cut.folder / "20.pt", whole.folder / "20.pt")
    chosen = train.selection(settings)
    assert chosen == {"test": "valid_objective", evaluations[1].name: f"valid_objective@{evaluations[1].name}"}
    assert set(chosen.values()) < set(whole.reports[20])
    assert whole.reports[20]["train_mean_updates"] == 4
    train.evaluate(settings, whole.folder / "20.pt", evaluations[1], tested := FolderTrial(tmp_path / "tested"))
    assert tested.reports[20]["macs_per_sequence"] < whole.reports[20]["train_macs_per_sequence"]
    found = whole.reports[20][f"valid_objective@{evaluations[1].name}"]
    assert tested.reports[20]["valid_objective"] == pytest.approx(found, rel=1e-6)
    cost = whole.reports[20][f"valid_macs_per_sequence@{evaluations[1].name}"]
    assert tested.reports[20]["valid_macs_per_sequence"] == cost != whole.reports[20]["valid_macs_per_sequence"]


def test_an_evaluation_of_a_harder_task_is_tested_on_it(tmp_path):
    easy, hard = (Parity(num_bits=8, min_active=low, max_active=high) for low, high in ((1, 4), (5, 8)))
    evaluations = (Evaluation(num_sequences=200), Evaluation(name="harder", num_sequences=200, data=hard))
    settings = config(PonderNet(max_updates=3), "rnn", easy, evaluations=evaluations)
    assert set(data.test_set(settings, evaluations[0]).difficulty.unique().tolist()) == {1, 2, 3, 4}
    assert set(data.test_set(settings, evaluations[1]).difficulty.unique().tolist()) == {5, 6, 7, 8}
    assert set(next(data.training_batches(settings, [1])).difficulty.unique().tolist()) <= {1, 2, 3, 4}
    train.train(settings, trial := FolderTrial(tmp_path))
    train.evaluate(settings, tmp_path / "20.pt", evaluations[1], trial)
    assert {"mean_updates_difficulty_5", "mean_updates_difficulty_8"} < set(trial.reports[20])
    assert "mean_updates_difficulty_4" not in trial.reports[20]


def test_parity_with_all_entries_is_what_it_was_and_its_key_too():
    """The key was recorded before there was a range."""
    assert content_hash(Parity(num_bits=16)) == "35bb44769cb2811b"
    assert content_hash(Evaluation()) == "3c55b0cca7be7081"
    plain = parity.make(Parity(num_bits=6), 50, np.random.default_rng(1))
    ranged = parity.make(Parity(num_bits=6, max_active=6), 50, np.random.default_rng(1))
    assert torch.equal(plain.inputs, ranged.inputs)


MISFITS = [
    (Parity(num_bits=8), Parity(num_bits=9), "its num_bits is 9 and that of the trained task 8"),
    (Parity(num_bits=8), Sort(num_items=4), "its kind is sort and that of the trained task parity"),
    (Logic(num_gates=3), Logic(num_gates=4), "its num_gates is 4 and that of the trained task 3"),
    (Addition(num_digits=3), Addition(num_digits=2), "its num_digits is 2 and that of the trained task 3"),
    (Addition(num_numbers=5), Addition(num_numbers=20), "its num_sum_digits is 7 and that of the trained task 6"),
    (Sort(num_items=3), Sort(num_items=4), "its num_items is 4 and that of the trained task 3"),
    (Text(), Sort(num_items=3), "its kind is sort and that of the trained task text"),
]


@pytest.mark.parametrize(("trained", "tested", "said"), MISFITS)
def test_a_task_that_the_network_cannot_read_is_refused_with_its_config(trained, tested, said):
    rule = "`data` of the evaluation 'one' must have the inputs and outputs of the trained task"
    with pytest.raises(InputError, match=f"{rule}, but {said}; .* set `data` and the `data` of `evaluations` alike"):
        ActConfig(data=trained).with_value("evaluations", (Evaluation(name="one", data=tested),))
    assert data.sizes(trained) != data.sizes(tested)


FITS = [
    (Logic(num_vectors=3), Logic(num_vectors=30)),
    (Addition(num_numbers=2), Addition(num_numbers=10)),
    (Parity(), Parity(min_active=40)),
]


@pytest.mark.parametrize(("trained", "tested"), FITS)
def test_a_harder_task_of_the_same_sizes_is_not_refused(trained, tested):
    ActConfig(data=trained, evaluations=(Evaluation(data=tested),))
    assert data.sizes(trained) == data.sizes(tested)


def test_a_longer_parity_is_refused_where_its_harder_evaluation_stays_short():
    sweep = find_sweep("act.halting_parity_laptop", smoke=True)
    with pytest.raises(InputError, match=r"the evaluation 'harder'.* num_bits is 16 and .* 32; .* of `evaluations`"):
        sweep.with_values({"data.num_bits": 32})


def test_a_rule_of_another_halting_and_a_range_out_of_order_are_refused():
    settings = config(PonderNet(), "rnn")
    with pytest.raises(
        InputError, match=r"`halts` of the evaluation 'one' must be of halting ponder_net, but got diff"
    ):
        settings.with_value("evaluations", (Evaluation(name="one", halts=Difference(above=0.5)),))
    with pytest.raises(InputError, match="must be in order and at most num_bits = 64, but got 5 and 3"):
        ActConfig().with_value("data", {"kind": "parity", "min_active": 5, "max_active": 3})
    with pytest.raises(InputError, match="must be in order and at most num_bits = 64, but got 1 and 65"):
        ActConfig().with_value("data.max_active", 65)
