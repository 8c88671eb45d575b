"""A race that was stopped bears a mark wherever it is compared."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.join import Part, join_studies
from orchestrator.report.bundle.records import read_study, study_json
from orchestrator.report.bundle.verify import verify
from orchestrator.report.bundle.write import write_bundle
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.condition_table import condition_table
from orchestrator.report.page import render
from orchestrator.report.sentences import warning_sentences
from orchestrator.report.table import records, to_latex, to_markdown
from orchestrator.report.training_table import marked, training_sentences, training_table
from orchestrator.results.study import Study
from tests.orchestrator.report.improved import with_slopes
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError
from trainables.metric import Best


@pytest.fixture(scope="module")
def answers():
    """One condition still falls, one has ended, of one there are no curves."""
    return answer(with_slopes(small_study(), {"surprisal": -0.01, "random": 0.0}), question())


def test_the_table_has_the_slope_of_what_selects_the_checkpoint(answers):
    rows = {(row["condition"], row["evaluation"]): row for row in records(training_table(answers))}
    found = rows["surprisal", "greedy"]
    assert (found["metric"], found["standing"], found["n"]) == ("valid_per", "improving", 3)
    assert found["change"] == pytest.approx(-0.01 * 1.02 * 2) and found["low"] < found["change"] < found["high"] < 0
    assert rows["random", "greedy"]["standing"] == "ended"
    assert not any(condition == "always_big" for condition, _ in rows)


@pytest.mark.parametrize("make", [condition_table, comparison_table])
def test_what_still_improves_is_marked(answers, make):
    text = to_markdown(make(answers))
    assert "surprisal@greedy †" in text and "random@greedy †" not in text
    assert r"surprisal@greedy $\dagger$" in to_latex(make(answers))
    assert all("†" not in str(cell) for row in make(answers).rows for cell in row)  # for programs names stay names


def test_a_reference_that_still_improved_bears_both_marks():
    improved = answer(with_slopes(small_study(), {"random": -0.01}), question())
    page = render(improved, (), PROVENANCE)
    assert re.search(r"random.*†.*<span class=\"tag\">reference</span></th>", page)


def test_one_sentence_says_which_races_were_stopped_and_one_of_which_it_is_not_known(answers):
    stopped, unknown = training_sentences(answers.study, [point.name for point in answers.front.points])
    assert stopped.startswith("† Still improving when training ended: ") and "surprisal@greedy" in stopped
    assert "always_big@greedy" in unknown and "5 validations in the last third" in unknown
    assert {stopped, unknown} <= set(condition_table(answers).notes) & set(warning_sentences(answers, PROVENANCE))


def test_without_curves_it_is_not_known_and_where_all_have_ended_nothing_is_said():
    study = small_study()
    (unknown,) = training_sentences(study, ["random"])
    assert "not known: there are no curves" in unknown
    ended = with_slopes(study, dict.fromkeys(study.conditions, 0.0))
    assert training_sentences(ended, study.conditions) == ()


def test_a_replicate_without_a_curve_leaves_it_open():
    study = with_slopes(small_study(), {"random": -0.01})
    two_of_three = replace(study, validations=replace(study.validations, curves=study.validations.curves[:2]))
    assert "not known of random" in training_sentences(two_of_three, ["random"])[0]


def test_where_one_evaluation_has_run_it_marks_what_its_own_metric_selects():
    whole = small_study()
    tested = [
        replace(one, metrics={n: v for n, v in one.metrics.items() if "@greedy" in n}) for one in whole.replicates
    ]
    falling = with_slopes(replace(whole, replicates=tuple(tested)), {"random": -0.01}, "valid_per@greedy", "greedy")
    also = {"random": {**falling.validations.selected["random"], "beam": Best("valid_per@beam")}}
    declared = replace(falling, validations=replace(falling.validations, selected=also))
    assert marked(falling, "random") == marked(declared, "random") == "random †"


def test_bundles_hold_the_curves_and_what_follows_from_them(answers, tmp_path):
    file = tmp_path / "it.zip"
    write_bundle(file, answers, tables(answers), PROVENANCE, "<html></html>")
    assert not verify(file).differences
    again = read_study(study_json(answers.study))
    assert again.validations == answers.study.validations


def test_bundles_that_are_put_together_keep_the_curves_of_each():
    whole = with_slopes(small_study(), {"surprisal": -0.01, "random": 0.0})
    part = Part(Path("part.zip"), whole, question(), PROVENANCE)
    joined, _ = join_studies(Study("asr.demo", ()), [part], whole.conditions)
    assert joined.validations == whole.validations


@pytest.mark.parametrize("steps", [[1, 1], [2, 1], [1]])
def test_a_bundle_with_a_broken_curve_is_refused(steps):
    content = json.loads(study_json(small_study()))
    curve = {"condition": "random", "seed": 1, "metric": "valid_per", "steps": steps, "values": [0.5, 0.25]}
    content["validations"]["curves"] = [curve]
    with pytest.raises(InputError, match="a finite value at each step"):
        read_study(json.dumps(content).encode())
