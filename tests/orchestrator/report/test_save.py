"""Page, tables and bundle of results that Ponderay did not make, without a tracking store."""

import pandas
import pytest

from orchestrator.report.bundle.verify import verify
from orchestrator.results.study import Study
from ponderay import notebook
from search_spaces.sweep import Objective
from tests.orchestrator.report.studies import small_study
from trainables.errors import InputError

FRAME = pandas.DataFrame(
    {
        "width": [8, 8, 8, 16, 16, 16],
        "kind": ["lstm"] * 6,
        "seed": [1, 2, 3] * 2,
        "error": [0.41, 0.43, 0.42, 0.31, 0.35, 0.33],
        "macs": [1e6, 1.1e6, 1.2e6, 4e6, 4.1e6, 4.2e6],
    }
)


@pytest.fixture
def answers():
    objectives = (Objective("error"), Objective("macs"))
    study = Study.from_dataframe(
        FRAME, objectives, "theirs", condition=["width", "kind"], reference="width=8,kind=lstm"
    )
    return notebook.report(study)


def test_results_from_elsewhere_get_front_comparisons_and_files(answers, workplace):
    assert [point.is_front for point in answers.front.points] == [True, True]
    assert {(one.a, one.b) for one in answers.comparisons} == {("width=16,kind=lstm", "width=8,kind=lstm")}
    files = notebook.save_report(answers, workplace / "paper", workplace / "zips" / "it.zip")
    assert files[0].name == "theirs.report.html" and {file.parent for file in files} == {workplace / "paper"}
    page = files[0].read_text()
    assert "width=16,kind=lstm" in page and "<td>16</td>" in page
    assert "ponderay run" not in page and 'href="#repeat"' not in page
    found = verify(workplace / "zips" / "it.zip")
    assert (found.num_replicates, found.differences) == (6, ())
    assert not (workplace / "runs").exists()


def test_a_study_of_ponderay_keeps_the_commands_that_repeat_it(workplace):
    files = notebook.save_report(notebook.report(small_study()), workplace)
    assert "ponderay run asr.demo" in files[0].read_text()


def test_a_place_that_cannot_be_written_is_named(answers, workplace):
    (workplace / "file").write_text("")
    with pytest.raises(InputError, match="must be places that can be written to"):
        notebook.save_report(answers, workplace / "file")
