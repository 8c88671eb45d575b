"""Figures of learning curves: which are drawn, where they lie, and how wide their bands are."""

import math
import re

import pytest
from scipy import stats

from orchestrator.report.figure.curves import MAX_FIGURES, MAX_STEPS, curve_figures, curve_metrics, intervals
from orchestrator.results.curves import Curve
from trainables.lm.metrics import METRICS

CURVE = Curve("a", "loss", 4, (0, 10, 20), (3.0, 2.0, 1.0), (0.4, 0.2, 0.0))


def places(path):
    return [tuple(map(float, pair.split())) for pair in re.split("[ML]", path.rstrip("Z"))[1:]]


def test_intervals_are_students():
    low, high = stats.t.interval(0.95, 3, 3.0, 0.4 / 2)
    assert intervals(CURVE)[0] == pytest.approx((low, high))
    assert intervals(CURVE)[2] == (1.0, 1.0)


def test_lines_and_bands_lie_on_the_axes():
    (figure,) = curve_figures([CURVE], ["a"])
    (line,) = figure.lines
    x, y = figure.x_axis, figure.y_axis
    assert places(line.mean) == [(x.at(step), y.at(mean)) for step, mean in zip(CURVE.steps, CURVE.means, strict=True)]
    upper = [(x.at(step), y.at(found.high)) for step, found in zip(CURVE.steps, intervals(CURVE), strict=True)]
    lower = [(x.at(step), y.at(found.low)) for step, found in zip(CURVE.steps, intervals(CURVE), strict=True)]
    assert places(line.band) == [*upper, *reversed(lower)]


def test_one_replicate_has_no_band_and_no_interval():
    single = Curve("a", "loss", 1, (0, 10), (3.0, 2.0), (math.nan, math.nan))
    (figure,) = curve_figures([single], ["a"])
    assert figure.lines[0].band == ""
    assert [row.cells for row in figure.rows] == [("3",), ("2",)]


def test_only_conditions_that_are_shown_in_their_order():
    curves = [Curve(name, "loss", 1, (0, 10), (3.0, 2.0), (math.nan,) * 2) for name in "abc"]
    (figure,) = curve_figures(curves, ["c", "a"])
    assert [(line.condition, line.number) for line in figure.lines] == [("c", 0), ("a", 1)]
    assert figure.conditions == ("c", "a")


def test_a_curve_of_one_step_is_no_curve():
    assert curve_figures([Curve("a", "per", 1, (10,), (0.2,), (math.nan,))], ["a"]) == ()


def test_step_sizes_and_delta_of_a_recoder_over_training_are_all_drawn():
    """Ulmer 2019, figures 5.1, 5.3, 5.5 b to d and B.5: of h and c of two layers, beside losses and perplexities."""
    of_test = ("test_", "perplexity", "unknown_share", "raised_share", "share_", "delta_", "num_", "macs_", "eval_")
    of_test += ("cache_", "dynamic_", "preparation_")
    names = [metric.name for metric in METRICS if not metric.name.startswith(of_test)]
    names = [name for name in names if name[-1] not in "345678" or ("_h_" not in name and "_c_" not in name)]
    curves = [Curve("a", name, 1, (0, 1), (1.0, 2.0), (math.nan,) * 2) for name in sorted(names)]
    drawn = {figure.metric for figure in curve_figures(curves, ["a"])}
    assert drawn == set(names) >= {"train_delta", "train_loss_nats", "valid_perplexity"}
    assert {f"step_size_{kind}_{layer}" for kind in "hc" for layer in (1, 2)} <= drawn


def test_many_metrics_and_steps_are_thinned():
    steps = tuple(range(1000))
    curves = [
        Curve("a", f"m{i}", 1, steps, tuple(float(s) for s in steps), (math.nan,) * 1000)
        for i in range(MAX_FIGURES + 3)
    ]
    figures = curve_figures(curves, ["a"])
    assert len(figures) == MAX_FIGURES and curve_metrics(curves) == MAX_FIGURES + 3
    drawn = places(figures[0].lines[0].mean)
    assert len(drawn) == MAX_STEPS
    assert figures[0].rows[0].step == 0 and figures[0].rows[-1].step == 999


def test_the_table_holds_means_and_intervals_and_gaps():
    other = Curve("b", "loss", 4, (0, 20), (3.5, 1.5), (0.1, 0.1))
    (figure,) = curve_figures([CURVE, other], ["a", "b"])
    assert [row.step for row in figure.rows] == [0, 10, 20]
    half = stats.t.ppf(0.975, 3) * 0.1 / 2
    assert figure.rows[0].cells[1] == f"3.50 ({3.5 - half:.2f} to {3.5 + half:.2f})"
    assert figure.rows[1].cells[1] == ""
