"""What of a study is not comparable with what was published."""

import pytest

from orchestrator.published.places import _differences, _missing_fact
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim import Fact, Place, Setting
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate


@pytest.mark.parametrize("wanted", ["1", "1.0", "1e0"])
def test_a_required_number_is_one_however_it_is_written(wanted):
    assert not list(_differences(Setting("t", {"rate": wanted}), [{"rate": "1.0"}]))
    assert list(_differences(Setting("t", {"rate": wanted}), [{"rate": "2"}])) == [f"rate is 2, not {wanted}"]


def test_a_small_fact_is_written_out():
    setting = Setting("t", fact=Fact("half the error", Place("few", "error"), 0.35, 0.01))
    question = Question("s", "", (Objective("error"),), "", "welch", (1,), {"few": {}})
    said = _missing_fact(setting, Study("s", (replicate("few", 1, metrics={"error": 0.3}),)), question)
    assert said.endswith("which makes error of few 0.35; here it is 0.3.")
