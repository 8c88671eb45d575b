"""The kinds of sweep of the campaigns; run as a program, a driver on one of them.

    python -m benchmarks.faulty.sweeps listed|searched|elastic ORDERS

Ends with 0 once all is settled and written, 1 where something is lost, 3 where something is not written.
"""

import signal
import sys
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console

from benchmarks.faulty.trainable import FaultyConfig
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from search_spaces.distributions import Real
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Prerequisite, Search, Sweep
from trainables.errors import InputError

Kind = Literal["listed", "searched", "elastic", "small"]
NUM_REPLICATES: Final[dict[Kind, int]] = {"listed": 30, "searched": 32, "elastic": 6, "small": 6}
"""Elastic ones are few: Ray Train takes 10 to 25 s to start each."""

NUM_STEPS: Final[dict[Kind, int]] = {"listed": 280, "searched": 256, "elastic": 72, "small": 72}
"""Steps that an undisturbed run reports, about."""

IN_TRIAL: Final = Resources(num_workers=0, report_timeout_s=6)
ELASTIC: Final = Resources(num_workers=(1, 2), report_timeout_s=20)
"""Longer than Ray Train needs to start workers anew, during which nothing is reported."""

FIRST: Final = Prerequisite("first", "benchmarks.faulty.first", "first", IN_TRIAL)
LISTED: Final = (
    *(Condition(f"x={x}", {"x": x}) for x in (0.1, 0.3, 0.7, 0.9)),
    Condition("diverges", {"learning_rate": 1e40}),
    Condition("raises", {"raises_at": 5}),
)


def sweep(kind: Kind, orders: Path | None = None) -> Sweep:
    """The sweep of that kind; it takes orders from that folder."""
    of_kind: dict[Kind, dict[str, Any]] = {
        "listed": {"conditions": LISTED, "seeds": (1, 2, 3, 4, 5)},
        "searched": {
            "search": Search({"x": Real(0.0, 1.0)}, num_trials=16),
            "seeds": (1, 2),
            "base": FaultyConfig(orders=orders, num_steps=8),
        },
        "elastic": {"conditions": LISTED[:3], "seeds": (1, 2), "resources": ELASTIC},
        "small": {"conditions": LISTED[:3], "seeds": (1, 2)},
    }
    common: dict[str, Any] = {
        "name": f"faults.{kind}",
        "description": "Of the fault campaign.",
        "trainable": "benchmarks.faulty.trainable",
        "base": FaultyConfig(orders=orders),
        "objectives": (Objective("error"), Objective("cost")),
        "prerequisites": (FIRST,),
        "resources": IN_TRIAL,
    }
    return Sweep(**common | of_kind[kind])


def small() -> Sweep:
    """For `ponderay run benchmarks.faulty.sweeps:small`, which campaigns against what runs the work use."""
    return sweep("small")


def drive(kind: Kind, orders: Path) -> int:
    """Runs the sweep on two CPUs; returns the exit code."""
    from orchestrator.run import run

    console = Console(force_terminal=False, width=200)
    outcome = run(sweep(kind, orders), read_settings(), console, 2, accept_code=False)
    lost = [replicate for replicate in outcome.replicates if replicate.is_lost]
    for replicate in lost:
        print(f"lost: {replicate.condition} seed {replicate.seed}: {replicate.error}", flush=True)
    if outcome.num_unwritten:
        print(f"{outcome.num_unwritten} things are not written.", flush=True)
        return 3
    return 1 if lost else 0


def main() -> None:
    """What a user sees of an end in order is one line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the campaign runs in the background
    kind: Any = sys.argv[1]
    try:
        code = drive(kind, Path(sys.argv[2]))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        code = 130
    except (RefusedError, InputError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    main()
