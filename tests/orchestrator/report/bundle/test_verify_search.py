"""Bundles of searches: what was drawn and told, and the importance that follows from it."""

import csv
import io
import json
import shutil
import zipfile

import pytest

from orchestrator.report.bundle.verify import verify
from orchestrator.scheduler import importance
from tests.orchestrator.report.bundle.changed import changed
from tests.orchestrator.report.searched import write_search
from trainables.errors import InputError

FEW = {"NUM_GROUPS": 2, "NUM_TREES": 16, "NUM_JUDGES": 64}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, number in FEW.items():
            patch.setattr(importance, name, number)
        return write_search(tmp_path_factory.mktemp("written") / "search.zip")


@pytest.fixture
def searched(written, tmp_path, monkeypatch):
    """A copy, which the test may change."""
    for name, number in FEW.items():
        monkeypatch.setattr(importance, name, number)
    return shutil.copy(written, tmp_path / "search.zip")


def with_search(file, change):
    def changing(members):
        content = json.loads(members["search.json"])
        change(content)
        members["search.json"] = json.dumps(content).encode()

    return changed(file, changing)


def test_the_importance_of_a_searchs_parameters_follows_from_what_it_drew_and_was_told(searched):
    found = verify(searched)
    assert found.differences == () and found.num_tables == 9
    with zipfile.ZipFile(searched) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("tables/asr.demo.importance.csv").decode())))
    assert [row["parameter"] for row in rows] == ["x", "y"]
    assert float(rows[0]["per"]) > 0.8 and float(rows[1]["macs_per_frame"]) > 0.8

    def swap(content):
        for one in content["trials"]:
            one["drawn"] = {"x": one["drawn"]["y"], "y": one["drawn"]["x"]}

    columns = {(one.member, one.column) for one in verify(with_search(searched, swap)).differences}
    assert ("tables/asr.demo.importance.csv", "per") in columns


def test_a_value_that_no_seeds_of_its_condition_give_is_named(searched):
    def change(content):
        content["trials"][3]["values"][0] += 1e-6
        content["trials"][4]["condition"] = "unknown"

    found = [one for one in verify(with_search(searched, change)).differences if one.member == "search.json"]
    assert [(one.row, one.column) for one in found] == [("4 (0003)", "values"), ("5 (unknown)", "values")]
    assert found[1].found == "no replicates"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda content: content["trials"][0]["drawn"].pop("x"), "a value of each parameter .* '0000' has not"),
        (lambda content: content["trials"][0]["values"].append(1.0), "a finite one of each objective"),
        (lambda content: content["trials"][0]["values"].__setitem__(0, "NaN"), "a finite one of each objective"),
        (lambda content: content["trials"][0]["drawn"].update(x=3.0), "what Optuna drew, but it cannot be read"),
        (lambda content: content["distributions"].update(x="{}"), "what Optuna drew, but it cannot be read"),
        (lambda content: content["distributions"].update(x="no"), "what Optuna drew, but it cannot be read"),
        (lambda content: content.pop("objectives"), "what a report writes, but `objectives`"),
        (lambda content: content.update(sweep="lm.demo"), "about one sweep"),
        (lambda content: content.update(objectives=["per", "other"]), "the question's objectives"),
    ],
)
def test_a_search_that_cannot_be_is_refused(searched, change, says):
    with pytest.raises(InputError, match=says):
        verify(with_search(searched, change))
