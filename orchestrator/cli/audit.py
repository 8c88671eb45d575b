"""The command `audit`: whether what a model predicts in testing may be believed, tested by intervention."""

import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import Smoke, SweepName, Values, find
from orchestrator.console.exit_codes import FAILED
from orchestrator.console.printing import Format, OutputFormat, err, print_rows, say
from orchestrator.results.audit import summary_of
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.results.audit import Audited


def audit(
    name: SweepName,
    condition: Annotated[
        str | None, typer.Argument(metavar="[CONDITION]", help="Only this condition; default: all.")
    ] = None,
    smoke: Smoke = False,
    values: Values = None,
    evaluation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this evaluation of each condition; default: all.")
    ] = None,
    format: OutputFormat = Format.table,
) -> None:
    """Change what must not matter to a trained model's predictions, and say what moved.

    Of each condition a complete replicate is tested; where there is none, one is trained for three reports in a
    temporary folder. The trainable's `predict` is called some thirty times, with four test items. The checks: later
    inputs and targets, the other items of a batch, sums of probabilities, multiply-accumulates that ran, test items in
    training, and seeds. What cannot be checked says why. The sweep's reports and bundles say what was found.

    Exit codes: 0 no finding, 1 a finding. json and csv have a row for each check: condition, evaluation (empty: of
    training or data), check, result (ok, finding, not checked), changed, moved, by, why.
    """
    from orchestrator.audit.audit import audit as audited
    from orchestrator.audit.record import record_audit
    from orchestrator.environment.settings import read_settings
    from search_spaces.sweep import Condition

    settings, sweep = read_settings(), find(name, smoke, values, None)
    if not sweep.conditions and condition is not None:
        raise InputError(f"{sweep.name} draws its conditions, and its base is tested; leave {condition} out.")
    conditions = sweep.conditions or (Condition("base"),)
    conditions = (sweep.condition(condition),) if condition is not None else conditions

    def tell(text: str) -> None:
        err.print(f"{text} ...", markup=False, soft_wrap=True)

    with tempfile.TemporaryDirectory(prefix="ponderay-audit-") as folder:
        found = list(audited(sweep, conditions, evaluation, settings, Path(folder), tell))
    record_audit(sweep.name, found, settings)
    if format is Format.table:
        _print_to_people(sweep.name, found)
    else:
        rows = [{"condition": one.condition, "evaluation": one.evaluation, **asdict(one.finding)} for one in found]
        print_rows(rows, format, title="")
    if any(one.finding.result == "finding" for one in found):
        raise SystemExit(FAILED)


def _print_to_people(sweep: str, found: "list[Audited]") -> None:
    """A table with a row for each check, then every finding, and each reason once."""
    checks: dict[str, Counter[str]] = {}
    for one in found:
        checks.setdefault(one.finding.check, Counter())[one.finding.result] += 1
    results = ("ok", "finding", "not checked")
    rows = [{"check": check, **{name: counts[name] or "" for name in results}} for check, counts in checks.items()]
    print_rows(rows, Format.table, f"{sweep}: audit", whole=("check",))
    for one in found:
        if one.finding.result == "finding":
            say(f"Finding: {one.sentence}")
    reasons: dict[tuple[str, str], int] = Counter(
        (one.finding.check, one.finding.why) for one in found if one.finding.result == "not checked"
    )
    for (check, why), number in reasons.items():
        say(f"Not checked ({number}): {check}, because {why}.")
    say(f"{sweep}: {summary_of(found)}")
