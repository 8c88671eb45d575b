"""The time penalty tau: a constant, or a multiplier that follows a budget."""

import math

from trainables.act.config import Adaptive, Halting, LearntTau

LOWEST, HIGHEST = 1e-6, 10.0


def first_tau(halting: Halting) -> float:
    """tau before the first iteration; 0 where there is none."""
    if not isinstance(halting, Adaptive):
        return 0.0
    return halting.tau.start if isinstance(halting.tau, LearntTau) else halting.tau


def next_tau(halting: Halting, tau: float, mean_updates: float) -> float:
    """tau after an iteration with so many updates per step; a constant stays.

    Dual ascent on the multiplier of `mean_updates <= budget`, in log tau: it grows where the budget is exceeded and
    falls where it is not used up.
    """
    if not isinstance(halting, Adaptive) or not isinstance(halting.tau, LearntTau):
        return tau
    log_tau = math.log(tau) + halting.tau.rate * (mean_updates / halting.tau.mean_updates - 1)
    return math.exp(min(max(log_tau, math.log(LOWEST)), math.log(HIGHEST)))
