"""Published rows beside a front: which are points, and whether they are comparable."""

from dataclasses import replace

import pytest

from orchestrator.report import published_marks
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective


def test_published_points_are_comparable_on_the_same_data_only(monkeypatch):
    """The claims' own judgement of comparability stands in; a smoke sweep never is."""
    question, study = Question.of(find_sweep("asr.table2_timit")), Study("asr.table2_timit", ())
    monkeypatch.setattr(published_marks, "obstacle", lambda *_: "")
    marks = published_marks.published_marks(question, study)
    (surprisal,) = [mark for mark in marks if "TIMIT, surprisal" in mark.text]
    assert surprisal.values == pytest.approx({"per": 0.2000, "macs_per_frame": 6.41e6}) and surprisal.is_comparable
    assert surprisal.legend == "published (Lugosch, Nowrouzezahrai, Meyer 2020)"
    numbers = ["released_per of surprisal: 20.00 ± 0.15 (n = 5)", "released_flops_per_frame of surprisal: 6.41"]
    assert surprisal.text.splitlines()[1:3] == numbers and "count padding frames" in surprisal.text
    small = Question.of(find_sweep("asr.table2_timit", smoke=True))
    smoke = published_marks.published_marks(small, replace(study, sweep="asr.table2_timit.smoke"))
    assert {(mark.legend, mark.is_comparable) for mark in smoke} == {("published, other data", False)}
    monkeypatch.setattr(published_marks, "obstacle", lambda *_: "Other data.")
    marks = published_marks.published_marks(question, study)
    assert {mark.is_comparable for mark in marks} == {False}


def marks_of(sweep, *metrics):
    objectives = tuple(Objective(metric) for metric in metrics)
    question = Question(sweep, "", objectives, "", "welch", (1,), {}, claims=claims_of(find_sweep(sweep)))
    return {mark.text.splitlines()[0]: mark for mark in published_marks.published_marks(question, Study(sweep, ()))}


def test_a_row_with_every_objective_is_a_point_in_our_units():
    points = marks_of("asr.table2_timit", "per", "macs_per_frame")
    assert len(points) == 5
    (source,) = [source for source in points if source.endswith("TIMIT, surprisal")]
    assert source.startswith("published: Lugosch, ") and "2006.01659" in source
    assert list(points[source].values) == ["per", "macs_per_frame"]


def test_a_row_without_one_of_them_is_none():
    assert marks_of("asr.deterministic_timit", "per", "test_loss_nats") == {}
    assert len(marks_of("asr.deterministic_timit", "per", "macs_per_frame")) == 4
    assert marks_of("lm.step_size", "perplexity", "macs_per_token") == {}
    assert len(marks_of("lm.step_size", "perplexity")) == 1 + 5 + 6 + 6
