"""The table of an audit, and what a report says of it before everything else."""

from typing import Final

from orchestrator.report.table import Column, Table
from orchestrator.results.audit import summary_of
from orchestrator.results.study import Study

MOST_SAID: Final = 5


def audit_table(study: Study) -> Table:
    """Every check of every condition and evaluation that was audited; no row where none was.

    Raw columns: condition, evaluation, check, result (ok, finding, not checked), changed, moved, by, why, code_version.
    """
    rows = [(one, one.finding) for one in study.audit]
    printed = (
        Column("condition", tuple(one.condition for one, _ in rows), "condition", False),
        Column("evaluation", tuple(one.evaluation for one, _ in rows), "evaluation", False),
        Column("check", tuple(found.check for _, found in rows), "check", False),
        Column("result", tuple(found.result for _, found in rows), "result", False),
        Column("what moved, or why not", tuple(found.moved or found.why for _, found in rows), "moved", False),
    )
    return Table(
        name=f"{study.sweep}.audit",
        title=f"{study.sweep}: audit",
        columns=("condition", "evaluation", "check", "result", "changed", "moved", "by", "why", "code_version"),
        rows=tuple(
            (a.condition, a.evaluation, f.check, f.result, f.changed, f.moved, f.by, f.why, a.code_version)
            for a, f in rows
        ),
        printed=printed,
        notes=(f"`ponderay audit` changed what must not matter to predictions: {summary_of(study.audit)}.",),
    )


def audit_sentences(study: Study) -> tuple[str, ...]:
    """What was found, and whether it was found in the code that the results are of."""
    findings = [f"Audit: {one.sentence}" for one in study.audit if one.finding.result == "finding"]
    if len(findings) > MOST_SAID:
        findings[MOST_SAID:] = [f"Audit: {len(findings) - MOST_SAID} more findings are in the table of the audit."]
    ours, tested = ({one.code_version for one in group} - {""} for group in (study.replicates, study.audit))
    if tested and not tested >= ours:
        findings.append(
            f"The audit is of other code than some results; `ponderay audit {study.sweep}` tests them again."
        )
    return tuple(findings)
