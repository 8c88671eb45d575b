"""A plan in this process, one piece of work after another, without Ray."""

from orchestrator.execute import execute
from orchestrator.plan import Plan


def run_here(plan: Plan) -> None:
    """Does all of `plan` that no other driver is doing."""
    while (work := plan.next()) is not None:

        def send(record: dict[str, object], key: str = work.key) -> None:
            plan.reported(key, record)

        execute(work, send)
        plan.ended(work.key)
