"""An audit finds each planted leak by the check that is for it, and nothing else in a model that keeps its promises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from orchestrator.audit.interventions import (
    BATCH,
    BLIND,
    CAUSAL,
    COUNTED,
    REPEATED,
    SUMS,
    chosen,
    of_predictions,
)
from trainables.errors import InputError
from trainables.prediction import Example, Prediction, Promises

WIDTH, CLASSES = 6, 4
LENGTHS = (5, 9, 12, 12)


def items():
    draw = np.random.default_rng(1)
    return [
        Example(f"item {i}", draw.normal(size=(n, WIDTH)).astype(np.float32), draw.integers(0, CLASSES, n))
        for i, n in enumerate(LENGTHS)
    ]


torch.manual_seed(1)
INTO, RECUR, BIG, OUT = nn.Linear(WIDTH, 8), nn.GRU(WIDTH, 8, batch_first=True), nn.Linear(8, 8), nn.Linear(8, CLASSES)
BOTH = nn.GRU(WIDTH, 4, batch_first=True, bidirectional=True)
NORM = nn.BatchNorm1d(8)


def plain(x):
    """States of one item, causal."""
    return RECUR(x[None])[0][0]


def predicted(states, decisions=None, macs=None):
    return Prediction(OUT(states).softmax(-1), decisions, macs)


def each(of_item):
    """A model that reads every item by itself."""

    @torch.no_grad()
    def predict(examples):
        return [of_item(torch.from_numpy(e.inputs), torch.from_numpy(e.targets)) for e in examples]

    return predict


def batched(of_batch):
    """A model that reads all items at once, padded with zeros (B T ...)."""

    @torch.no_grad()
    def predict(examples):
        x = nn.utils.rnn.pad_sequence([torch.from_numpy(e.inputs) for e in examples], batch_first=True)
        return [
            replace(
                p,
                probabilities=p.probabilities[: len(e.inputs)],
                decisions=None if p.decisions is None else p.decisions[: len(e.inputs)],
            )
            for p, e in zip(of_batch(x), examples, strict=True)
        ]

    return predict


def routed(x, threshold=0.0):
    states = plain(x)
    is_big = states[:, 0] > threshold
    return predicted(torch.where(is_big[:, None], BIG(states), states), is_big)


def peeks(x, _):
    return predicted(plain(torch.cat([x[1:], x[:1]])))


def halts_by_all(x, _):
    states = plain(x)
    updates = 1 + (states.mean() > states.mean(1)).long()
    return predicted(states, updates)


def attends_to_padding(x):
    states = RECUR(x)[0]
    weights = (states @ states.transpose(1, 2)).softmax(-1)
    return [predicted(states[i] + (weights @ states)[i]) for i in range(len(x))]


def normed_over_batch(x):
    states = NORM.train()(RECUR(x)[0].transpose(1, 2)).transpose(1, 2)
    return [predicted(states[i]) for i in range(len(x))]


def normed_over_padding(x):
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
    return [predicted(RECUR(x)[0][i]) for i in range(len(x))]


def median_threshold(x):
    states = RECUR(x)[0]
    threshold = states[:, :, 0].median()
    return [routed(x[i], threshold) for i in range(len(x))]


def centred(x):
    x = x - 0.01 * x.mean((0, 1))
    return [predicted(RECUR(x)[0][i]) for i in range(len(x))]


def gate_peeks(x, _):
    following = torch.cat([x[1:], x[:1]])
    return predicted(plain(x), following[:, 0] > 1.2)


def asks_by_the_next_place(x, _):
    return predicted(plain(x).masked_fill(torch.cat([x[1:], x[:1]])[:, :1] > 1.2, torch.nan))


def asks_by_targets(x, y):
    """Where there is one, and not at the end."""
    is_asked = (y > 0) & (torch.arange(len(x)) < len(x) - 1)
    return predicted(plain(x).masked_fill(~is_asked[:, None], torch.nan))


def reads_targets(x, y):
    return predicted(plain(x) + nn.functional.one_hot(y, 8))


def teacher_forced(x, y):
    """Correct inputs of a decoder at test: it reads the target before each place."""
    return predicted(plain(x) + nn.functional.one_hot(torch.cat([y[:1] * 0, y[:-1]]), 8))


def adapting(is_late):
    """A running count of the targets is added to what is predicted; `is_late`: before the target is scored."""

    def of_item(x, y):
        seen = nn.functional.one_hot(y, CLASSES).cumsum(0).float()
        seen = seen if is_late else torch.cat([torch.zeros(1, CLASSES), seen[:-1]])
        return Prediction((OUT(plain(x)) + seen).softmax(-1))

    return each(of_item)


@torch.no_grad()
def cached_with_itself(examples):
    """The target of the nearest test item at each place, itself among them."""
    keys = torch.cat([torch.from_numpy(e.inputs) for e in examples])
    values = nn.functional.one_hot(torch.cat([torch.from_numpy(e.targets) for e in examples]), CLASSES)
    return [
        Prediction(0.9 * values[torch.cdist(torch.from_numpy(e.inputs), keys).argmin(1)] + 0.1 / CLASSES)
        for e in examples
    ]


def dropped_out(x, _):
    return predicted(nn.functional.dropout(plain(x), 0.5))


def over_time(x, _):
    return Prediction(OUT(plain(x)).softmax(0))


def scores(x, _):
    return Prediction(OUT(plain(x)))


def masked(count, uncounted=lambda n, b: 0.0):
    """Both networks run on every place, though each place counts one."""

    def of_item(x, _):
        states = INTO(x)
        is_big = states[:, 0] > 0
        made = torch.where(is_big[:, None], BIG(states), states)
        numbers = len(x), int(is_big.sum())
        return replace(predicted(made, is_big, count(*numbers)), uncounted=uncounted(*numbers))

    return each(of_item)


def needed(num, num_big):
    return num * (WIDTH * 8 + 8 * CLASSES) + num_big * 64


def all_of(num, _):
    return num * (WIDTH * 8 + 8 * CLASSES + 64)


def dense_in_large_batches(examples):
    return masked(all_of if len(examples) < 8 else needed)(examples)


LEAKS = {
    "peeks one step ahead": (each(peeks), {}, CAUSAL),
    "bidirectional that claims causality": (each(lambda x, y: predicted(BOTH(x[None])[0][0])), {}, CAUSAL),
    "halting decided from the whole sequence": (each(halts_by_all), {}, CAUSAL),
    "targets among the inputs": (each(reads_targets), {}, BLIND),
    "teacher-forced decoding": (each(teacher_forced), {}, BLIND),
    "adaptation before scoring": (adapting(True), {"adapts": True}, BLIND),
    "adapts and does not say so": (adapting(False), {}, BLIND),
    "cache with the item itself": (cached_with_itself, {}, BLIND),
    "batch norm in training mode": (batched(normed_over_batch), {"causal": False}, BATCH),
    "normalised over padding": (batched(normed_over_padding), {"causal": False}, BATCH),
    "attention over padding": (batched(attends_to_padding), {"causal": False}, BATCH),
    "threshold from the test batch": (batched(median_threshold), {"causal": False}, BATCH),
    "threshold from the batch, in a model that draws": (
        batched(median_threshold), {"causal": False, "draws": True}, BATCH,
    ),
    "dropout left on": (each(dropped_out), {}, REPEATED),
    "softmax over time": (each(over_time), {"causal": False}, SUMS),
    "unnormalised scores": (each(scores), {}, SUMS),
    "masked execution that is not counted": (masked(needed), {}, COUNTED),
    "more counted than runs": (masked(lambda n, b: 2 * all_of(n, b)), {}, COUNTED),
    "more runs than is owned up to": (masked(needed, lambda n, b: 0.1 * n), {}, COUNTED),
    "a hundredth of the batch's mean": (batched(centred), {"causal": False}, BATCH),
    "knows how long an item is": (each(lambda x, y: predicted(plain(x) + len(x) / 9)), {}, CAUSAL),
    "a batch of eight runs more than is counted": (dense_in_large_batches, {}, COUNTED),
    "only its gate sees the next place, at times": (each(gate_peeks), {}, CAUSAL),
    "only whether it answers depends on the next place": (each(asks_by_the_next_place), {}, CAUSAL),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_found_by_the_check_that_is_for_it(name):
    predict, promises, check = LEAKS[name]
    found = {one.check: one for one in of_predictions(predict, items(), Promises(**promises))}
    assert [one for one in found if found[one].result == "finding"] == [check], found
    assert found[check].changed and found[check].moved and found[check].by != 0


def test_short_items_are_cut_too():
    few = [replace(e, inputs=e.inputs[:n], targets=e.targets[:n]) for n, e in enumerate(items(), 1)]
    found = of_predictions(each(lambda x, y: predicted(plain(x) + len(x) / 9)), few, Promises())
    assert {one.check: one for one in found}[CAUSAL].changed == "inputs of item 2 cut off after place 0"


def of_one_length(num):
    draw = np.random.default_rng(2)
    inputs = [draw.normal(size=(16, WIDTH)).astype(np.float32) for _ in range(num)]
    return [Example(f"equal {i}", x, draw.integers(0, CLASSES, 16)) for i, x in enumerate(inputs)]


def reads_backwards(x):
    return [predicted(states) for states in RECUR(x.flip(1))[0].flip(1)]


def test_padding_is_tested_where_all_items_are_of_one_length():
    found = {
        one.check: one for one in of_predictions(batched(reads_backwards), of_one_length(4), Promises(causal=False))
    }
    assert found[BATCH].changed == "equal 0, cut to 10 places, beside 3 longer ones"

    def of_one_length_alone(examples):
        np.stack([e.inputs for e in examples])
        return batched(lambda x: [predicted(RECUR(x)[0][i]) for i in range(len(x))])(examples)

    assert all(one.result != "finding" for one in of_predictions(of_one_length_alone, of_one_length(4), Promises()))


def test_what_only_large_batches_do_is_found():
    def predict(examples):
        return batched(normed_over_padding if len(examples) > 4 else lambda x: list(map(predicted, RECUR(x)[0])))(
            examples
        )

    found = {one.check: one for one in of_predictions(predict, items(), Promises(causal=False), of_one_length(12))}
    assert found[BATCH].changed == "12 more behind 4 examples"


def test_a_rate_of_targets_is_seen_where_there_is_not_one_for_each_place():
    def of_rate(x, y):
        return predicted(plain(x), torch.full((len(x),), len(y) > 0.3 * len(x)))

    uneven = [replace(e, targets=e.targets[: len(e.inputs) // 2]) for e in items()]
    found = {one.check: one for one in of_predictions(each(of_rate), uneven, Promises())}
    assert found[BLIND].changed == "half of the targets of item 0 left out"


def masks_of_all_at_once(examples):
    """What is drawn of an item depends on how many there are."""
    width = WIDTH * len(examples)
    masks = torch.rand(len(examples), WIDTH, generator=torch.Generator().manual_seed(width)) > 0.3
    return [predicted(plain(torch.as_tensor(e.inputs) * mask)) for e, mask in zip(examples, masks, strict=True)]


CLEAN = {
    "asks where there is a target": (each(asks_by_targets), {}),
    "draws for all at once": (masks_of_all_at_once, {"draws": True}),
    "routed, causal": (each(lambda x, y: routed(x)), {}),
    "bidirectional that says so": (each(lambda x, y: predicted(BOTH(x[None])[0][0])), {"causal": False}),
    "adapts behind the score": (adapting(False), {"adapts": True}),
    "padded with care": (batched(lambda x: [predicted(RECUR(x)[0][i]) for i in range(len(x))]), {}),
    "counts all that runs": (masked(all_of), {}),
    "says what it does not count": (masked(needed, lambda n, b: all_of(n, b) - needed(n, b)), {}),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_model_that_keeps_its_promises_has_no_finding(name):
    predict, promises = CLEAN[name]
    found = of_predictions(predict, items(), Promises(**promises), of_one_length(3))
    assert [one for one in found if one.result == "finding"] == []
    assert all(one.why for one in found if one.result == "not checked")


def test_predictions_that_are_not_what_is_reported_are_a_finding():
    def predict(examples):
        raise AssertionError("-log p is 1.5, and 1.7 is reported\nand more")

    found = of_predictions(predict, items(), Promises())
    assert found[0].result == "finding"
    assert found[0].moved == "predictions from what is reported of them: -log p is 1.5, and 1.7 is reported"
    assert {one.result for one in found[1:]} == {"not checked"}


def test_what_is_carried_from_item_to_item_may_move_later_ones_alone():
    @torch.no_grad()
    def predict(examples, is_backwards=False):
        total, made = torch.zeros(8), {}
        for e in reversed(examples) if is_backwards else examples:
            made[e.name] = predicted(plain(torch.from_numpy(e.inputs)) + total)
            total = total + nn.functional.one_hot(torch.from_numpy(e.targets), 8).sum(0)
        return [made[e.name] for e in examples]

    promises = Promises(adapts=True, carries=True)
    assert all(one.result != "finding" for one in of_predictions(predict, items(), promises))
    found = of_predictions(lambda examples: predict(examples, is_backwards=True), items(), promises)
    assert [one.check for one in found if one.result == "finding"] == [BATCH]


def test_what_cannot_be_checked_says_why():
    one = [Example("a", np.ones((1, 2), np.float32))]
    found = of_predictions(lambda e: [Prediction([[0.5, 0.5]]) for _ in e], one, Promises())
    assert [f.result for f in found] == ["ok", "ok", *4 * ["not checked"]]
    assert [f.why for f in found[2:]] == [
        "no example has a prediction for each of two or more places of its inputs",
        "no example has targets",
        "there is one example",
        "predictions have no `macs`",
    ]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ([], "a prediction for each example, but it returned 0 for 1"),
        ([0.5], "must return `ponderay.Prediction`s, but got 0.5"),
        ([Prediction([0.5, 0.5])], "its shape is .2,.; one place is"),
    ],
)
def test_predictions_of_another_form_are_one_sentence(answer, rule):
    with pytest.raises(InputError, match=rule):
        of_predictions(lambda _: answer, items()[:1], Promises())


def test_chosen_items_are_of_all_lengths():
    assert [len(e.inputs) for e in chosen([*items(), *items()], 3)] == [5, 12, 12]
