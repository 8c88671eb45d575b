"""One test for all comparisons of a sweep, and what may be said where it shows nothing."""

import re
from dataclasses import replace

import pytest

from orchestrator.report.answers import Answers, answer
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.condition_table import condition_table
from orchestrator.report.numerals import signed
from orchestrator.report.sentences import summary_sentences
from orchestrator.report.table import to_markdown
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.studies import question

VALUES = {
    "random": (0.30, 0.31, 0.29),
    "near": (0.302, 0.311, 0.293),
    "wide": (0.2, 0.3, 0.42),
    "far": (0.5, 0.51, 0.49),
}


def answers(margin: float | None = None, direction: str = "minimize", num_seeds: int = 3) -> Answers:
    sign = 1 if direction == "minimize" else -1
    replicates = [
        replicate(name, seed, metrics={"per": sign * value, "macs_per_frame": 1.0})
        for name, values in VALUES.items()
        for seed, value in enumerate(values[:num_seeds], 1)
    ]
    objectives = (Objective("per", direction), Objective("macs_per_frame"))  # type: ignore[arg-type]
    asked = question(objectives=objectives, configs={name: {} for name in VALUES}, non_inferiority=margin)
    return answer(Study("asr.demo", tuple(replicates)), asked)


def test_without_a_margin_it_is_said_what_is_not_shown():
    text = " ".join(summary_sentences(answers()))
    assert "not shown to differ: near and wide" in text and "not worse" not in text


def test_of_one_seed_it_is_said_that_nothing_was_tested():
    text = " ".join(summary_sentences(answers(num_seeds=1)))
    (untested,) = re.findall(r"In per, against random: not tested, for one seed has no spread: (.*?)\. In", text)
    assert set(re.split(", | and ", untested)) == {f"wide ({signed(-0.1, 4)})", "near (+0.0020)", "far (+0.2000)"}
    assert "not shown to differ" not in text


def test_no_number_of_seeds_stands_beside_the_one_from_which_it_can_be_shown():
    """Of two sides that do not vary, in a metric whose noise rounding may hide."""
    rows = {"random": (0.5,) * 5, "near": (0.25,) * 5, "wide": (0.25, 0.5, 0.5, 0.25, 0.75)}
    asked = question(
        objectives=(Objective("per"), Objective("macs_per_frame")),
        configs={name: {} for name in rows},
        test="paired_permutation",
    )
    replicates = [
        replicate(name, seed, metrics={"per": value, "macs_per_frame": 1.0})
        for name, values in rows.items()
        for seed, value in enumerate(values, 1)
    ]
    table = comparison_table(answer(Study("asr.demo", tuple(replicates)), asked))
    cells = {column.heading: column.texts for column in table.as_printed()}
    place = next(i for i, name in enumerate(cells["condition"]) if (name, cells["metric"][i]) == ("near", "per"))
    assert "from 7 seeds on" in " ".join(table.notes)
    assert cells["n needed"][place] == ""


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_with_a_margin_what_lies_within_it_is_not_worse_and_the_rest_not_shown(direction):
    """The interval of `near` ends .025 on the worse side, that of `wide` far beyond; `far` is worse."""
    found = answers(0.03, direction)
    text = " ".join(summary_sentences(found))
    assert "worse: far" in text and "not worse by 0.03: near; not shown to differ: wide" in text
    cells = {column.heading: column.texts for column in comparison_table(found).as_printed()}
    assert [one.answer for one in found.comparisons if one.metric == "per"] == ["undecided", "undecided", "worse"]
    assert cells["answer"].count("not worse by 0.03") == 1
    assert "not worse" not in " ".join(summary_sentences(answers(0.01, direction)))


def test_the_correlation_over_seeds_is_shown_once():
    found = answers()
    text = to_markdown(condition_table(found)) + to_markdown(comparison_table(found))
    assert text.count("correlation over seeds between conditions in per: median") == 1
    assert "Seeds are not paired" in text
    paired = replace(found, question=replace(found.question, test="paired_permutation"))
    assert "Seeds are paired" in to_markdown(condition_table(paired))


@pytest.mark.parametrize(("pairing", "test"), [("none", "welch"), ("seeds", "paired_permutation")])
def test_the_pairing_of_a_sweep_chooses_its_test(pairing, test):
    sweep = replace(find_sweep("asr.demo"), pairing=pairing, non_inferiority=0.01)
    asked = Question.of(sweep)
    assert (sweep.test, asked.test, asked.non_inferiority) == (test, test, 0.01)


def test_the_note_under_the_table_names_the_test_that_took_the_place_of_the_promised_one():
    found = answers()
    paired = replace(found.question, test="paired_permutation")
    whole = answer(found.study, paired)
    lacking = answer(replace(found.study, replicates=found.study.replicates[1:]), paired)  # seed 1 of the reference
    end = " (of Welch's t-test where a warning says so)"
    notes = [" ".join(comparison_table(one).notes) for one in (whole, lacking)]
    assert all("p: of the exact paired permutation test" in note for note in notes)
    assert [end in note for note in notes] == [False, True]


def test_every_shipped_sweep_leaves_seeds_unpaired():
    from search_spaces.find import sweep_functions

    assert {find_sweep(name).pairing for name in sweep_functions()} == {"none"}
