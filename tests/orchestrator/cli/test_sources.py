"""`ponderay sources`: tables for people, all statements for programs."""

import csv
import io
import json

from typer.testing import CliRunner

from orchestrator.cli.main import app


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["sources", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_people_see_tables_and_figures_and_how_to_see_statements(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = printed()
    assert "Table 5.1" in said and "ponderay report SWEEP: lm.step_size" in said and "--all" in said
    assert "nothing: a drawing of the model" in said


def test_programs_get_statements_too():
    rows = json.loads(printed("--format", "json"))
    assert {row["kind"] for row in rows} == {"item", "statement"}
    statement = next(row for row in rows if row["says"].startswith("Surprisal routing errs as much as the learned"))
    assert (statement["place"], statement["sweeps"]) == ("section 4.3, TIMIT", "asr.table2_timit")
    assert statement["command"] == "ponderay verify SWEEP"
    assert next(csv.DictReader(io.StringIO(printed("--format", "csv"))))["place"] == rows[0]["place"]
    assert len(json.loads(printed("Figure 6.1", "--format", "json"))) == 1
