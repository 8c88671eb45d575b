"""Which conditions of a search miss what it asks of all of them."""

from collections.abc import Mapping, Sequence

from orchestrator.results.study import Study
from search_spaces.known_names import known_names
from search_spaces.sweep import Constraint


def missed(study: Study, constraints: Sequence[Constraint]) -> Mapping[str, str]:
    """The first constraint that the mean of a condition misses, in words, by condition; others have none.

    Of several evaluations the first that was reported counts.
    """
    found: dict[str, str] = {}
    for constraint in constraints:
        names = [name for name in study.metrics() if name.partition("@")[0] == constraint.metric]
        tested = [name for name in names if "@" in name] or names
        for condition in study.conditions if tested else ():
            summary = study.summary(condition, tested[0])
            if summary and summary.mean > constraint.at_most:
                found.setdefault(condition, f"{tested[0]} {summary.mean:.4g}, at most {constraint.at_most:.4g}")
    return found


def constraint_note(study: Study, constraints: Sequence[Constraint]) -> str:
    """A sentence on the conditions that miss a constraint; empty where none does."""
    over = missed(study, constraints)
    if not over:
        return ""
    first, what = next(iter(over.items()))
    return (
        f"{len(over):,} of {len(study.conditions):,} conditions miss what the search asks of them, and are shown all "
        f"the same: {known_names(over)}; of {first} {what}."
    )
