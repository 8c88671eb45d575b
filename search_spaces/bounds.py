"""The largest numbers that make sense: a larger one is a slip of the keyboard, and is refused before it is acted on."""

from typing import Final

MOST_SEED: Final = 2**63 - 1
"""What generators of torch and every database take whole."""

MOST_SEEDS: Final = 10_000
"""Most seeds of a condition; each is a training run."""

MOST_DEVICES: Final = 1_000_000
"""Workers, or CPUs or GPUs of one, or of a cluster."""

MOST_TIMEOUT_S: Final = 366 * 24 * 3600
