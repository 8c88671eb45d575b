"""Digits that are summed and ends of inputs, from the numbers themselves."""

import numpy as np

from trainables.act.config import Addition, Sort
from trainables.act.tasks import addition, places, sort


def test_the_digits_of_a_number_and_of_the_sum_before_it():
    config = Addition(num_digits=3, num_numbers=4)
    made = addition.make(config, 200, np.random.default_rng(1))
    found = places.digits_summed(made)
    for row, length in enumerate(made.num_steps.tolist()):
        digits = made.inputs[row].view(4, 3, 10)
        written = ["".join(str(int(one.argmax())) for one in step if one.any()) for step in digits]
        expected = [len(written[0])]
        for step in range(1, length):
            before = written[0] if step == 1 else str(sum(map(int, written[:step])))
            expected.append(len(before) + len(written[step]))
        assert found[row].tolist() == expected + [0] * (4 - length)


def test_the_end_of_the_items_is_the_last_one_and_the_steps_beside_it():
    made = sort.make(Sort(num_items=6), 50, np.random.default_rng(1))
    for row, found in zip(made.inputs[:, :, 1].tolist(), places.is_end_of_input(made).tolist(), strict=True):
        last = row.index(1.0)
        assert [step for step, is_end in enumerate(found) if is_end] == [last - 1, last, last + 1]
