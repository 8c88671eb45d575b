"""`verify` of a bundle: what is printed, and the exit codes."""

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli.verify import verify
from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.write import write_bundle
from tests.door import PLAIN, write
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError


@pytest.fixture
def bundle(workplace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    answers = answer(small_study(), question())
    write_bundle(Path("it.zip"), answers, tables(answers), PROVENANCE, "<html></html>")
    return Path("it.zip")


def call(*arguments):
    """The outcome of `verify`, as a user types it."""
    app = typer.Typer()
    app.command()(verify)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_bundle_that_is_whole_exits_with_0(bundle):
    found = call(bundle)
    assert found.exit_code == 0, found
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert found.stdout.startswith(f"it.zip: asr.demo, 9 replicates; sha256 {digest}\n")
    assert "cells of 8 tables follow from the raw values, and all " in found.stdout
    content = json.loads(call(bundle, "--format", "json").stdout)
    assert content["is_equal"] and content["sha256"] == digest and content["differences"] == []


def test_a_bundle_that_differs_exits_with_1_and_says_where(bundle):
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["tables/asr.demo.replicates.csv"] = members["tables/asr.demo.replicates.csv"].replace(
        b"random/1", b"[b]\x1b/1"
    )
    members["MANIFEST.json"] = members["MANIFEST.json"].replace(b'"numpy": "', b'"numpy": "0.')
    with zipfile.ZipFile(bundle, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    found = call(bundle)
    assert found.exit_code == 1
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in found.stdout.splitlines()]
    assert ["tables/asr.demo.replicates.csv", "1 (random)", "key", "[b]?/1", "random/1"] in rows
    assert "Differences: 2 in 1 of " in found.stdout and "The bundle was written with numpy 0." in found.stdout
    listed = list(csv.DictReader(io.StringIO(call(bundle, "--format", "csv").stdout)))
    assert [(one["column"], one["written"]) for one in listed[1:]] == [("key", "[b]\x1b/1")]
    content = json.loads(call(bundle, "--format", "json").stdout)
    assert not content["is_equal"] and list(content["versions"]) == ["numpy"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["asr.demo", "--sweep", "nonsense"], "--sweep is of a bundle, but asr.demo is none"),
        (["asr.demo", "--rerun", "2"], "--rerun is of a bundle, but asr.demo is none"),
        (["it.zip", "--smoke"], "--smoke is of a sweep, but it.zip is a bundle"),
        (["it.zip", "--published"], "--published is of a sweep, but it.zip is a bundle"),
    ],
)
def test_an_option_of_the_other_kind_is_refused(workplace, arguments, said):
    error = call(*arguments).exception
    assert isinstance(error, InputError) and said in str(error)


def test_published_numbers_are_those_of_the_size_that_is_asked_for(workplace):
    write(workplace, PLAIN, "of_one_size.py")
    assert call("of_one_size.py:toy", "--published").exit_code == 0
    error = call("of_one_size.py:toy", "--published", "--smoke").exception
    assert isinstance(error, InputError) and "of_one_size.py:toy has no small size" in str(error)


def test_what_is_no_bundle_is_refused(workplace):
    Path("it.zip").write_text("no")
    with pytest.raises(InputError, match=r"it\.zip is no bundle"):
        verify("it.zip")
