"""What is read off tested sequences: metrics by their definition, against counts by hand."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.act import evaluation
from trainables.act.config import ActConfig, Adaptive, Addition, Logic, Sort
from trainables.act.tasks import data


def test_updates_of_a_text_are_told_apart_by_kind_of_byte_and_correlated():
    text = b"ab, c.\n"
    count = len(text)
    symbols = torch.tensor([list(text)])
    sequence = data.Batch(symbols, torch.tensor([count]), symbols[:, :, None], torch.zeros_like(symbols))
    updates, nats = np.array([[1, 2, 7, 5, 3, 9, 4]]), np.array([[0.5, 1.0, 3.0, 2.0, 2.5, 4.0, 1.0]])
    ones = np.ones((1, count))
    results = evaluation.Results(
        np.array([count]), updates, ones, ones > 0, ones > 0, nats, nats[:, ::-1], np.zeros((1, count), int), ones[0]
    )
    found = evaluation.text_metrics(results, sequence)
    expected = {"mean_updates_letter": 2.0, "mean_updates_punctuation": 8.0, "mean_updates_space": 4.5}
    assert {name: found[name] for name in expected} == expected
    assert found["mean_updates_boundary"] == 8.0  # , and . but not the others
    assert found["surprisal_bits_boundary"] == pytest.approx((3.0 + 4.0) / 2 / math.log(2))
    assert found["surprisal_bits_space"] == pytest.approx((2.0 + 1.0) / 2 / math.log(2))
    assert "mean_updates_digit" not in found
    centred = [(n - updates.mean(), x - nats.mean()) for n, x in zip(updates[0], nats[0], strict=True)]
    covariance = sum(a * b for a, b in centred)
    spread = math.sqrt(sum(a * a for a, _ in centred) * sum(b * b for _, b in centred))
    assert found["updates_surprisal_correlation"] == pytest.approx(covariance / spread)
    still = evaluation.Results(*(updates * 0 + 1 if i == 1 else part for i, part in enumerate(vars(results).values())))
    assert "updates_entropy_correlation" not in evaluation.text_metrics(still, sequence)


def made_results(sequences, updates, remainders) -> evaluation.Results:
    shape = sequences.difficulty.shape
    has_target = sequences.has_target.numpy()
    zeros = np.zeros(shape)
    return evaluation.Results(
        sequences.num_steps.numpy(), np.array(updates), np.array(remainders), has_target, has_target, zeros, zeros,
        sequences.difficulty.numpy(), np.ones(1),
    )  # fmt: skip


def test_ponder_beyond_the_digits_that_are_summed_by_hand():
    """7 + 93 + 5 = 105: 1 + 2 digits, then 3 + 1; at the first number nothing is asked."""
    config = ActConfig(data=Addition(num_digits=2, num_numbers=3))
    targets = torch.tensor([[[-1] * 3, [1, 0, 0], [1, 0, 5]]])
    sequences = data.Batch(torch.zeros(1, 3, 20), torch.tensor([3]), targets, torch.tensor([[1, 2, 1]]))
    results = made_results(sequences, [[9, 4, 4]], [[0.5, 0.25, 0.75]])
    found = evaluation.place_metrics(config, results, sequences)
    assert found == {"ponder_above_digits": pytest.approx(((4.25 - 3) + (4.75 - 4)) / 2)}


def test_updates_near_the_end_of_the_items_and_elsewhere_by_hand():
    config = ActConfig(data=Sort(num_items=3))
    steps = torch.tensor([6, 4])
    targets = torch.tensor([[-1, -1, -1, 0, 2, 1], [-1, -1, 1, 0, -1, -1]])[:, :, None]
    sequences = data.Batch(torch.zeros(2, 6, 2), steps, targets, torch.tensor([[3] * 6, [2, 2, 2, 2, 0, 0]]))
    results = made_results(sequences, [[1, 2, 9, 4, 1, 1], [2, 8, 4, 3, 0, 0]], np.ones((2, 6)))
    found = evaluation.place_metrics(config, results, sequences)
    assert found == {
        "mean_updates_end_of_input": pytest.approx((2 + 9 + 4 + 2 + 8 + 4) / 6),
        "mean_updates_elsewhere": pytest.approx((1 + 1 + 1 + 3) / 4),
    }
    assert evaluation.place_metrics(ActConfig(data=Logic()), results, sequences) == {}


def test_the_slope_of_updates_over_difficulty_is_that_of_the_line():
    difficulty = np.array([1, 2, 3, 4])
    assert evaluation.slope(np.array([3, 5, 7, 9]), difficulty) == pytest.approx(2.0)
    assert evaluation.slope(np.array([1, 4, 2, 4]), difficulty) == pytest.approx(
        np.polyfit(difficulty, [1, 4, 2, 4], 1)[0]
    )
    assert evaluation.slope(np.ones(7, int), np.arange(7) ** 3) == 0.0
    assert evaluation.slope(np.array([1, 2]), np.array([5, 5])) is None
    assert evaluation.slope(np.array([], int), np.array([], int)) is None


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 16)), max_size=30))
def test_the_correlation_with_difficulty_is_pearsons_where_both_vary(steps):
    updates, difficulty = (np.array([step[i] for step in steps], int) for i in (0, 1))
    found = evaluation.difficulty_metrics(updates, difficulty).get("updates_difficulty_correlation")
    if len({*updates.tolist()}) < 2 or len({*difficulty.tolist()}) < 2:
        assert found is None
    else:
        assert found == pytest.approx(scipy.stats.pearsonr(updates, difficulty).statistic, abs=1e-9)


def test_steps_without_a_difficulty_do_not_count():
    """Three steps of 1, 2 and 3 bits take 2, 4 and 3 updates; the padding behind them none."""
    config = ActConfig(data=Logic(num_gates=3, num_vectors=3), halting=Adaptive(max_updates=4))
    difficulty = torch.tensor([[1, 2, 3, 0]])
    sequences = data.Batch(torch.zeros(1, 4, 2), torch.tensor([4]), torch.zeros(1, 4, 1, dtype=torch.int64), difficulty)
    found = evaluation.updates_metrics(config, made_results(sequences, [[2, 4, 3, 4]], np.ones((1, 4))))
    assert found["updates_per_difficulty"] == pytest.approx(0.5)
    assert found["updates_difficulty_correlation"] == pytest.approx(0.5)
