"""Adaptive Computation Time against a scalar reference, its definition, and a batch in which no row ever leaves."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.trainables.conditional.scalar_reference import Weights, run
from trainables.act.config import ActConfig, Adaptive, Fixed, Parity
from trainables.act.network import Network
from trainables.act.tasks.batch import Batch
from trainables.conditional.adaptive_computation_time import Limits
from trainables.conditional.recurrent_cells import Slopes, TanhCell
from trainables.conditional.recurrent_ponder import ponder

KINDS = ("rnn", "gru", "lstm")
HIDDEN, INPUTS = 5, 3
EXACT = {"rtol": 0, "atol": 1e-10}


def network(kind: str, seed: int, halting: Adaptive | Fixed | None = None, scale: float = 2.0) -> Network:
    """In float64, with weights large enough that the numbers of updates vary."""
    config = ActConfig(
        data=Parity(num_bits=INPUTS), cell=kind, hidden_size=HIDDEN, halting=halting or Adaptive(max_updates=6)
    )
    torch.manual_seed(seed)
    made = Network(config).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(scale)
        if isinstance(config.halting, Adaptive):
            made.halting.weight.mul_(8)
            made.halting.bias.sub_(1)
    return made


def weights_of(made: Network, gradients: bool = False) -> Weights:
    """The network's parameters, or their gradients, as plain numbers."""

    def plain(parameter):
        return (parameter.grad if gradients else parameter).tolist()

    return Weights(
        input_weight=plain(made.input_weight),
        first_flag=plain(made.first_flag),
        input_bias=plain(made.input_bias),
        recurrent_weight=plain(made.cell.recurrent.weight),
        recurrent_bias=plain(made.cell.recurrent.bias),
        halting_weight=plain(made.halting.weight)[0],
        halting_bias=plain(made.halting.bias)[0],
        output_weight=plain(made.readout.weight),
        output_bias=plain(made.readout.bias),
    )


def sequences(seed: int, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    inputs = torch.randn(len(lengths), max(lengths), INPUTS, dtype=torch.float64)
    num_steps = torch.tensor(lengths)
    return inputs * (torch.arange(max(lengths)) < num_steps[:, None])[:, :, None], num_steps


def logits(log_probs: torch.Tensor) -> torch.Tensor:
    """The one number that was read out: log p(1) - log p(0)."""
    return log_probs[:, 0, 1] - log_probs[:, 0, 0]


def compare_with_reference(kind: str, made: Network, lengths: list[int], seed: int) -> list[list[int]]:
    """Checks every sequence of a padded batch, forward and backward; returns the numbers of updates."""
    inputs, num_steps = sequences(seed, lengths)
    inputs.requires_grad_()
    wanted = torch.arange(max(lengths)) < num_steps[:, None]
    output_weights = torch.randn(wanted.shape, dtype=torch.float64)
    state_weights = torch.randn(len(lengths), made.cell.num_states * HIDDEN, dtype=torch.float64)
    ponder_weight = 0.7
    result = made(inputs, num_steps, wanted)
    loss = (
        (logits(result.log_probs) * output_weights[wanted]).sum()
        + (torch.cat(result.state, 1) * state_weights).sum()
        + ponder_weight * (result.num_updates + result.remainder).sum()
    )
    loss.backward()
    halting = made.config.halting
    total, rows, found_outputs = 0.0, [], list(logits(result.log_probs).split(lengths))
    for row, length in enumerate(lengths):
        expected = run(
            kind,
            weights_of(made),
            inputs[row, :length].tolist(),
            halting.epsilon,
            halting.max_updates,
            [[w] for w in output_weights[row, :length].tolist()],
            state_weights[row].tolist(),
            ponder_weight,
        )
        total += expected.loss
        rows.append(expected)
        assert result.num_updates[row].tolist() == expected.num_updates + [0] * (max(lengths) - length)
        torch.testing.assert_close(
            result.remainder[row, :length], torch.tensor(expected.remainders, dtype=torch.float64), **EXACT
        )
        torch.testing.assert_close(
            found_outputs[row], torch.tensor(expected.outputs, dtype=torch.float64)[:, 0], **EXACT
        )
        state = torch.cat(result.state, 1)[row]
        torch.testing.assert_close(state, torch.tensor(expected.final_state, dtype=torch.float64), **EXACT)
        gradient = torch.tensor(expected.input_gradients, dtype=torch.float64)
        torch.testing.assert_close(inputs.grad[row, :length], gradient, **EXACT)
    assert loss.item() == pytest.approx(total, abs=1e-10)
    found = vars(weights_of(made, gradients=True))
    for name, gradient in found.items():
        expected_sum = sum(torch.tensor(vars(row.gradients)[name], dtype=torch.float64) for row in rows)
        torch.testing.assert_close(torch.tensor(gradient, dtype=torch.float64), expected_sum, **EXACT)
    return [row.num_updates for row in rows]


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    epsilon=st.sampled_from((0.01, 0.1, 0.3)),
    max_updates=st.integers(1, 7),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_values_and_gradients_are_those_of_the_scalar_reference(kind, seed, epsilon, max_updates, lengths):
    made = network(kind, seed, Adaptive(epsilon=epsilon, max_updates=max_updates))
    compare_with_reference(kind, made, lengths, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_is_met_where_rows_halt_at_once_in_between_and_at_the_limit(kind):
    seen = set()
    for seed in range(6):
        found = compare_with_reference(kind, network(kind, seed), [4, 2, 4, 3], seed)
        seen |= set(itertools.chain(*found))
    assert {1, 6} < seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bias", "epsilon", "num_updates"),
    [
        (0.0, 0.0, 2),  # 1/2 + 1/2 = 1: a tie with the threshold halts
        (0.0, 0.5, 1),  # 1/2 = 1 - 1/2
        (0.0, 0.25, 2),
        (math.log(3.0), 0.25, 1),  # 3/4 = 1 - 1/4
        (-40.0, 0.01, 6),  # never: the limit
        (40.0, 0.01, 1),  # h = 1 - 4e-18 rounds to 1
        (4.59, 0.01, 2),  # .98994 < .99
        (4.60, 0.01, 1),  # .99005 >= .99
    ],
)
def test_ties_and_the_edge_of_epsilon_halt_as_the_definition_says(kind, bias, epsilon, num_updates):
    made = network(kind, 3, Adaptive(epsilon=epsilon, max_updates=6))
    with torch.no_grad():
        made.halting.weight.zero_()
        made.halting.bias.fill_(bias)
    found = compare_with_reference(kind, made, [3, 1], 3)
    assert set(itertools.chain(*found)) == {num_updates}


class Counting(TanhCell):
    """A cell whose state is which update it is, as one of `NUM_COUNTED` units, and in the last unit its number."""

    def __init__(self):
        super().__init__(1)
        self.recurrent = nn.Linear(NUM_COUNTED + 1, 1).double()

    def with_bias(self, projected, bias):
        return projected

    def of_inputs(self, of_gates):
        return of_gates

    def advance(self, inputs, before, columns, bias):
        number = int(before[0][0, -1]) + 1
        state = torch.zeros_like(before[0])
        state[:, number - 1], state[:, -1] = 1, number
        return (state,), ()

    def slopes(self, before, after, kept, of_after):
        gates = torch.zeros(len(after[0]), 1, dtype=torch.float64)
        return Slopes(gates, (gates,))

    def go_back(self, of_after, *parts):
        return ()


NUM_COUNTED = 6


def pondered(h_logits: list[float]):
    """One row whose halting probabilities are given by the weights of its halting unit: those, and what came out."""
    halting = nn.Linear(NUM_COUNTED + 1, 1).double()
    nn.init.zeros_(halting.bias)
    with torch.no_grad():
        halting.weight.zero_()
        halting.weight[0, : len(h_logits)] = torch.tensor(h_logits)
    zeros = torch.zeros(1, NUM_COUNTED + 1, dtype=torch.float64)
    flag = torch.zeros(1, dtype=torch.float64)
    done = ponder(Counting(), zeros[:, :1], [1], flag, (zeros,), halting, Limits(0.01, NUM_COUNTED))
    return halting.weight, done


def slopes_of(weight: torch.Tensor, num_updates: int) -> torch.Tensor:
    """The gradients of the halting probabilities of the first updates."""
    probabilities = torch.sigmoid(weight.detach()[0, :num_updates])
    return weight.grad[0, :num_updates] / (probabilities * (1 - probabilities))


def test_the_gradient_of_the_ponder_cost_is_minus_one_before_n_and_zero_at_n():
    """rho = N + R and R = 1 - h^1 - ... - h^{N-1}."""
    weight, done = pondered([-1.0, -1.0, 0.5, 3.0, 9.0])
    assert done.num_updates.item() == 3
    done.remainder.backward()
    torch.testing.assert_close(slopes_of(weight, 5), torch.tensor([-1.0, -1.0, 0.0, 0.0, 0.0], dtype=torch.float64))


def test_the_gradient_of_the_mixture_is_the_difference_to_the_last_state():
    """d s / d h^n = s^n - s^N; the states are 1, 2, 3, so h^1 has 1 - 3 and h^2 has 2 - 3."""
    weight, done = pondered([-1.0, -1.0, 0.5, 3.0])
    done.states[0][:, -1].sum().backward()
    torch.testing.assert_close(slopes_of(weight, 4), torch.tensor([-2.0, -1.0, 0.0, 0.0], dtype=torch.float64))
    h = torch.sigmoid(weight.detach()[0])
    p = [*h[:2].tolist(), 1 - h[:2].sum().item()]
    assert done.states[0][0, -1].item() == pytest.approx(p[0] * 1 + p[1] * 2 + p[2] * 3, abs=1e-14)


def test_a_row_that_halts_at_once_has_remainder_one():
    _, done = pondered([5.0, 0.0])
    assert (done.num_updates.item(), done.remainder.item(), done.states[0][0, -1].item()) == (1, 1.0, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_gradcheck_passes_away_from_the_switches(kind):
    made = network(kind, 1, scale=1.0)
    inputs, num_steps = sequences(1, [3, 2])
    wanted = torch.arange(3) < num_steps[:, None]
    names, values = zip(*made.named_parameters(), strict=True)

    def outputs(inputs, *values):
        result = torch.func.functional_call(made, dict(zip(names, values, strict=True)), (inputs, num_steps, wanted))
        return result.log_probs, result.remainder, *result.state

    assert made(inputs, num_steps, wanted).num_updates.max() > 1
    assert torch.autograd.gradcheck(outputs, (inputs.requires_grad_(), *values))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("halting", [Adaptive(max_updates=6), Fixed(num_updates=3), Fixed()])
def test_what_else_is_in_the_batch_changes_no_row(kind, halting):
    made = network(kind, 2, halting)
    lengths = [4, 1, 3, 4, 2, 4]
    inputs, num_steps = sequences(2, lengths)
    wanted = torch.arange(4) < num_steps[:, None]
    whole = made(inputs, num_steps, wanted)
    assert halting.kind == "fixed" or len(whole.num_updates.unique()) > 2
    outputs = whole.log_probs.split(lengths)
    for row, length in enumerate(lengths):
        alone = made(inputs[row : row + 1, :length], num_steps[row : row + 1], wanted[row : row + 1, :length])
        torch.testing.assert_close(alone.log_probs, outputs[row], rtol=0, atol=1e-12)
        torch.testing.assert_close(alone.remainder[0], whole.remainder[row, :length], rtol=0, atol=1e-12)
        assert alone.num_updates[0].tolist() == whole.num_updates[row, :length].tolist()
        for part, all_rows in zip(alone.state, whole.state, strict=True):
            torch.testing.assert_close(part[0], all_rows[row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_backward_pass_adds_the_same_again(kind):
    made = network(kind, 2)
    inputs, num_steps = sequences(2, [3, 1, 2])
    result = made(inputs, num_steps, torch.arange(3) < num_steps[:, None])
    loss = result.log_probs.square().sum() + result.remainder.sum()
    loss.backward(retain_graph=True)
    once = [parameter.grad.clone() for parameter in made.parameters()]
    loss.backward()
    torch.testing.assert_close([p.grad for p in made.parameters()], [2 * one for one in once])


class Operations(TorchDispatchMode):
    """Counts what torch is asked to do while it is on."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("kind", "most"), [("rnn", 12), ("gru", 20), ("lstm", 21)])
def test_a_further_update_asks_torch_for_few_operations(kind, most):
    """Forward and backward together; each takes about as long for one row as for many."""
    numbers = []
    for max_updates in (10, 20):
        made = network(kind, 1, Adaptive(max_updates=max_updates))
        with torch.no_grad():
            made.halting.weight.zero_()
            made.halting.bias.fill_(-40.0)
        inputs, num_steps = sequences(1, [1, 1])
        with Operations() as counted:
            made(inputs, num_steps, torch.ones(2, 1, dtype=torch.bool)).log_probs.sum().backward()
        numbers.append(counted.number)
    assert (numbers[1] - numbers[0]) / 10 <= most


TORCH_CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


@pytest.mark.parametrize("kind", KINDS)
def test_one_update_a_step_is_torchs_own_network_in_values_and_gradients(kind):
    made = network(kind, 6, Fixed())
    torchs = TORCH_CELLS[kind](INPUTS, HIDDEN, batch_first=True).double()
    ours = (made.input_weight, made.cell.recurrent.weight, made.input_bias, made.cell.recurrent.bias)
    for parameter, value in zip(torchs.parameters(), ours, strict=True):
        parameter.data.copy_(value.data)
    inputs, num_steps = sequences(6, [4, 4, 4])
    hidden, _ = torchs(inputs)
    expected = made.readout(hidden).reshape(-1)
    found = logits(made(inputs, num_steps, torch.ones(3, 4, dtype=torch.bool)).log_probs)
    torch.testing.assert_close(found, expected)
    expected_gradients = torch.autograd.grad(expected.square().sum(), torchs.parameters())
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), ours), expected_gradients)


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_updates_are_the_cell_applied_so_often_with_the_flag_at_the_first(kind):
    made = network(kind, 7, Fixed(num_updates=3))
    inputs, num_steps = sequences(7, [2])
    found = made(inputs, num_steps, torch.ones(1, 2, dtype=torch.bool))
    update, state = made.cell.begin(), (torch.zeros(1, HIDDEN, dtype=torch.float64),) * made.cell.num_states
    for step in range(2):
        projected = inputs[:, step] @ made.input_weight.t() + made.input_bias
        state = update(projected + made.first_flag, state)
        for _ in range(2):
            state = update(projected, state)
    torch.testing.assert_close(found.state, state)
    assert found.num_updates.tolist() == [[3, 3]]
    assert found.remainder.tolist() == [[1.0, 1.0]]


def test_windows_continue_from_the_state_of_the_window_before():
    made = network("lstm", 8)
    inputs, num_steps = sequences(8, [5, 2, 4])
    wanted = torch.arange(5) < num_steps[:, None]
    whole = made(inputs, num_steps, wanted)
    first = made(inputs[:, :3], num_steps.clamp(max=3), wanted[:, :3])
    second = made(inputs[:, 3:], (num_steps - 3).clamp(min=0), wanted[:, 3:], first.state)
    torch.testing.assert_close(torch.cat([first.num_updates, second.num_updates], 1), whole.num_updates)
    torch.testing.assert_close(second.state, whole.state)


def test_symbols_are_looked_up_as_if_they_were_one_hot_vectors():
    from trainables.act.config import Text

    made = Network(ActConfig(data=Text(), cell="gru", hidden_size=4)).double()
    symbols = torch.randint(256, (6,))
    one_hot = nn.functional.one_hot(symbols, 256).double()
    expected = one_hot @ made.input_weight.t() + made.input_bias
    torch.testing.assert_close(made._project(symbols), expected)


def test_a_batch_knows_its_rows():
    batch = Batch(
        torch.randn(3, 2, 1), torch.tensor([2, 1, 2]), torch.tensor([[[0], [1]]] * 3), torch.ones(3, 2).long()
    )
    assert len(batch.rows(slice(1, None, 2))) == 1
    assert batch.rows(slice(1, None, 2)).num_steps.tolist() == [1]
