"""What an audit found is kept, and stands in reports, bundles and `verify`."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from orchestrator.audit.record import record_audit, recorded_audit
from orchestrator.cli.main import app
from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.verify import verify
from orchestrator.report.bundle.write import write_bundle
from orchestrator.report.page import render
from orchestrator.report.save import save
from orchestrator.results.audit import Audited, Finding
from tests.orchestrator.driven import new_settings
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError

LEAK = Finding("prefix causality", "finding", "inputs after place 5", "probabilities of <b>test</b> 26", 0.0297)
AUDIT = (
    Audited("surprisal", "greedy", LEAK, "v1"),
    Audited("surprisal", "greedy", Finding("sums to 1"), "v1"),
    Audited("random", "", Finding("repeats", "not checked", why="it has no `predict`"), "v1"),
)


def test_the_last_result_of_each_evaluation_is_kept(tmp_path):
    settings = new_settings(tmp_path)
    assert recorded_audit("asr.demo", settings) == ()
    record_audit("asr.demo", AUDIT, settings)
    record_audit("asr.demo", AUDIT[:1], settings)
    assert recorded_audit("asr.demo", settings) == (AUDIT[2], AUDIT[0])
    assert recorded_audit("asr.demo.smoke", settings) == ()
    (file,) = (settings.runs / "audits").iterdir()
    file.write_text("[")
    with pytest.raises(InputError, match=r"is damaged; remove it, and run `ponderay audit asr\.demo` again"):
        recorded_audit("asr.demo", settings)


def test_a_report_warns_of_findings_and_a_bundle_makes_the_table_again(tmp_path):
    study = replace(small_study(), audit=AUDIT)
    answers = answer(study, question())
    page = render(answers, (), PROVENANCE)
    said = "surprisal, greedy: prefix causality. Changed: inputs after place 5. Moved: probabilities of &lt;b&gt;test"
    assert page.count(f"Audit: {said}") == 1
    assert "1 ok, 1 finding, 1 not checked" in page and "it has no `predict`" in page
    assert "The audit is of other code than some results" not in page
    write_bundle(tmp_path / "it.zip", answers, tables(answers), PROVENANCE, page)
    found = verify(tmp_path / "it.zip")
    assert (found.differences, found.audit) == ((), AUDIT)
    shown = CliRunner().invoke(app, ["verify", str(tmp_path / "it.zip")], env={"COLUMNS": "200"}).stdout
    assert "Audit, as the bundle says: 1 ok, 1 finding, 1 not checked.\nFinding: surprisal, greedy: prefix" in shown

    older = replace(study, audit=tuple(replace(one, code_version="v0") for one in AUDIT))
    assert "The audit is of other code than some results" in render(answer(older, question()), (), PROVENANCE)
    without = save(answer(small_study(), question()), tmp_path, None)
    assert not any("audit" in file.name for file in without)
