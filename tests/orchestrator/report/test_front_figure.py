"""What is left out of tables and figures of many points, and what is said of it."""

import math
import re

import numpy as np
import pytest

from orchestrator.pareto.front import Point, front, nearest, spread_out
from orchestrator.report import front_figure
from orchestrator.statistics.summary import Summary
from orchestrator.study import Study
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate

ERROR_COST = (Objective("per"), Objective("macs"))


def points_of(places):
    replicates = [replicate(f"c{i}", 1, metrics={"per": y, "macs": x}) for i, (x, y) in enumerate(places)]
    return front(Study("s", tuple(replicates)), ERROR_COST)


def test_the_nearest_are_those_of_brute_force():
    places = np.random.default_rng(1).random((200, 2)) * [1e6, 1.0]
    points = points_of(places.tolist())
    means = {
        p.name: (p.summaries[0].mean / np.ptp(places[:, 1]), p.summaries[1].mean / np.ptp(places[:, 0])) for p in points
    }
    on_front = [means[p.name] for p in points if p.is_front]
    distances = {p.name: min(math.dist(means[p.name], f) for f in on_front) for p in points if not p.is_front}
    expected = set(sorted(distances, key=distances.__getitem__)[:30])
    found = nearest(points, 30)
    assert {point.name for point in found} == expected
    assert list(found) == [point for point in points if point.name in expected]
    assert len(nearest(points, 1000)) == len(distances)


def test_nearest_of_points_without_a_range():
    points = points_of([(1.0, 1.0), (1.0, 1.0)])
    assert all(point.is_front for point in points)
    assert nearest(points, 5) == ()


def test_spread_out_keeps_both_ends_and_no_point_twice():
    points = [Point(str(i), str(i), "", (Summary(float(i), math.nan, 1),)) for i in range(101)]
    assert [point.name for point in spread_out(points, 5)] == ["0", "25", "50", "75", "100"]
    assert spread_out(points, 101) == tuple(points)
    assert len({point.name for point in spread_out(points, 100)}) == 100


@pytest.fixture
def crowd():
    """One point on the front and 1,000 behind it."""
    return points_of([(0.0, 0.0)] + [(1.0 + i, 1.0 + i) for i in range(1000)])


def test_figures_thin_out_dominated_points_and_say_so(crowd, tmp_path):
    html, png = front_figure.draw_front("s", crowd, ERROR_COST, tmp_path)
    text = html.read_text()
    assert "300 of 1,000 dominated points drawn" in text
    drawn = set(re.findall(r'"(c\d+)"', text))
    assert len(drawn) == 301 and {"c0", "c1", "c1000"} <= drawn
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_few_points_are_all_drawn_and_named(tmp_path):
    points = points_of([(0.0, 0.0)] + [(1.0 + i, 1.0 + i) for i in range(39)])
    html, _ = front_figure.draw_front("s", points, ERROR_COST, tmp_path)
    text = html.read_text()
    assert "points drawn" not in text
    assert len(re.findall(r'"c\d+"', text)) == 80  # each as a label and where the pointer rests
