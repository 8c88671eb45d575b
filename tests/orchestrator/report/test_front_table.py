"""A front as a table, sentences, JSON and CSV."""

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.console.printing import to_csv
from orchestrator.pareto.membership import Volume, uncertain_front
from orchestrator.report.front_table import front_json, front_rows, front_sentences, front_table
from orchestrator.results.study import Study
from orchestrator.statistics.summary import Interval
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, study_of
from tests.orchestrator.recorded import replicate

CONDITIONS = {
    "a": {1: (1.0, 300.0), 2: (1.0, 340.0)},
    "[b]": {1: (2.8, 100.0), 2: (3.2, 100.0)},
    "c": {1: (3.1, 100.0), 2: (3.1, 100.0)},
    "d": {1: (9.0, 900.0), 2: (9.0, 900.0)},
}
"""The means of [b] and c are near: drawn, [b] errs 3 - 1.09, 3, 3 and 3 + 1.09."""


@pytest.fixture
def found():
    return uncertain_front(study_of(CONDITIONS), ERROR_COST, "d")


def table_text(front, shown, width=250):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(front_table("s[1]", front, ERROR_COST, shown, width))
    return console.export_text()


def cells(text):
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if "│" in line]


def test_json_and_csv_carry_the_same_numbers(found):
    content = json.loads(front_json("s", found, ERROR_COST, {}))
    by_name = {row["condition"]: row for row in content["points"]}
    half = 12.706204736 * 0.2
    assert by_name["[b]"] == {
        "condition": "[b]",
        "evaluation": "e",
        "on_front": True,
        "n": 2,
        "per": 3.0,
        "per_std": pytest.approx(0.2 * math.sqrt(2)),
        "macs": 100.0,
        "macs_std": 0.0,
        "per_low": pytest.approx(3 - half),
        "per_high": pytest.approx(3 + half),
        "macs_low": 100.0,
        "macs_high": 100.0,
        "front_probability": 0.75,
        "dominates_reference_probability": 1.0,
        "standing": "front within noise",
    }
    assert by_name["c"]["front_probability"] == 0.25 and by_name["c"]["standing"] == "near within noise"
    assert by_name["d"]["dominates_reference_probability"] is None
    header, *lines = to_csv(front_rows(found, ERROR_COST, {})).splitlines()
    assert header == (
        "condition,evaluation,on_front,n,per,per_std,macs,macs_std,per_low,per_high,macs_low,macs_high,"
        "front_probability,dominates_reference_probability,standing"
    )
    assert lines[-1] == "d,e,False,2,9.0,0.0,900.0,0.0,9.0,9.0,900.0,900.0,0.0,,dominated"


def test_json_says_what_the_front_rests_on(found):
    content = json.loads(front_json("s", found, ERROR_COST, {}))
    assert (content["num_draws"], content["is_exact"], content["is_paired"]) == (3, True, True)
    assert content["reference"] == "d" and content["notes"] == list(found.notes)
    assert content["hypervolume"] == found.volume.value
    assert content["hypervolume_reference"] == pytest.approx([9.09, 909.0])
    assert (content["hypervolume_low"], content["hypervolume_high"]) == found.volume.interval
    assert [surface["level"] for surface in content["attainment"]] == [0.05, 0.5, 0.95]
    assert [surface["level"] for surface in content["seed_attainment"]] == [0.5, 1.0]
    assert content["attainment"][1]["steps"][0] == pytest.approx([3.0, 100.0])


def test_numbers_that_there_are_none_of_are_null():
    single = uncertain_front(study_of({"a": {1: (1.0, 3.0)}}), ERROR_COST, None)
    content = json.loads(front_json("s", single, ERROR_COST, {}), parse_constant=lambda name: 1 / 0)
    (row,) = content["points"]
    assert [row[name] for name in ("per_std", "per_low", "macs_high", "dominates_reference_probability")] == [None] * 4
    assert [content[name] for name in ("hypervolume", "hypervolume_reference", "hypervolume_low")] == [None] * 3
    said = front_sentences(single, ERROR_COST)
    assert said[1] == "P: share of the one resample there is in which nothing dominates the condition."
    assert not any("hypervolume" in sentence for sentence in said)


def test_the_table_marks_standings_and_gives_intervals(found):
    text = table_text(found, range(4))
    assert "s[1]: per against macs" in text
    rows = {row[1]: row for row in cells(text)}
    assert {name: row[0] for name, row in rows.items()} == {"a": "*", "[b]": "*?", "c": "?", "d": ""}
    assert rows["a"][2:] == ["1.00", "320 [66 to 574]", "2", "1.00", "1.00"]
    assert rows["[b]"][4:6] == ["2", "0.75"]
    assert rows["d"][5:] == ["0.00", ""]


def test_a_narrow_table_keeps_numbers_whole(found):
    text = table_text(found, range(4), width=60)
    assert "[66 to 574]" in text and "│" not in text and max(map(len, text.splitlines())) <= 60


def test_no_name_is_folded_whatever_has_to_move():
    """From a frame to columns, then names above their numbers; each time the whole name is in one line."""
    long = "joint,ar_loss_weight=0.0001@deterministic"
    found = uncertain_front(study_of(CONDITIONS | {long: {1: (5.0, 123456.7), 2: (5.4, 234567.8)}}), ERROR_COST, "d")
    for width in (250, 100, 80):
        text = table_text(found, range(5), width)
        assert long in text and "…" not in text and max(map(len, text.splitlines())) <= width
        assert "179,0" in text and "179,012.25" not in text


def test_only_the_shown_points_are_in_the_table_and_no_column_without_a_reference():
    found = uncertain_front(study_of(CONDITIONS), ERROR_COST, None)
    text = table_text(found, [0, 3])
    assert [row[1] for row in cells(text)] == ["a", "d"]
    assert "P(front)" in text and "dominates" not in text


def test_sentences_explain_marks_draws_volume_and_notes(found):
    said = front_sentences(found, ERROR_COST)
    assert said[0].startswith("* on the front of the means; *? on it, but in fewer than 95 %")
    assert said[1] == (
        "P: share of all 3 paired resamples of the seeds in which nothing dominates the condition, and in which it "
        "dominates the reference, d."
    )
    assert said[2].startswith("The hypervolume of the front up to per = 9.09, macs = 909 is ")
    assert tuple(said[3:]) == found.notes
    assert len(found.notes) == 4


def test_of_several_evaluations_each_is_held_against_its_own():
    replicates = (*study_of(CONDITIONS, "x").replicates, *study_of(CONDITIONS, "y").replicates)
    merged = [
        replace(x, metrics={**x.metrics, **y.metrics}) for x, y in zip(replicates[:8], replicates[8:], strict=True)
    ]
    found = uncertain_front(Study("s", tuple(merged)), ERROR_COST, "d")
    assert front_sentences(found, ERROR_COST)[1].endswith("dominates the reference, d, under the same evaluation.")


def test_a_volume_outside_its_interval_is_explained(found):
    odd = replace(found, volume=Volume(2.5, (1.0, 2.0), Interval(1.0, 2.0)))
    said = front_sentences(odd, ERROR_COST)
    assert said[2] == "The hypervolume of the front up to per = 1.00, macs = 2 is 2.50 (95 % interval 1.00 to 2.00)."
    assert said[3].startswith("It lies outside its interval")
    alone = replace(
        found, volume=Volume(2.5, (1.0, 2.0), Interval(math.nan, math.nan)), is_exact=False, is_paired=False
    )
    said = front_sentences(alone, ERROR_COST)
    assert said[2] == "The hypervolume of the front up to per = 1.00, macs = 2 is 2.500."
    assert "share of 3 random resamples of the seeds" in said[1]


def test_metrics_that_are_called_as_a_column_have_one_of_their_own():
    objectives = (replace(ERROR_COST[0], metric="n"), replace(ERROR_COST[1], metric="standing"))
    named = [
        replace(one, metrics=dict(zip(("n", "standing"), one.metrics.values(), strict=True)))
        for one in study_of(CONDITIONS).replicates
    ]
    row = front_rows(uncertain_front(Study("s", tuple(named)), objectives, "d"), objectives, {})[0]
    assert (row["condition"], row["n"], row["metric n"], row["metric standing"]) == ("a", 2, 1.0, 320.0)
    assert isinstance(row["standing"], str)


@pytest.mark.parametrize("width", [24, 40, 80])
def test_no_number_is_left_out_however_narrow_it_is(width):
    names = [f"metric_with_a_long_name_{i}" for i in range(3)]
    objectives = tuple(Objective(name) for name in names)
    runs = [
        replicate(condition, seed, metrics={name: 1000.125 * (i + k + seed) for i, name in enumerate(names)})
        for k, condition in enumerate("ab")
        for seed in (1, 2)
    ]
    front = uncertain_front(Study("s", tuple(runs)), objectives, "b")
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(front_table("s", front, objectives, (0, 1), width))
    said = " ".join(console.export_text().split())
    assert said.count("P(front)") == 2 and said.count("n 2") == 2 and "…" not in said
