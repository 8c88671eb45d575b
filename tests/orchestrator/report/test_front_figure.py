"""What the figure of a front shows, what it leaves out, and what it says of that."""

import itertools
import json
import re

import pytest

from orchestrator.pareto.membership import uncertain_front
from orchestrator.report.front_drawing import PublishedMark, drawing
from orchestrator.report.front_figure import draw_front
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, ERROR_COST_LATENCY, study_of

PNG = b"\x89PNG\r\n\x1a\n"


def front_of(conditions, objectives=ERROR_COST, reference=None):
    return uncertain_front(study_of(conditions), objectives, reference)


def traces(html):
    """The figure's traces as plotly reads them, without those that stand in the legend alone."""
    text = html.read_text()
    start = text.index("[", text.index("Plotly.newPlot("))
    found = json.JSONDecoder().raw_decode(text[start:])[0]
    return [trace for trace in found if trace["x"] != [None]]


@pytest.fixture
def crowd():
    """One point on the front and 1,000 behind it."""
    places = [(0.0, 0.0)] + [(1.0 + i, 1.0 + i) for i in range(1000)]
    return front_of({f"c{i}": {1: place} for i, place in enumerate(places)})


def test_many_points_are_thinned_out_and_the_title_says_so(crowd):
    drawn = drawing("s", crowd, ERROR_COST, ())
    assert drawn.title[1] == "1 of 1 points on the front and 300 of 1,000 others drawn"
    names = [mark.name for mark in drawn.panels[0].marks]
    assert len(set(names)) == 301 and {"c0", "c1", "c1000"} <= set(names)
    assert [mark.name for mark in drawn.panels[0].marks if mark.is_labelled] == ["c0"]


def test_few_points_are_all_drawn_and_named():
    front = front_of({f"c{i}": {1: (1.0 * i, 1.0 * i)} for i in range(40)})
    drawn = drawing("s", front, ERROR_COST, ())
    assert drawn.title == ("s: one value each, n = 1",)
    assert [mark.name for mark in drawn.panels[0].marks if mark.is_labelled] == [f"c{i}" for i in range(40)]


def test_points_near_the_front_are_drawn_before_other_dominated_ones():
    """z's mean is behind a's, and in half of the draws it is not."""
    crowd = {f"c{i:03}": dict.fromkeys((1, 2), (100.0 + i, 100.0)) for i in range(400)}
    front = front_of(crowd | {"a": {1: (1.0, 1.0), 2: (1.0, 1.0)}, "z": {1: (0.1, 1.0), 2: (2.1, 1.0)}})
    marks = {mark.name: mark for mark in drawing("s", front, ERROR_COST, ()).panels[0].marks}
    assert len(marks) == 302
    assert (marks["z"].is_front, marks["z"].share) == (False, 0.25)


def test_marks_carry_intervals_shares_and_what_the_pointer_shows():
    front = front_of({"a": {1: (1.0, 3.0), 2: (2.0, 3.0)}, "b": {1: (5.0, 5.0), 2: (6.0, 5.2)}}, reference="b")
    drawn = drawing("s", front, ERROR_COST, ())
    assert drawn.title == ("s: mean and 95 % interval, n = 2", "P(front): share of all 3 paired resamples of the seeds")
    a, b = drawn.panels[0].marks
    assert (a.x, a.y, a.is_front, a.share) == (3.0, 1.5, True, 1.0)
    assert a.y_interval == front.memberships[0].intervals[0] and a.x_interval == (3.0, 3.0)
    assert a.text.splitlines() == [
        "a",
        "per 1.5 [-4.8531 to 7.8531]",
        "macs 3",
        "n = 2, P(front) 1.00: front",
        "P(dominates reference) 1.00",
    ]
    assert b.text.splitlines()[-1] == "n = 2, P(front) 0.00: dominated"


def test_borders_run_from_the_worst_error_to_the_worst_cost():
    """Without noise the border of the means and both edges of the band are one staircase."""
    front = front_of({"a": {1: (1.0, 3.0)}, "b": {1: (2.0, 1.0)}, "c": {1: (3.0, 4.0)}})
    (panel,) = drawing("s", front, ERROR_COST, ()).panels
    right, top = panel.x_limits[1], panel.y_limits[1]
    stairs = ((1.0, top), (1.0, top), (1.0, 2.0), (3.0, 2.0), (3.0, 1.0), (right, 1.0))
    assert panel.staircase == stairs
    assert panel.band == stairs + stairs[::-1]
    assert panel.by_seed == (("attained under 1 of 1 seeds", stairs),)
    assert panel.x_limits == pytest.approx((1 - 0.08 * 3, 4 + 0.08 * 3))


def test_borders_of_a_maximized_objective_run_the_other_way():
    objectives = (Objective("per", "maximize"), Objective("macs"))
    front = front_of({"a": {1: (2.0, 3.0)}, "b": {1: (1.0, 1.0)}}, objectives)
    (panel,) = drawing("s", front, objectives, ()).panels
    bottom, right = panel.y_limits[0], panel.x_limits[1]
    assert panel.staircase == ((1.0, bottom), (1.0, bottom), (1.0, 1.0), (3.0, 1.0), (3.0, 2.0), (right, 2.0))


def test_published_points_of_other_data_do_not_stretch_the_axes():
    front = front_of({"a": {1: (1.0, 3.0)}, "b": {1: (2.0, 1.0)}})
    ours = drawing("s", front, ERROR_COST, ()).panels[0]
    alike = PublishedMark((0.5, 9.0), "row 1", "published (Somebody 2020)", is_comparable=True)
    far = PublishedMark((50.0, 2.0), "row 2", "published, other data", is_comparable=False)
    near = PublishedMark((1.5, 2.0), "row 3", "published, other data", is_comparable=False)
    (panel,) = drawing("s", front, ERROR_COST, (far, near)).panels
    assert (panel.x_limits, panel.y_limits) == (ours.x_limits, ours.y_limits)
    assert panel.published == (
        ("published, other data (1 of 2 outside the figure)", ((2.0, 50.0, "row 2"), (2.0, 1.5, "row 3"))),
    )
    (panel,) = drawing("s", front, ERROR_COST, (alike, near)).panels
    assert panel.x_limits[1] > 9 and panel.y_limits[0] < 0.5
    assert [legend for legend, _ in panel.published] == ["published (Somebody 2020)", "published, other data"]


def test_figures_are_whole_and_all_text_is_escaped(tmp_path):
    evil = "<script>alert(1)</script>"
    objectives = (Objective("per"), Objective("macs"))
    front = front_of({evil: {1: (1.0, 3.0), 2: (1.1, 3.0)}, "b$": {1: (2.0, 1.0), 2: (2.2, 1.0)}}, reference=evil)
    published = (PublishedMark((1.5, 2.0), evil, f"published ({evil})", is_comparable=True),)
    html, png = tmp_path / "new" / "f.html", tmp_path / "f.png"
    draw_front(evil, front, objectives, published, html, png)
    text = html.read_text()
    assert evil not in text and "<script>alert" not in text
    assert 'src="https' not in text and "src='http" not in text
    assert len(text) > 1_000_000  # plotly's own script is inside
    assert png.read_bytes()[:8] == PNG
    shown = json.dumps(traces(html))
    assert "&lt;script&gt;alert(1)" in shown and "<script>" not in shown


def test_the_page_shows_shares_as_colours_intervals_as_bars_and_diamonds(tmp_path):
    front = front_of({"a": {1: (1.0, 3.0), 2: (2.0, 3.0)}, "b": {1: (1.4, 5.0), 2: (1.8, 7.0)}})
    published = (PublishedMark((1.5, 2.0), "row", "published (Somebody 2020)", is_comparable=True),)
    html = tmp_path / "f.html"
    draw_front("s", front, ERROR_COST, published, html, tmp_path / "f.png")
    found = {trace["name"]: trace for trace in traces(html)}
    shares = [mark.on_front for mark in front.memberships]
    points = found["front of the means"]
    assert points["marker"]["color"] == [shares[0]] and "P(front) 1.00" in points["hovertext"][0]
    assert points["error_y"]["array"] == pytest.approx([front.memberships[0].intervals[0].high - 1.5])
    assert points["error_x"]["array"] == [0.0]
    assert found["others"]["marker"]["color"] == [shares[1]]
    assert found["attained in 5 % to 95 % of the draws"]["fill"] == "toself"
    assert found["attained under 2 of 2 seeds"]["visible"] == "legendonly"
    diamond = found["published (Somebody 2020)"]
    assert (diamond["marker"]["symbol"], diamond["x"], diamond["y"]) == ("diamond-open", [2.0], [1.5])


def test_three_objectives_make_three_panels_without_borders(tmp_path):
    front = front_of({"a": {1: (1.0, 3.0, 2.0)}, "b": {1: (2.0, 1.0, 3.0)}}, ERROR_COST_LATENCY)
    drawn = drawing("s", front, ERROR_COST_LATENCY, ())
    assert [(panel.y_metric, panel.x_metric) for panel in drawn.panels] == [
        ("per", "macs"),
        ("per", "latency"),
        ("macs", "latency"),
    ]
    assert drawn.title[-1] == "the front is that of all three objectives"
    assert [(mark.x, mark.y) for mark in drawn.panels[2].marks] == [(2.0, 3.0), (3.0, 1.0)]
    assert [(panel.staircase, panel.band, panel.by_seed) for panel in drawn.panels] == [((), (), ())] * 3
    html, png = tmp_path / "f.html", tmp_path / "f.png"
    draw_front("s", front, ERROR_COST_LATENCY, (), html, png)
    assert len(traces(html)) == 3 and png.read_bytes()[:8] == PNG
    assert re.findall(r'"title":\{"text":"(latency|macs)"\}', html.read_text()) == [
        "macs",
        "latency",
        "latency",
        "macs",
    ]


def test_a_thinned_band_is_said(monkeypatch):
    monkeypatch.setattr("orchestrator.pareto.attainment.MAX_STEPS", 4)
    front = front_of({f"c{i}": {1: (9.0 - i, 1.0 * i), 2: (9.5 - i, 1.1 * i)} for i in range(6)})
    assert drawing("s", front, ERROR_COST, ()).title[-1].startswith("band at ")


def test_in_a_browser_the_pointer_shows_shares_and_a_name_stays_text(page, tmp_path):
    evil = "<script>window.evil = 1</script>"
    front = front_of({evil: {1: (1.0, 3.0), 2: (2.0, 3.0)}, "<b>b</b>": {1: (5.0, 5.0), 2: (6.0, 7.0)}}, reference=evil)
    html = tmp_path / "f.html"
    draw_front(evil, front, ERROR_COST, (), html, tmp_path / "f.png")
    page.page.goto(html.as_uri())
    page.page.wait_for_selector("g.points path.point")
    place = page.page.locator("g.points path.point").last.bounding_box()
    page.page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    shown = page.page.wait_for_selector("g.hovertext").text_content()
    assert f"{evil}" in shown and "P(front) 1.00" in shown
    assert evil in page.page.locator("g.g-gtitle").text_content()
    assert page.page.evaluate("window.evil") is None
    assert (page.errors, page.requests) == ([], [])


def test_names_in_the_png_cover_neither_points_nor_one_another(tmp_path, monkeypatch):
    """Three points that lie nearly in one place: not all of their names fit beside them without touching."""
    from matplotlib.axes import Axes

    boxes, annotate = [], Axes.annotate

    def noted(axes, text, place, **options):
        boxes.append((place, text))
        return annotate(axes, text, place, **options)

    monkeypatch.setattr(Axes, "annotate", noted)
    names = ("a_long_name", "another_long_name", "a_third_long_name", "far_away")
    places = ((1.0, 1.0), (1.01, 1.01), (1.02, 1.02), (3.0, 3.0))
    front = front_of({name: {1: place, 2: place} for name, place in zip(names, places, strict=True)})
    draw_front("s", front, ERROR_COST, (), tmp_path / "f.html", tmp_path / "f.png")
    assert {text for _, text in boxes} >= {"a_long_name", "far_away"}
    for ((x, y), text), ((u, v), other) in itertools.combinations(boxes, 2):
        assert abs(y - v) >= 13 - 0.2 or x + 6.3 * len(text) <= u + 0.2 or u + 6.3 * len(other) <= x + 0.2
