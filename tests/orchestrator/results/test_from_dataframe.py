"""Results that Ponderay did not make, against the study that the same numbers make by hand; and what is refused."""

import io
import math
from dataclasses import replace
from fractions import Fraction

import pandas
import pytest

from orchestrator.pareto.membership import uncertain_front
from orchestrator.results.study import Replicate, Study
from orchestrator.tracking.load import load_study
from search_spaces.sweep import Objective
from tests.orchestrator.driven import driven
from tests.orchestrator.report.studies import small_study
from trainables.errors import InputError

OBJECTIVES = (Objective("error"), Objective("cost"))
ROWS = {
    "condition": ["a", "a", "b", "b"],
    "seed": [1, 2, 1, 2],
    "error": [0.1, 0.2, 0.4, 0.3],
    "cost": [3, 3, 1, 1],
    "host": ["x", "x", "y", "y"],
    "converged": [True, False, True, True],
}


def read(changes=None, **arguments):
    return Study.from_dataframe(pandas.DataFrame(ROWS | (changes or {})), **{"objectives": OBJECTIVES} | arguments)


def test_a_row_is_a_replicate_and_a_column_of_numbers_a_metric():
    expected = [
        Replicate("", name, seed, "complete", {"error": error, "cost": cost})
        for name, seed, error, cost in (("a", 1, 0.1, 3.0), ("a", 2, 0.2, 3.0), ("b", 1, 0.4, 1.0), ("b", 2, 0.3, 1.0))
    ]
    found = read(sweep="theirs", reference="a", test="paired_permutation")
    assert found == Study("theirs", tuple(expected))
    question = found.question
    assert (question.objectives, question.reference, question.test) == (OBJECTIVES, "a", "paired_permutation")
    assert question.seeds == (1, 2)


def test_several_columns_make_a_condition_and_are_its_setting():
    changes = {"model.width": [8, 8, 16, 16], "kind": ["lstm"] * 4, "run": ["1", 2, 3.0, 4], "seed": ["old"] * 4}
    found = read(changes, condition=["model.width", "kind"], seed="run")
    assert found.conditions == ("width=8,kind=lstm", "width=16,kind=lstm")
    assert [r.seed for r in found.replicates] == [1, 2, 3, 4]
    assert found.question.configs["width=8,kind=lstm"] == {"model.width": "8", "kind": "lstm"}
    assert set(found.metrics()) == {"error", "cost"}


def test_a_number_is_one_condition_however_it_is_written_and_yes_is_no_number():
    assert read({"condition": ["1e-3", 0.001, 1, 1.0]}).conditions == ("1e-3", "1")
    assert read({"condition": [True, 1, "1.0", "01"]}).conditions == ("True", "1", "01")


@pytest.mark.parametrize("value", [math.nan, None, math.inf, -math.inf, 10**400, Fraction(-(10**400))])
def test_a_run_without_a_finite_objective_has_failed_and_counts_in_nothing(value):
    found = read({"error": [0.1, value, 0.4, 0.3]})
    assert [r.state for r in found.replicates] == ["complete", "failed", "complete", "complete"]
    assert found.replicates[1].error == "error has no finite value"
    assert found.values("a", "error") == (0.1,)


def test_an_objective_under_one_of_several_evaluations_is_enough():
    frame = pandas.DataFrame({"condition": ["a", "b"], "seed": [1, 1], "error@x": [1.0, None], "cost": [2.0, 2.0]})
    found = Study.from_dataframe(frame.assign(**{"error@y": [None, None]}, z=[1, 2]), OBJECTIVES)
    assert [r.state for r in found.replicates] == ["complete", "failed"]


def test_a_column_called_status_is_one_of_states_where_its_words_are():
    assert [r.state for r in read({"status": ["FINISHED", "FAILED", "KILLED", "RUNNING"]}).replicates] == [
        "complete", "failed", "stopped", "running",
    ]  # fmt: skip
    assert {r.state for r in read({"status": ["married", "single", "single", "married"]}).replicates} == {"complete"}
    with pytest.raises(InputError, match=r"The column 'status' must hold running, .* but row 1 has 'lost'"):
        read({"status": ["FINISHED", "lost", "FINISHED", "FINISHED"]})


def test_a_column_of_states_is_believed():
    found = read({"state": ["complete", "failed", "running", "stopped"], "error": [0.1, 0.2, 0.4, math.nan]})
    assert [r.state for r in found.replicates] == ["complete", "failed", "running", "stopped"]
    assert found.replicates[1].metrics["error"] == 0.2


def test_without_objectives_every_row_is_complete_and_nothing_is_asked():
    found = read({"error": [0.1, None, 0.4, 0.3]}, objectives=())
    assert {r.state for r in found.replicates} == {"complete"} and found.question is None


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({}, {"condition": "model"}, r"must be a column 'model'; the columns are condition, seed, error"),
        ({}, {"seed": "Seed"}, "must be a column 'Seed'"),
        ({}, {"objectives": (Objective("per"),)}, "objective 'per' must be a metric; there are error, cost"),
        ({}, {"objectives": ("error",)}, r"must be Objective\(METRIC, DIRECTION\) each, but got 'error'"),
        ({}, {"objectives": set(OBJECTIVES)}, r"must be Objective\(METRIC, DIRECTION\) each, but got {Objective"),
        ({}, {"condition": {"condition", "host"}}, "`condition` must be a name or a list of names, but got {'"),
        ({}, {"objectives": (OBJECTIVES[0],) * 2}, "Each objective must be named once"),
        ({}, {"reference": "c"}, "reference 'c' must be a condition; there are a, b"),
        ({}, {"test": "t"}, "`test` must be welch or paired_permutation, but got 't'"),
        ({}, {"sweep": "a\nb"}, "name of a sweep must be text in one line"),
        ({"seed": [1, 1, 1, 2]}, {}, "row 0 and row 1 are both 'a' with seed 1"),
        ({"seed": [1, 2.5, 1, 2]}, {}, "seed must be a whole number, but row 1 has 2.5"),
        ({"seed": [1, 2, None, 2]}, {}, "seed must be a whole number, but row 2 has nan"),
        ({"seed": [1, 2, "x", 2]}, {}, "seed must be a whole number, but row 2 has 'x'"),
        ({"seed": [1, "2.5", 3, 2]}, {}, "seed must be a whole number, but row 1 has '2.5'"),
        ({"seed": ["1", "inf", "3", "2"]}, {}, "seed must be a whole number, but row 1 has 'inf'"),
        (
            {"condition": ["a", None, "b", "b"]},
            {},
            "'condition' must name a condition in every row, but row 1 is empty",
        ),
        ({"condition": ["a", "a", "b\n", "b\nc"]}, {}, r"name of a condition must be text in one line, but row 3"),
        ({"error": [0.1, "0.2 %", 0.4, 0.3]}, {}, "metric 'error' must be a number or empty, but row 1 has '0.2 %'"),
        ({"error": ["0.1", "oops", "0.4", "0.3"]}, {}, "metric 'error' must be a number or empty, but row 0 has '0.1'"),
        ({"cost": [True, True, False, False]}, {}, "metric 'cost' must be a number or empty, but row 0 has True"),
        ({"time": [1, 2, "long", 3]}, {}, "metric 'time' must be a number or empty, but row 2 has 'long'"),
        ({"state": ["done"] * 4}, {}, "'state' must hold running, stopped, complete, failed, pruned, or what W&B"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(changes, arguments, message):
    with pytest.raises(InputError, match=message):
        read(changes, **arguments)


def test_tables_without_a_row_and_with_two_columns_of_one_name_are_refused():
    frame = pandas.DataFrame(ROWS)
    with pytest.raises(InputError, match="results must have at least one run"):
        Study.from_dataframe(frame[:0], OBJECTIVES)
    with pytest.raises(InputError, match="two are called 'error'"):
        Study.from_dataframe(frame.rename(columns={"cost": "error"}), OBJECTIVES)
    with pytest.raises(InputError, match="Two columns are 'error', but for spaces; rename one of them"):
        Study.from_dataframe(frame.assign(**{"error ": 0.5}), OBJECTIVES)
    with pytest.raises(InputError, match="row 1 and row 2 are both 'a' with seed 1"):
        Study.from_dataframe(pandas.concat([frame[1:2], frame[:1], frame[:1]]), OBJECTIVES)


def test_a_recorded_study_comes_back_whole_and_its_front_with_every_digit():
    study = load_study("tiny.driven", driven().settings)
    back = Study.from_dataframe(study.to_dataframe(), OBJECTIVES, sweep="tiny.driven")
    assert back.replicates == study.replicates
    assert {r.state for r in back.replicates} == {"complete", "failed"}
    found = uncertain_front(back, OBJECTIVES, "good")
    assert repr(found) == repr(uncertain_front(study, OBJECTIVES, "good")) and len(found.points) == 2


def test_a_file_of_text_keeps_every_digit_too():
    """But for metrics that are not finite, which are lost there."""
    study = small_study()
    study = replace(
        study, replicates=tuple(replace(r, evaluations=frozenset({"b.2", "a.1"})) for r in study.replicates)
    )
    file = io.StringIO(study.to_dataframe().to_csv(index=False))
    back = Study.from_dataframe(pandas.read_csv(file), [Objective("per")], sweep=study.sweep)
    assert [(r.key, r.state, r.error, r.duration_s, r.evaluations) for r in back.replicates] == [
        (r.key, r.state, r.error, r.duration_s, r.evaluations) for r in study.replicates
    ]
    assert [r.metrics.get("per@greedy") for r in back.replicates] == [
        r.metrics.get("per@greedy") for r in study.replicates
    ]
    objectives = (Objective("per"), Objective("macs_per_frame"))
    assert repr(uncertain_front(back, objectives, "random")) == repr(uncertain_front(study, objectives, "random"))


def test_a_metric_that_is_called_as_a_field_keeps_its_name():
    study = Study("s", (Replicate("k", "a", 1, "complete", {"error": 7.0}, device="cpu"),))
    assert Study.from_dataframe(study.to_dataframe(), sweep="s") == study


@pytest.mark.parametrize("seeds", [[2**53, 2**53 + 1, 3, 4], [str(2**53), str(2**53 + 1), "3.0", "4"]])
def test_a_large_seed_keeps_every_digit(seeds):
    found = read({"seed": seeds})
    assert [r.seed for r in found.replicates] == [2**53, 2**53 + 1, 3, 4]


def test_conditions_whose_names_would_meet_stay_apart():
    changes = {"kind": ["lstm"] * 4, "size": ["<10M", "<10M", ">10M", ">10M"], "seed": [1, 2, 1, 2]}
    found = read(changes, condition=["kind", "size"])
    first, second = found.conditions
    assert (found.values(first, "error"), found.values(second, "error")) == ((0.1, 0.2), (0.4, 0.3))
    assert [found.question.configs[name]["size"] for name in (first, second)] == ["<10M", ">10M"]


def test_a_heading_of_several_lines_is_a_metric_in_one():
    found = read({"note\n(s)": [1.0, 2.0, 3.0, 4.0]})
    assert set(found.metrics()) == {"error", "cost", "note (s)"}


@pytest.mark.parametrize(
    ("words", "column"),
    [
        (["finished", "crashed", "killed", "running"], "State"),  # Weights & Biases' export
        (["TrialState.COMPLETE", "TrialState.FAIL", "TrialState.PRUNED", "TrialState.RUNNING"], "state"),  # Optuna
        (["FINISHED", "FAILED", "KILLED", "SCHEDULED"], "state"),  # MLflow
    ],
)
def test_states_of_others_are_ours(words, column):
    found = read({column: words})
    stopped = "pruned" if "TrialState.PRUNED" in words else "stopped"
    assert [one.state for one in found.replicates] == ["complete", "failed", stopped, "running"]
    assert found.values("a", "error") == (0.1,)


def test_a_condition_of_one_number_is_named_as_our_own_are():
    found = read({"condition": ["0.1", "1e-1", "0.01", "1e-2"], "lr": [0.1, 1e-1, 0.01, 1e-2]}, condition="lr")
    assert found.conditions == ("lr=0.1", "lr=0.01")
    texts = {"lr": ["0.1", "\x1f1e-1", " 0.01", "1e-2\t"], "b": ["2", "2.0", "2", "2"]}  # spaces of all kinds
    assert read(texts, condition=["lr", "b"]).conditions == ("lr=0.1,b=2", "lr=0.01,b=2")


def test_a_whole_number_stays_one_where_some_condition_has_no_such_value():
    made = Study.from_dataframe(pandas.DataFrame({"condition": ["a", "b"], "seed": [1, 1], "loss": [1.0, 2.0]}))
    frame = replace(made, configs={"a": {"depth": "3"}, "b": {}}).to_dataframe()
    assert frame["config.depth"].tolist() == [3, pandas.NA] and str(frame["config.depth"].dtype) == "Int64"
    again = Study.from_dataframe(frame)
    assert again.configs == {"a": {"depth": "3"}}
