"""What audits found is kept in the runs folder, so that reports and bundles of the sweep say it too."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from pydantic import TypeAdapter, ValidationError

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.machine.durable_files import write_durably
from orchestrator.results.audit import Audited
from orchestrator.results.study import Study
from trainables.errors import InputError


def recorded_audit(sweep: str, settings: Settings) -> tuple[Audited, ...]:
    """The last result of each check of the sweep; none where it was never audited here.

    Raises:
        InputError: if the file is damaged.
    """
    file = settings.audit(sweep)
    if not file.is_file():
        return ()
    try:
        return TypeAdapter(tuple[Audited, ...]).validate_json(file.read_bytes())
    except ValidationError:
        raise InputError(f"{file} is damaged; remove it, and run `ponderay audit {sweep}` again.") from None


def with_audit(study: Study) -> Study:
    """The study with what was found of it by the settings in force, unless it has that already."""
    return study if study.audit else replace(study, audit=recorded_audit(study.sweep, read_settings()))


def record_audit(sweep: str, found: Sequence[Audited], settings: Settings) -> None:
    """Keeps what was found now, and of earlier audits what was not tested again."""
    tested = {(one.condition, one.evaluation) for one in found}
    earlier = [one for one in recorded_audit(sweep, settings) if (one.condition, one.evaluation) not in tested]
    file = settings.audit(sweep)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_durably(file, (json.dumps([asdict(one) for one in (*earlier, *found)], indent=1) + "\n").encode())
