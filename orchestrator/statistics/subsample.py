"""Some of many, at even steps."""

from collections.abc import Sequence


def subsample(num_values: int, count: int) -> Sequence[int]:
    """At most `count` of the numbers up to `num_values`, the first and the last among them."""
    if num_values <= count:
        return range(num_values)
    return [round(i * (num_values - 1) / (count - 1)) for i in range(count)]
