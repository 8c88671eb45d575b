"""Four drivers at the same moment, each in a process of its own, on the stores that the environment names.

    python -m tests.integration.postgres_writer own|same GO

`own`: each runs a sweep of its own, half of them drawn by Optuna, all in need of one prerequisite. `same`: all want one
sweep, whose last epochs wait for the file GO. Prints the exit code of each process. The processes are forked from one
that has imported everything, so that they set out together.
"""

import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import orchestrator.scheduler.optuna_search
import orchestrator.worker.execute  # noqa: F401  # for all of them, as what follows
from orchestrator.console.errors import RefusedError
from search_spaces.sweep import Sweep
from tests.integration.sweeps import REFUSED, run_quietly, searched, tiny

NUM_WRITERS = 4


def own(number: int) -> Sweep:
    """The sweep of one driver."""
    if number % 2:
        return searched(2, name=f"tiny.{number}")
    return tiny({"a": {"x": 0.1 + number / 10}, "b": {"x": 0.15 + number / 10}}, name=f"tiny.{number}")


def _write(sweep: Sweep, barrier: Barrier) -> None:
    barrier.wait()
    try:
        outcome = run_quietly(sweep)
    except RefusedError as error:
        print(error, file=sys.stderr)
        raise SystemExit(REFUSED) from None
    raise SystemExit(outcome.num_failed + outcome.num_unwritten)


def main() -> None:
    """Starts them, waits for them."""
    kind, go = sys.argv[1], Path(sys.argv[2])
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(NUM_WRITERS)
    sweeps = [
        own(number) if kind == "own" else tiny({"a": {"go": go}, "b": {"x": 0.25}}) for number in range(NUM_WRITERS)
    ]
    drivers = [context.Process(target=_write, args=(sweep, barrier)) for sweep in sweeps]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    print(*(driver.exitcode for driver in drivers))


if __name__ == "__main__":
    main()
