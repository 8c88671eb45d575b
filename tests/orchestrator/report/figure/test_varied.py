"""The figure of a metric against a varied number: its axes, scales, series and file."""

import io
import math
import re

import pytest
from PIL import Image

from orchestrator.report.figure.varied import AREA, MAX_LINES, draw, varied_figure
from orchestrator.results.varied import Series, SeriesPoint, Varied
from orchestrator.statistics.summary import NONE, Interval, Summary

DECADES = (1e-4, 1e-2, 1.0, 25.0)


def point(value: float, mean: float, half: float = 1.0) -> SeriesPoint:
    return SeriesPoint(value, Summary(mean, half, 4), Interval(mean - half, mean + half))


def made(values=DECADES, num_series: int = 2, scale: float = 1.0) -> Varied:
    series = [
        Series(f"group {i}", tuple(point(value, scale * (120 + 5 * i + 3 * j)) for j, value in enumerate(values)))
        for i in range(num_series)
    ]
    return Varied(
        "recoder.step.size", "perplexity", tuple(series), (Series("baseline", (point(math.nan, scale * 126.0),)),)
    )


def test_an_axis_is_logarithmic_where_its_values_span_decades():
    figure = varied_figure(made())
    assert figure.x_axis.is_log and not figure.y_axis.is_log
    assert (figure.x_title, figure.y_title) == ("recoder.step.size, logarithmic", "perplexity")
    assert [text for _, text in figure.x_axis.ticks()] == ["0.0001", "0.001", "0.01", "0.1", "1", "10"]
    even = varied_figure(made((0.1, 0.2, 0.3)))
    assert not even.x_axis.is_log and even.x_title == "recoder.step.size"
    zero = varied_figure(made((0.0, 1.0, 4.0)))
    assert not zero.x_axis.is_log and zero.x_axis.holds(0.0)


def test_large_numbers_have_their_power_of_ten_in_the_title():
    figure = varied_figure(made(scale=1e6))
    assert figure.y_title == "perplexity / 10⁶"


def test_a_line_goes_through_the_means_and_whiskers_reach_over_the_intervals():
    found = made()
    figure = varied_figure(found)
    first, x, y = figure.lines[0], figure.x_axis, figure.y_axis
    expected = tuple((x.at(one.value), y.at(one.summary.mean)) for one in found.series[0].points)
    assert first.places == expected and first.name == "group 0"
    upright = [tuple(map(float, one)) for one in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", first.whiskers)]
    intervals = [one.interval for one in found.series[0].points]
    places = [place for place, _ in expected]
    assert upright == [(at, y.at(i.low), y.at(i.high)) for at, i in zip(places, intervals, strict=True)]


def test_a_whisker_that_reaches_out_of_the_figure_has_no_cap():
    far = Series("g", (point(1.0, 10.0, 500.0), point(2.0, 11.0, 0.5), point(3.0, 12.0, 0.5)))
    whiskers = varied_figure(Varied("p", "m", (far,))).lines[0].whiskers
    assert (whiskers.count("V"), whiskers.count("H")) == (3, 4)


def test_the_reference_is_a_level_across_the_figure():
    figure = varied_figure(made())
    level = figure.lines[-1]
    height = figure.y_axis.at(126.0)
    assert (level.name, level.places) == ("baseline", ())
    assert level.mean == f"M{AREA.left:g} {height:g}L{AREA.right:g} {height:g}"
    assert figure.rows[-1].group == "baseline" and figure.rows[-1].value == ""


def test_one_seed_has_no_whisker():
    single = Varied(
        "p", "m", (Series("g", tuple(SeriesPoint(v, Summary(v, math.nan, 1), NONE) for v in (1.0, 2.0, 3.0))),)
    )
    figure = varied_figure(single)
    assert figure.lines[0].whiskers == "" and figure.rows[0].interval == ""


def test_of_many_groups_some_are_left_out():
    figure = varied_figure(made(num_series=MAX_LINES + 3))
    assert len(figure.lines) == MAX_LINES + 1 and figure.num_left_out == 3


@pytest.mark.parametrize("sweep", ["lm.step_size", "<b>&"])
def test_the_png_is_written(tmp_path, sweep):
    file = tmp_path / "new" / "x.png"
    draw(varied_figure(made()), sweep, file)
    with Image.open(io.BytesIO(file.read_bytes())) as image:
        assert image.format == "PNG" and image.width == 2 * AREA.width
