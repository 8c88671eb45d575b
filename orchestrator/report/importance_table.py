"""The table of a search's parameters: how much each matters for each objective."""

from orchestrator.report.numerals import probability
from orchestrator.report.sentences import counted
from orchestrator.report.table import Column, Table
from orchestrator.results.importance import Importance


def importance_table(found: Importance) -> Table:
    """A row a parameter, the most important for the first objective first; without a row the notes say why.

    Raw columns: parameter, then a share for each objective.
    """
    rows = sorted(zip(found.parameters, found.shares, strict=True), key=lambda row: -(row[1][0] or 0.0))
    columns = [Column("parameter", tuple(path for path, _ in rows), "parameter", False)]
    for i, metric in enumerate(found.objectives):
        texts = ("" if share[i] is None else probability(share[i] or 0.0) for _, share in rows)
        columns.append(Column(metric, tuple(texts), metric))
    about = (
        f"How much of an objective's variance over {counted(found.num_trials, 'trial')} each parameter explains by "
        "itself (functional ANOVA of a random forest; Hutter et al. 2014); scaled to add up to 1."
    )
    return Table(
        name=f"{found.sweep}.importance",
        title=f"{found.sweep}: importance of the parameters",
        columns=("parameter", *found.objectives),
        rows=tuple((path, *shares) for path, shares in rows),
        printed=tuple(columns),
        notes=((about,) if rows else ()) + found.notes,
    )


def importance_sentences(found: Importance) -> tuple[str, ...]:
    """One for each objective, and the notes."""
    table = importance_table(found)
    paths = table.values("parameter")
    sentences = []
    for column in table.printed[1:]:
        parts = [f"{path} {text}" for path, text in zip(paths, column.texts, strict=True) if text]
        if parts:
            sentences.append(f"Importance for {column.heading}: {', '.join(parts)} ({found.num_trials} trials).")
    return (*sentences, *found.notes)
