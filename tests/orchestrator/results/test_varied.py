"""What is drawn against what: which numbers vary, in which groups, of conditions and of evaluations."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from orchestrator.results.points import points_of
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.results.varied import of_objectives, varied, varied_paths
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate

NOISE = (0.0, 1.0, -1.0)


def question(sweep: str) -> Question:
    return Question.of(find_sweep(sweep))


def study_of(asked: Question, column: str, mean=lambda condition: 100.0) -> Study:
    """Three seeds of every listed condition around its mean."""
    runs = [
        replicate(condition, seed, metrics={column: mean(condition) + noise})
        for condition in asked.configs
        for seed, noise in enumerate(NOISE, 1)
    ]
    return Study(asked.sweep, tuple(runs))


@pytest.mark.parametrize(
    ("sweep", "paths"),
    [
        ("lm.step_size", ("recoder.step.size",)),
        ("lm.mc_dropout_rate", ("recoder.signal.rate",)),
        ("act.tau_parity", ("halting.tau",)),
        ("act.fixed_updates_sort", ("halting.num_updates", "halting.tau.mean_updates")),
        ("asr.lambda_grid_timit", ("controller.weight",)),
        ("asr.controller_bias", ("evaluations.bias_raise",)),
        ("asr.table2_timit", ()),
        ("act.tau_parity_laptop.smoke", ()),  # two time penalties
    ],
)
def test_numbers_with_three_values_or_more_are_found(sweep, paths):
    found = varied_paths(question(sweep))
    assert set(paths) <= set(found) and bool(found) == bool(paths)


def test_a_group_differs_in_the_number_alone_and_the_reference_is_a_line():
    asked = question("lm.step_size")
    found = varied(study_of(asked, "perplexity@test"), asked, "perplexity", "recoder.step.size")
    assert found is not None
    assert [series.name for series in found.series] == ["surprisal", "eq44", "mc_dropout", "ensemble"]
    assert [point.value for point in found.series[0].points] == [1e-4, 1e-3, 0.01, 0.1, 1, 5, 10, 25]
    (reference,) = found.references
    assert reference.name == "baseline" and math.isnan(reference.points[0].value)


def test_a_point_is_the_mean_over_seeds_with_students_interval():
    asked = question("act.tau_parity_laptop")
    found = varied(study_of(asked, "sequence_error@test"), asked, "sequence_error", "halting.tau")
    assert found is not None
    (series,) = found.series
    assert (series.name, [point.value for point in series.points]) == ("halting.tau", [1e-4, 1e-3, 1e-2, 1e-1])
    low, high = stats.t.interval(0.95, 2, 100.0, 1 / math.sqrt(3))
    assert series.points[0].summary.n == 3 and series.points[0].interval == pytest.approx((low, high))


def test_what_varies_between_evaluations_is_a_series_of_its_condition():
    asked = question("asr.controller_bias")
    values = {f"per@bias_{i}": 0.26 - i / 1000 for i in range(3)}
    runs = tuple(replicate("surprisal", seed, metrics=values | {"per@other": 9.0}) for seed in (1, 2))
    found = varied(Study("asr.controller_bias", runs), asked, "per", "evaluations.bias_raise")
    assert found is not None
    (series,) = found.series
    assert series.name == "surprisal" and [point.summary.mean for point in series.points] == list(values.values())
    values_of_bias = [point.value for point in series.points]
    assert values_of_bias == sorted(values_of_bias) and values_of_bias[0] == 0


def test_an_evaluation_that_routes_otherwise_is_no_point_of_the_drawn_routes():
    """`deterministic` has the value of its own name, and no bias; the raised ones test as `stochastic` does."""
    asked = question("asr.laptop_table2")
    values = {"per@stochastic": 0.5, "per@deterministic": 0.9} | {f"per@bias_{i}": 0.5 - i / 100 for i in range(1, 5)}
    runs = tuple(replicate("surprisal", seed, metrics=values) for seed in (1, 2))
    found = varied(Study("asr.laptop_table2", runs), asked, "per", "evaluations.bias_raise")
    assert found is not None
    (series,) = found.series
    assert [point.summary.mean for point in series.points] == [0.5, 0.49, 0.48, 0.47, 0.46]


def test_the_reference_has_a_line_under_each_evaluation_that_is_drawn():
    asked = question("act.halting_parity_laptop")
    means = {"test": 0.1, "harder": 0.5}
    runs = [
        replicate(condition, seed, metrics={f"sequence_error@{name}": mean for name, mean in means.items()})
        for condition in asked.configs
        for seed in (1, 2)
    ]
    found = varied(Study(asked.sweep, tuple(runs)), asked, "sequence_error", "halting.num_updates")
    assert found is not None
    lines = {series.name: series.points[0].summary.mean for series in found.references}
    assert lines == {"act,tau=0.001@test": 0.1, "act,tau=0.001@harder": 0.5}


def test_any_metric_can_be_asked_for_also_under_one_evaluation():
    asked = question("act.tau_parity_laptop")
    study = study_of(asked, "train_loss_nats")
    assert varied(study, asked, "train_loss_nats", "halting.tau") is not None
    assert varied(study, asked, "train_loss_nats@test", "halting.tau") is None
    tested = study_of(asked, "sequence_error@test")
    assert varied(tested, asked, "sequence_error@test", "halting.tau") is not None
    assert varied(tested, asked, "sequence_error@other", "halting.tau") is None


def test_what_is_not_complete_is_not_drawn():
    asked = question("act.tau_parity_laptop")
    whole = study_of(asked, "sequence_error@test")
    two = Study(whole.sweep, tuple(one for one in whole.replicates if one.condition in ("tau=0.1", "tau=0.01")))
    assert varied(two, asked, "sequence_error", "halting.tau") is None


def test_the_report_has_each_objective_against_each_number():
    asked = question("act.fixed_updates_parity_laptop")
    found = of_objectives(study_of(asked, "sequence_error@test"), asked)
    assert [(one.metric, one.path) for one in found] == [
        ("sequence_error", "halting.num_updates"),
        ("sequence_error", "halting.tau.mean_updates"),
    ]


def test_a_name_means_what_evaluations_report_as_in_fronts_and_comparisons():
    """So the figure of an objective shows the numbers of its table."""
    asked = question("lm.step_size")
    runs = [
        replicate(condition, seed, metrics={"loss": 5.0 + noise, "loss@test": 6.0 + noise})
        for condition in asked.configs
        for seed, noise in enumerate(NOISE, 1)
    ]
    study = Study(asked.sweep, tuple(runs))
    plain = varied(study, asked, "loss", "recoder.step.size")
    tested = varied(study, asked, "loss@test", "recoder.step.size")
    assert plain is not None and tested is not None
    groups = ["surprisal", "eq44", "mc_dropout", "ensemble"]
    assert [series.name for series in plain.series] == [series.name for series in tested.series] == groups
    means = {point.summaries[0].mean for point in points_of(study, (Objective("loss"),))}
    assert means == {point.summary.mean for series in plain.series for point in series.points} == {6.0}


def test_an_evaluation_that_no_config_lists_is_drawn():
    """The `test` of a trainable with `evaluate` and without a field `evaluations`, and what a table names."""
    asked = question("act.tau_parity_laptop")
    plain = replace(asked, configs={name: dict(config) for name, config in asked.configs.items()})
    for config in plain.configs.values():
        config.pop("evaluations", None)
    found = varied(study_of(plain, "sequence_error@test"), plain, "sequence_error", "halting.tau")
    assert found is not None and [point.value for point in found.series[0].points] == [1e-4, 1e-3, 1e-2, 1e-1]
    (drawn,) = of_objectives(study_of(plain, "sequence_error@test"), plain)
    assert repr(drawn) == repr(found)  # some of it is NaN, which equals nothing


def test_a_number_of_evaluations_is_drawn_though_the_replicate_has_the_metric_too():
    asked = question("asr.controller_bias")
    names = [
        point.name
        for point in find_sweep("asr.controller_bias")
        .config(find_sweep("asr.controller_bias").conditions[0], 1)
        .evaluations
    ]
    metrics = {"per": 20.0} | {f"per@{name}": 30.0 for name in names}
    runs = [replicate(condition, seed, metrics=metrics) for condition in asked.configs for seed in (1, 2, 3)]
    found = varied(Study(asked.sweep, tuple(runs)), asked, "per", "evaluations.bias_raise")
    assert found is not None and found.series[0].points[0].summary.mean == 30.0
