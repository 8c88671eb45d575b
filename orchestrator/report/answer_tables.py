"""Every table that a study's answers make; the same answers make the same tables, so that they can be verified."""

from orchestrator.report.answers import Answers
from orchestrator.report.audit_table import audit_table
from orchestrator.report.claim_table import claim_table
from orchestrator.report.comparison_table import comparison_table, equal_cost_table, over_items_table
from orchestrator.report.condition_table import condition_table
from orchestrator.report.numerals import between, decimals, estimate
from orchestrator.report.table import INTERVAL, Cell, Column, Table
from orchestrator.report.training_table import training_table
from orchestrator.results.config_columns import config_columns
from orchestrator.statistics.summary import Interval, Summary, mean_interval, summarise


def tables(answers: Answers) -> tuple[Table, ...]:
    """The tables of a report, named `SWEEP.conditions` and so on.

    They are conditions, comparisons, conditions at equal cost, when training ended, comparisons over test items,
    claims, metrics and replicates; and the audit, where there was one.

    They hold nothing but what is computed from `answers`: recomputing the answers from the same replicates and taking
    `to_csv` of each table gives the same text, digit by digit, where the numbers are the same.
    """
    return (
        condition_table(answers),
        comparison_table(answers),
        equal_cost_table(answers),
        training_table(answers),
        over_items_table(answers),
        claim_table(answers.question.sweep, answers.verdicts),
        metric_table(answers),
        replicate_table(answers),
        *([audit_table(answers.study)] if answers.study.audit else []),
    )


def metric_table(answers: Answers) -> Table:
    """Every metric of every condition over its complete replicates: one row each, with Student's t interval.

    Raw columns: condition, metric, evaluation (empty for a replicate's own metric), mean, std, n, low, high (95 %).
    """
    study = answers.study
    found: list[tuple[str, str, str, Summary, Interval]] = []
    for condition in study.conditions:
        for reported in dict.fromkeys(metric for replicate in study.of(condition) for metric in replicate.metrics):
            if values := study.values(condition, reported):
                metric, _, evaluation = reported.partition("@")
                found.append((condition, metric, evaluation, summarise(values), mean_interval(values)))
    names = [f"{metric}@{evaluation}" if evaluation else metric for _, metric, evaluation, _, _ in found]
    grouped: dict[str, list[Summary]] = {}
    for name, (_, _, _, summary, _) in zip(names, found, strict=True):
        grouped.setdefault(name, []).append(summary)
    digits = {name: decimals(summaries) for name, summaries in grouped.items()}
    pairs = list(zip(names, found, strict=True))
    return Table(
        name=f"{answers.question.sweep}.metrics",
        title=f"{answers.question.sweep}: all metrics",
        columns=("condition", "metric", "evaluation", "mean", "std", "n", "low", "high"),
        rows=tuple((c, m, e, s.mean, s.std, s.n, *interval) for c, m, e, s, interval in found),
        printed=(
            Column("condition", tuple(condition for condition, *_ in found), "condition", False),
            Column("metric", tuple(names), "metric", False),
            Column("mean", tuple(estimate(one[3], digits[name]) for name, one in pairs), "mean"),
            Column(INTERVAL, tuple(between(one[4], digits[name]) for name, one in pairs), "low"),
            Column("n", tuple(str(one[3].n) for one in found), "n"),
        ),
        notes=("Mean ± sample standard deviation over n complete replicates.",),
    )


def replicate_table(answers: Answers) -> Table:
    """Every replicate with the values it reported: what all other tables are computed from.

    Raw columns: condition, seed, state, key, error, then `config.PATH` for each path of the configs, then a column for
    each metric; `metric NAME` where it is called as one of these.
    """
    study, own = answers.study, ("condition", "seed", "state", "key", "error")
    metrics = tuple(dict.fromkeys(metric for replicate in study.replicates for metric in replicate.metrics))
    configs = config_columns(study.configs, [replicate.condition for replicate in study.replicates])
    rows: list[tuple[Cell, ...]] = []
    for i, one in enumerate(study.replicates):
        values = [*(column[i] for column in configs.values()), *(one.metrics.get(metric) for metric in metrics)]
        rows.append((one.condition, one.seed, one.state, one.key, one.error, *values))
    return Table(
        name=f"{answers.question.sweep}.replicates",
        title=f"{answers.question.sweep}: replicates",
        columns=(*own, *configs, *(f"metric {metric}" if metric in {*own, *configs} else metric for metric in metrics)),
        rows=tuple(rows),
    )
