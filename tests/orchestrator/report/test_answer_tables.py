"""The tables of a report: what stands in them, from answers whose numbers are known."""

import csv
import io
import math
import statistics
from dataclasses import replace

import pytest

from orchestrator.pareto.equal_cost import EqualCost
from orchestrator.report.answer_tables import tables
from orchestrator.report.claim_table import claim_table
from orchestrator.report.comparison_table import equal_cost_sentence, equal_cost_table
from orchestrator.report.numerals import MINUS
from orchestrator.report.table import Table, to_csv, to_markdown
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import mean_interval
from search_spaces.claim import NumberClaim
from tests.orchestrator.report.made_answers import CONDITIONS, answers_of, study_of, verdicts


@pytest.fixture(scope="module")
def study():
    found = study_of(CONDITIONS)
    gone = Replicate("gone/1", "gone", 1, "failed", {"per": 0.9}, error="CUDA out of memory")
    return Study(found.sweep, (*found.replicates, gone))


@pytest.fixture(scope="module")
def named(study) -> dict[str, Table]:
    return {table.name: table for table in tables(answers_of(study, notes=("One seed is odd.",)))}


def records(table):
    return list(csv.DictReader(io.StringIO(to_csv(table))))


def printed(table, heading):
    return next(column.texts for column in table.printed if column.heading == heading)


def test_names_and_shapes(named):
    kinds = ("conditions", "comparisons", "equal_cost", "training", "over_items", "claims", "metrics", "replicates")
    assert tuple(named) == tuple(f"asr.demo.{kind}" for kind in kinds)
    for table in named.values():
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert all(len(column.texts) == len(table.rows) for column in table.printed)
        assert all(column.by in table.columns for column in table.printed)


def test_conditions_hold_the_moments_of_their_replicates(named, study):
    rows = {row["condition"]: row for row in records(named["asr.demo.conditions"])}
    assert set(rows) == set(study.conditions)
    values = [replicate.metrics["per"] for replicate in study.of("random")]
    row = rows["random"]
    assert float(row["per_mean"]) == pytest.approx(statistics.mean(values), rel=1e-12)
    assert float(row["per_std"]) == pytest.approx(statistics.stdev(values), rel=1e-12)
    half = 2.7764451 * statistics.stdev(values) / math.sqrt(5)
    assert float(row["per_high"]) - float(row["per_mean"]) == pytest.approx(half, rel=1e-6)
    assert row["n"] == "5"


def test_rows_on_the_front_are_marked(named):
    table = named["asr.demo.conditions"]
    assert {i for i, row in enumerate(records(table)) if row["on_front"] == "true"} == table.marked
    assert "**surprisal**" in to_markdown(table)
    assert "**random**" not in to_markdown(table)


def test_a_condition_without_a_value_stands_at_the_end_of_the_table(named):
    row = records(named["asr.demo.conditions"])[-1]
    assert (row["condition"], row["n"], row["per_mean"], row["standing"]) == ("gone", "0", "", "no value")


def test_conditions_as_a_paper_prints_them(named):
    table = named["asr.demo.conditions"]
    headings = [column.heading for column in table.printed]
    assert headings[:5] == ["condition", "per (min)", "95 % interval", "macs_per_frame (min)", "95 % interval"]
    assert headings[5:] == ["n", "P(front)", "P(dominates reference)", "standing"]
    assert printed(table, "macs_per_frame (min)")[0] == "185,740 ± 0"
    assert all(len(text.split(" ± ")[0]) == len("0.1234") for text in printed(table, "per (min)")[:-1])
    assert "One seed is odd." in table.notes


def test_without_a_reference_there_is_no_column_for_it(study):
    answers = answers_of(study)
    question = replace(answers.question, reference="")
    alone = replace(answers, question=question, front=replace(answers.front, reference=""), comparisons=())
    conditions, comparisons = tables(alone)[:2]
    assert "P(dominates reference)" not in [column.heading for column in conditions.printed]
    assert comparisons.rows == ()
    assert "no reference" in comparisons.notes[0]


def test_without_spread_there_is_no_column_of_intervals():
    conditions = tables(answers_of(study_of(CONDITIONS, seeds=1)))[0]
    assert "95 % interval" not in [column.heading for column in conditions.printed]
    assert records(conditions)[0]["per_std"] == ""


def test_comparisons(named):
    table = named["asr.demo.comparisons"]
    first, second = records(table)[:2]
    assert (first["a"], first["b"], first["metric"]) == ("surprisal", "always_big", "per")
    difference = float(first["a_mean"]) - float(first["b_mean"])
    assert float(first["difference"]) == pytest.approx(difference)
    assert first["seeds_needed"] == ""
    assert printed(table, "n needed")[:3] == ("≥1,000", "7", "23")
    assert second["warnings"] == "ties: 3 of 5 differences are 0"
    assert printed(table, "warnings")[:2] == ("", "1")
    assert table.notes[-1] == "Warning 1: ties: 3 of 5 differences are 0"


@pytest.mark.parametrize(
    ("line", "better", "num_others", "said"),
    [
        (
            0.25,
            0.75,
            3,
            "front of the other points has per 0.25, and it has 0.2: P(better than that front) = 0.75 over seeds.",
        ),
        (0.25, math.nan, 3, "it mostly costs less than all of them, so there is no P(better than that front)."),
        (math.inf, math.nan, 3, "None of the other points costs as little, so there is no front at its cost."),
        (math.inf, math.nan, 0, "There is no other point to compare, so there is no front at its cost."),
        (math.nan, math.nan, None, "Compare these two alone for the front at its cost."),
    ],
)
def test_points_of_unequal_cost_are_held_against_what_there_is(line, better, num_others, said):
    found = equal_cost_sentence(EqualCost("a", "b", "per", "macs", 1.0, 2.0, 0.2, line, better, num_others))
    assert found.startswith("Unequal cost: a costs 50.0 % less than b (macs 1 against 2).") and said in found


def test_a_table_at_equal_cost_has_what_the_sentences_say(study):
    pairs = [
        EqualCost("a", "b", "per", "macs", 3000.0, 2000.0, 0.25, 0.5, 0.75, 3),
        EqualCost("c", "b", "per", "macs", 1000.0, 2000.0, 0.75, math.inf, math.nan, 3),
    ]
    table = equal_cost_table(replace(answers_of(study), unequal_costs=tuple(pairs)))
    assert [column.heading for column in table.printed] == [
        "condition", "macs", "more, %", "per", "front there", "P(better)"
    ]  # fmt: skip
    rows = list(zip(*(column.texts for column in table.printed), strict=True))
    assert rows[0] == ("a", "3,000", "+50.0", "0.2500", "0.5000", "0.75")
    assert rows[1] == ("c", "1,000", f"{MINUS}50.0", "0.7500", "", "")
    assert [(row["line"], row["better"], row["share_more"]) for row in records(table)] == [
        ("0.5", "0.75", "0.5"), ("", "", "-0.5")
    ]  # fmt: skip
    assert "front of the others has at this cost" in table.notes[0] and len(table.notes) == 1


def test_a_table_at_equal_cost_says_of_how_many_pairs_the_front_was_not_looked_for(study):
    pairs = [EqualCost(name, "b", "per", "macs", 3.0, 2.0, 0.25, math.nan, math.nan, None) for name in ("a", "c")]
    table = equal_cost_table(replace(answers_of(study), unequal_costs=tuple(pairs)))
    assert "Of the last 2 pairs the front was not looked for" in table.notes[1]
    found = [(row["a"], row["line"], row["share_more"]) for row in records(table)]
    assert found == [("a", "", "0.5"), ("c", "", "0.5")]


def test_without_unequal_costs_the_table_is_empty(study):
    table = equal_cost_table(replace(answers_of(study), unequal_costs=()))
    assert table.rows == () and table.notes == ("No conditions that are compared differ in cost by over 2 %.",)


def test_a_comparison_that_cannot_decide_says_so(named):
    table = named["asr.demo.comparisons"]
    found = {row["can_decide"]: text for row, text in zip(records(table), printed(table, "answer"), strict=True)}
    assert found["false"] == "cannot decide"


def test_claims(named):
    table = named["asr.demo.claims"]
    per, _, said, _, other = records(table)
    assert (per["published_mean"], per["published_std"], per["published_n"]) == ("18.1", "0.15", "5")
    assert (per["finding"], per["margin"], per["place"]) == ("BETTER", "0.5", "table 2, TIMIT, surprisal")
    assert (said["kind"], said["seeds_needed"]) == ("statement", "7")
    assert (other["finding"], other["ours_mean"], other["difference"]) == ("NOT COMPARABLE", "", "")
    assert printed(table, "published")[:3] == ("18.10 ± 0.15 (n = 5)", "168,000", "below random")
    assert printed(table, "ours")[:2] == ("17.42 ± 0.31", "166,200 ± 530")
    assert printed(table, "claim")[0] == "per of surprisal@stochastic (table 2, TIMIT, surprisal)"


def test_all_metrics_in_long_form(named, study):
    rows = records(named["asr.demo.metrics"])
    assert len(rows) == 4 * len(CONDITIONS)
    row = next(row for row in rows if (row["condition"], row["metric"]) == ("surprisal", "valid_loss_nats"))
    low, high = mean_interval(study.values("surprisal", "valid_loss_nats"))
    assert (float(row["low"]), float(row["high"])) == (low, high)


def test_metrics_of_an_evaluation_are_parted_from_its_name():
    replicates = [Replicate(f"a/{i}", "a", i, "complete", {"per@fixed": 0.1 * i, "epochs": 3.0}) for i in (1, 2)]
    base = answers_of(study_of(CONDITIONS))
    metrics = tables(replace(base, study=Study("s", tuple(replicates))))[6]
    assert [(row["metric"], row["evaluation"]) for row in records(metrics)] == [("per", "fixed"), ("epochs", "")]


def test_replicates_hold_what_was_reported(named, study):
    rows = records(named["asr.demo.replicates"])
    assert len(rows) == len(study.replicates)
    for row, replicate in zip(rows, study.replicates, strict=True):
        assert (row["condition"], int(row["seed"]), row["key"]) == (replicate.condition, replicate.seed, replicate.key)
        assert float(row["per"]) == replicate.metrics["per"]
    assert (rows[-1]["state"], rows[-1]["error"], rows[-1]["accuracy"]) == ("failed", "CUDA out of memory", "")


def test_a_metric_may_be_called_as_a_column_of_every_replicate():
    replicates = [Replicate(f"a/{i}", "a", i, "complete", {"error": 0.1 * i, "seed": 7.0}) for i in (1, 2)]
    base = answers_of(study_of(CONDITIONS))
    table = tables(replace(base, study=Study("s", tuple(replicates))))[-1]
    assert table.columns == ("condition", "seed", "state", "key", "error", "metric error", "metric seed")
    texts = {column.heading: column.texts for column in table.as_printed()}
    assert (texts["metric error"], texts["error"], texts["seed"]) == (("0.1", "0.2"), ("", ""), ("1", "2"))


def test_the_same_answers_make_the_same_tables(study):
    first, second = (tables(answers_of(study)) for _ in range(2))
    assert [to_csv(table) for table in first] == [to_csv(table) for table in second]


def test_a_number_that_we_computed_is_called_so_wherever_it_is_shown():
    first = verdicts()[0]
    assert isinstance(first.claim, NumberClaim)
    printed = claim_table("asr.demo", (first,))
    computed = replace(first.claim, published=replace(first.claim.published, is_computed=True))
    ours = claim_table("asr.demo", (replace(first, claim=computed),))
    assert [table.values("origin") for table in (printed, ours)] == [("published",), ("computed",)]
    assert [table.printed[2].texts[0] for table in (printed, ours)] == [
        "18.10 ± 0.15 (n = 5)",
        "computed: 18.10 ± 0.15 (n = 5)",
    ]
    assert [any("we computed it" in note for note in table.notes) for table in (printed, ours)] == [False, True]
