"""A study that an earlier layout of the sources has recorded is read as it was then, and continued.

`recorded_study.zip` holds the tracking store and the replicates of `act.tau_parity_laptop --smoke --seeds 2`, whose
driver was killed when seed 1 was complete and one replicate of seed 2 had its first checkpoint; and what `status` and
`pareto` said of it then.
"""

import json
import math
import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.machine.processes import process_space
from orchestrator.pareto.front import front
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.load import load_study
from search_spaces.find import find_sweep
from search_spaces.sweep import Sweep
from tests.integration.sweeps import run_quietly

ARCHIVE = Path(__file__).with_name("recorded_study.zip")
PLACE = "@RUNS@"
RECORDED_ON = "1b0d1475-de5b-4a60-999a-589e67ac252e pid:[4026531836]"
"""The `process_space` of the killed driver. Only the same space can tell that it is gone."""
CUT_OFF = "1c942f59513550c6"
"""The key of the replicate that was cut off behind step 30 of 60."""


@pytest.fixture
def runs(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs as the killed driver has left it; its lease is not waited out."""
    monkeypatch.setattr(StoreLease.__init__, "__defaults__", (0.2, 0.05))
    folder = read_settings().runs
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            file, content = workplace / name, archive.read(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.replace(PLACE.encode(), bytes(folder)) if file.suffix == ".jsonl" else content)
    (folder / "mlflow.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "mlflow.db") as database:
        script = (workplace / "store.sql").read_text()
        assert RECORDED_ON in script
        database.executescript(script.replace(PLACE, str(folder)).replace(RECORDED_ON, process_space()))
    return folder


@pytest.fixture
def sweep() -> Sweep:
    return replace(find_sweep("act.tau_parity_laptop", smoke=True), seeds=(1, 2))


def told(workplace: Path, name: str) -> object:
    return json.loads((workplace / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("reads", "under_way"),
    [(load_study, "stopped"), (lambda name: Tracking(read_settings()).read_study(name), "running")],
    ids=["with its lease", "as it is"],
)
def test_it_is_read_as_it_was(runs, workplace, sweep, reads, under_way):
    """The driver was killed: its lease says that nothing runs any more."""
    study, before = reads(sweep.name), told(workplace, "status")
    fields = ("condition", "seed", "state", "key", "code_version", "run_id", "duration_s", "size_bytes", "device")
    assert [{name: getattr(one, name) for name in fields} for one in study.replicates] == [
        {name: row[name] for name in fields} | {"state": under_way if row["state"] == "running" else row["state"]}
        for row in before
    ]
    found = {point.condition: [one.mean for one in point.summaries] for point in front(study, sweep.objectives)}
    points = told(workplace, "pareto")["points"]
    assert found == {row["condition"]: [row[one.metric] for one in sweep.objectives] for row in points}


def test_it_is_continued_where_other_code_is_accepted(runs, sweep):
    before = load_study(sweep.name)
    with pytest.raises(RefusedError, match=r"--accept-code"):
        run_quietly(sweep)
    outcome = run_quietly(sweep, accept_code=True)
    assert [(one.condition, one.seed, one.state) for one in outcome.replicates] == [
        (condition, seed, "complete") for condition in before.conditions for seed in (1, 2)
    ]
    (cut_off,) = (one for one in outcome.replicates if one.key == CUT_OFF)
    journal = runs / "replicates" / sweep.name / CUT_OFF / "journal.jsonl"
    steps = [
        record["step"] for record in map(json.loads, journal.read_text().splitlines()) if record["kind"] == "metrics"
    ]
    assert steps == [0, 30, 60]  # it went on behind its checkpoint
    assert all(math.isfinite(value) for value in cut_off.metrics.values())
    after = load_study(sweep.name)
    for one in before.replicates:
        if one.state == "complete":
            (same,) = (found for found in after.of(one.condition) if found.seed == one.seed)
            assert (same.metrics, same.code_version, same.run_id) == (one.metrics, one.code_version, one.run_id)
    versions = {one.code_version for one in after.replicates}
    assert len(versions) == 2 and before.replicates[0].code_version in versions
