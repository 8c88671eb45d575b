"""What a bundle of somebody else's may hold, and what it may not."""

import json
import zipfile
from dataclasses import replace

import pytest

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.verify import verify
from orchestrator.report.bundle.write import write_bundle
from tests.orchestrator.report.bundle.changed import changed
from tests.orchestrator.report.bundle.test_verify import CONDITIONS, edited
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError


@pytest.fixture
def whole(tmp_path):
    file = tmp_path / "whole.zip"
    answers = answer(small_study(), question())
    write_bundle(file, answers, tables(answers), PROVENANCE, "<html></html>")
    return file


def test_more_columns_or_metrics_than_a_report_has_are_refused_before_any_table_is_made(whole, monkeypatch):
    def widen(members):
        members[CONDITIONS] = ",".join(f"column{i}" for i in range(10_001)).encode() + b"\n"

    def measure(members):
        study = json.loads(members["study.json"])
        study["replicates"][0]["metrics"] |= {f"metric{i}": 1.0 for i in range(20_000)}
        members["study.json"] = json.dumps(study).encode()

    with pytest.raises(InputError, match=rf"may have 10,000 columns in {CONDITIONS} at most, but has 10,001\.$"):
        verify(changed(whole, widen))
    monkeypatch.setattr("orchestrator.report.bundle.verify.answer", lambda *_: pytest.fail("made"))
    with pytest.raises(InputError, match=r"may have 10,000 metrics at most, but has 20,006\.$"):
        verify(changed(whole, measure))


def test_of_a_long_cell_that_differs_the_beginning_is_said(whole):
    def lengthen(members):
        edited(members, CONDITIONS, 1, "condition", lambda _: "x" * 70_000)

    (found,) = [one for one in verify(changed(whole, lengthen)).differences if one.column == "condition"]
    assert found.written == "x" * 500 + "... (70,000 characters)"
    file = changed(whole, lambda members: members.update({CONDITIONS: b"x" * 9_000 + b",y\n"}))
    (found,) = verify(file).differences
    assert found.written.endswith("... (9,003 characters)") and len(found.found) < 600


def test_texts_like_formulas_that_an_earlier_version_wrote_are_as_they_should_be(tmp_path):
    study = small_study()
    renamed = tuple(replace(one, condition="=1+1") if one.condition == "random" else one for one in study.replicates)
    answers = answer(replace(study, replicates=renamed), question())
    write_bundle(tmp_path / "it.zip", answers, tables(answers), PROVENANCE, "")

    def as_before(members):
        for name in members:
            members[name] = members[name].replace(b"'=1+1", b"=1+1") if name.endswith(".csv") else members[name]

    with zipfile.ZipFile(tmp_path / "it.zip") as archive:
        assert b"\n'=1+1," in archive.read(CONDITIONS)
    assert verify(tmp_path / "it.zip").differences == ()
    assert verify(changed(tmp_path / "it.zip", as_before)).differences == ()
