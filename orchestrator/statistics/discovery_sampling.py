"""What a few items, drawn from many and found right, say of all."""

from math import comb


def most_wrong(num_all: int, num_drawn: int) -> int:
    """The largest number of wrong items that `num_drawn` right ones, drawn without replacement, do not exclude at 90 %.

    Auditors call it discovery sampling. Were one more wrong, the draw would have met a wrong one with that chance: it
    meets none of n with C(all - n, drawn) / C(all, drawn). Of many items 22 right ones exclude that a tenth is wrong:
    .9^22 < .1.
    """
    ways = comb(num_all, num_drawn)
    return max(n for n in range(num_all - num_drawn + 1) if 10 * comb(num_all - n, num_drawn) > ways)
