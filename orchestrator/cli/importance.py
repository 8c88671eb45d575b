"""The command `importance`: how much each parameter of a search matters."""

from orchestrator.cli.options import Smoke, SweepName, find_with
from orchestrator.console.printing import Format, OutputFormat, print_rows, say
from trainables.errors import InputError


def importance(name: SweepName, smoke: Smoke = False, format: OutputFormat = Format.table) -> None:
    """Print how much each parameter of a search matters for each objective, by what Optuna was told so far.

    A share is what a parameter explains by itself of an objective's variance over the trials (functional ANOVA). The
    trials themselves are a table by `ponderay export`, a row a replicate with its drawn values as `config.PATH`.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.importance_table import importance_table
    from orchestrator.report.table import for_programs
    from orchestrator.scheduler.importance import importance as importance_of
    from orchestrator.scheduler.search_store import read_trials

    sweep = find_with(name, smoke, None)
    table = importance_table(importance_of(read_trials(sweep, read_settings())))
    if not table.rows:
        raise InputError(" ".join(table.notes))
    if format is not Format.table:
        print(for_programs(table, format), end="")
        return
    columns = table.as_printed()
    rows = [
        {f"{column.heading}{' ' * i}": column.texts[k] for i, column in enumerate(columns)}
        for k in range(len(table.rows))
    ]
    print_rows(rows, Format.table, table.title, whole=("parameter",))
    say(*table.notes)
