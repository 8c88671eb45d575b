"""Addition: the running sum of numbers, digit by digit (Graves 2016, section 3.3)."""

import numpy as np
from numpy.typing import NDArray

from trainables.act.config import Addition
from trainables.act.tasks.batch import NO_TARGET, Batch, batch

BASE = 10
END = 10
NUM_CLASSES = 11


def num_inputs(config: Addition) -> int:
    """A one-hot digit in each place."""
    return config.num_digits * BASE


def make(config: Addition, count: int, random: np.random.Generator) -> Batch:
    """`count` sequences of a uniformly drawn number of numbers, each of a uniformly drawn number of digits.

    Digits, leading zeros among them, stand from the first place on, the most significant first; places behind them are
    zero. From the second number on the target is the sum so far: its digits in the same order, then `END` in every
    place that is left. Difficulty is the number of digits of the number.
    """
    num_numbers = random.integers(1, config.num_numbers, size=count, endpoint=True)
    shape = (count, config.num_numbers)
    is_number = np.arange(config.num_numbers) < num_numbers[:, None]
    num_digits = random.integers(1, config.num_digits, size=shape, endpoint=True)
    digits = random.integers(0, BASE, size=(*shape, config.num_digits))
    is_used = (np.arange(config.num_digits) < num_digits[:, :, None]) & is_number[:, :, None]
    inputs = np.eye(BASE)[digits] * is_used[:, :, :, None]
    targets = sum_digits(values(digits, num_digits).cumsum(1), config.num_sum_digits)
    has_target = is_number & (np.arange(config.num_numbers) > 0)
    targets[~has_target] = NO_TARGET
    return batch(inputs.reshape(*shape, -1), num_numbers, targets, num_digits * is_number)


def values(digits: NDArray[np.integer], num_digits: NDArray[np.integer]) -> NDArray[np.int64]:
    """The numbers that the first `num_digits` of the last axis of `digits` write."""
    numbers = np.zeros(num_digits.shape, np.int64)
    for place in range(digits.shape[-1]):
        numbers = np.where(place < num_digits, BASE * numbers + digits[..., place], numbers)
    return numbers


def sum_digits(sums: NDArray[np.integer], num_places: int) -> NDArray[np.int64]:
    """The decimal digits of each sum on a new last axis, from the first place on; `END` in the places behind them."""
    powers = BASE ** np.arange(num_places, dtype=np.int64)
    num_digits = np.maximum((sums[..., None] >= powers).sum(-1), 1)
    exponents = num_digits[..., None] - 1 - np.arange(num_places)
    written = sums[..., None] // BASE ** np.maximum(exponents, 0) % BASE
    return np.where(exponents >= 0, written, END)
