"""What a few items, drawn from many and found right, say of all."""

from math import comb


def chance_of_none(num_all: int, num_wrong: int, num_drawn: int) -> float:
    """The chance that `num_drawn` of `num_all` items, drawn without replacement, are none of the `num_wrong`.

    The hypergeometric C(all - wrong, drawn) / C(all, drawn).
    """
    return comb(num_all - num_wrong, num_drawn) / comb(num_all, num_drawn)


def most_wrong(num_all: int, num_drawn: int, confidence: float = 0.9) -> int:
    """The largest number of wrong items that `num_drawn` right ones do not exclude at `confidence`.

    Auditors call it discovery sampling. Were one more wrong, the draw would have met a wrong one with that chance. Of
    many items 22 right ones exclude that a tenth is wrong, at 90 %: .9^22 < .1.
    """
    return max(n for n in range(num_all - num_drawn + 1) if chance_of_none(num_all, n, num_drawn) > 1 - confidence)
