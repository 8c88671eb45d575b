"""The example of docs/claims.md, run as it stands there: claims have verdicts, and the analysis answers."""

import importlib
import json
import math
import random
import re
import statistics
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.integration.sweeps import run_quietly
from tests.orchestrator.recorded import empty_store

DOCUMENT = Path(__file__).parents[2] / "docs" / "claims.md"
FILES = {"python": "darts.py", "toml": "claims.toml"}


@pytest.fixture(scope="module")
def darts(tmp_path_factory):
    """The sweep of the document, complete, and the folder that it ran in."""
    place, patch = tmp_path_factory.mktemp("darts"), pytest.MonkeyPatch()
    for language, content in re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE):
        if not (place / FILES[language]).exists():  # a later block is another example
            (place / FILES[language]).write_text(content)
    (place / "runs").mkdir()
    (place / "runs" / "mlflow.db").write_bytes(empty_store())
    patch.chdir(place)
    patch.syspath_prepend(str(place))
    sweep = importlib.import_module("darts").pi()
    replicates = run_quietly(sweep).replicates
    assert [one.error for one in replicates if one.state != "complete"] == [] and len(replicates) == 10
    yield place, sweep
    patch.undo()
    sys.modules.pop("darts")


@pytest.fixture
def call(darts, monkeypatch):
    """What a command of the sweep prints as JSON."""
    monkeypatch.chdir(darts[0])

    def printed(*arguments):
        done = CliRunner().invoke(app, [*arguments, "--format", "json"])
        assert done.exit_code == 0, (done.output, done.exception)
        return json.loads(done.stdout)

    return printed


def thrown(seed, num_darts):
    draw = random.Random(seed)
    return [draw.random() ** 2 + draw.random() ** 2 <= 1 for _ in range(num_darts)]


def error(darts):
    return abs(4 * statistics.fmean(darts) - math.pi)


def test_verify_and_report_give_the_same_verdicts_on_the_claims_of_the_file(call):
    rows = call("verify", "darts.py:pi")
    assert call("report", "darts.py:pi")["claims"] == rows
    number, statement = rows
    assert number["ours_mean"] == pytest.approx(statistics.fmean(error(thrown(seed, 100)) for seed in range(1, 6)))
    assert (number["published_mean"], number["origin"], number["note"]) == (0.131, "computed", "")
    assert (number["paper"], number["place"]) == ("Buffon 1777", "Table 1, row 1")
    many = statistics.fmean(error(thrown(seed, 10_000)) for seed in range(1, 6))
    assert statement["difference"] == pytest.approx(many - number["ours_mean"])
    assert statement["finding"] == "REPRODUCED" and "Welch's t-test" in statement["reason"]


def test_the_analysis_answers_for_every_replicate(call):
    rows = call("analyse", "darts.py:pi", "many", "parts", "--option", "count=4")
    assert [row["part"] for row in rows] == [1, 2, 3, 4]
    expected = [error(thrown(seed, 10_000)[2::4]) for seed in range(1, 6)]
    assert rows[2]["error"] == pytest.approx(statistics.fmean(expected))
    assert rows[2]["error_std"] == pytest.approx(statistics.stdev(expected)) and rows[2]["n"] == 5
    assert all(0 < row["p"] <= row["p_holm"] <= 1 for row in rows)
    against = call("analyse", "darts.py:pi", "many", "--against", "few")
    assert against[0]["error_against"] == pytest.approx(
        statistics.fmean(error(thrown(seed, 100)[::2]) for seed in range(1, 6))
    )
