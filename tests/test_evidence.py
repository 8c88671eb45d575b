"""RESULTS.md is what the bundles in evidence/ give."""

import shutil
import sys
import zipfile

import pytest

from evidence import make_page
from orchestrator.report.answers import answer
from orchestrator.report.save import save
from tests.orchestrator.report.studies import question, small_study

NOTE = "# Is it worth it?\n\nA question.\n\n{answers}\n\nLearnt: yes.\n"


@pytest.fixture
def evidence(workplace, monkeypatch):
    """A folder with one bundle and its note, and one note alone."""
    folder = workplace / "evidence"
    folder.mkdir()
    save(answer(small_study(), question()), workplace / "report", folder / "one.zip")
    (folder / "one.md").write_text(NOTE)
    (folder / "speed.md").write_text("# Speed\n\nFast.\n")
    monkeypatch.setattr(make_page, "HERE", folder)
    monkeypatch.setattr(make_page, "PAGE", workplace / "RESULTS.md")
    return folder


def make(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["make_page.py", *arguments])
    return make_page.main()


def test_the_page_holds_each_study_with_its_answers_and_the_notes(evidence, workplace, monkeypatch):
    assert make(monkeypatch) == 0
    page = (workplace / "RESULTS.md").read_text()
    texts = ["# Results", "# Is it worth it?", "A question.", "ponderay run asr.demo", "8 complete, 1 failed"]
    texts += ["evidence/one.png", "surprisal@greedy", "Learnt: yes.", "# Speed"]
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert (evidence / "one.png").read_bytes().startswith(b"\x89PNG")
    assert make(monkeypatch, "--check") == 0


def test_a_page_that_says_something_else_is_told(evidence, workplace, monkeypatch, capsys):
    make(monkeypatch)
    page = workplace / "RESULTS.md"
    page.write_text(page.read_text().replace("Learnt: yes.", "Learnt: no."))
    assert make(monkeypatch, "--check") == 1
    assert "RESULTS.md" in capsys.readouterr().out


def test_a_bundle_that_was_changed_is_told(evidence, monkeypatch, capsys):
    make(monkeypatch)
    whole, changed = evidence / "one.zip", evidence / "changed"
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(b"0.", b"1.") if name == "study.json" else content)
    shutil.move(changed, whole)
    assert make(monkeypatch, "--check") == 1
    assert "one" in capsys.readouterr().out
