"""The figure of a front: points where their means are, the front as a staircase, labels that cover nothing."""

import itertools
import re
from dataclasses import replace

import pytest

from orchestrator.report.figure.front import (
    AREA,
    LINE_HEIGHT,
    Published,
    chance_class,
    front_figure,
    place_labels,
    text_width,
)
from orchestrator.report.published_marks import compared_marks
from search_spaces.sweep import Objective
from tests.orchestrator.report.made_answers import CONDITIONS, answers_of, study_of

STUDY = study_of(CONDITIONS)
NAMES = list(range(len(CONDITIONS)))


_, _, LEFT, RIGHT, TOP, BOTTOM = AREA


def panel_of(answers, published=()):
    (panel,) = front_figure(answers, NAMES, published).panels
    return panel


def corners(path):
    return [tuple(map(float, pair.split())) for pair in re.split("[ML]", path.rstrip("Z"))[1:]]


def test_marks_lie_where_their_means_are():
    answers = answers_of(STUDY)
    panel = panel_of(answers)
    for mark, point in zip(panel.marks, answers.front.points, strict=True):
        assert mark.name == point.name
        assert (mark.x, mark.y) == (panel.x_axis.at(point.summaries[1].mean), panel.y_axis.at(point.summaries[0].mean))
        assert LEFT <= mark.x <= RIGHT and TOP <= mark.y <= BOTTOM
    assert [mark.name for mark in panel.marks if mark.is_reference] == ["always_big"]


def test_whiskers_span_the_intervals():
    answers = answers_of(STUDY)
    panel = panel_of(answers)
    mark, sure = panel.marks[1], answers.front.memberships[1]
    left, right = (panel.x_axis.at(bound) for bound in sure.intervals[1])
    low, high = (panel.y_axis.at(bound) for bound in sure.intervals[0])
    assert mark.whiskers == f"M{left} {mark.y}H{right}M{mark.x} {low}V{high}"


def test_without_seeds_there_are_no_whiskers():
    assert {mark.whiskers for mark in panel_of(answers_of(study_of(CONDITIONS, seeds=1))).marks} == {""}


def front_of_corners(directions):
    objectives = (Objective("per", directions[0]), Objective("macs_per_frame", directions[1]))
    answers = answers_of(STUDY)
    points = tuple(replace(p, is_front=p.name in ("surprisal", "learned_l1")) for p in answers.front.points)
    question = replace(answers.question, objectives=objectives)
    panel = panel_of(replace(answers, question=question, front=replace(answers.front, points=points)))
    places = {mark.name: (mark.x, mark.y) for mark in panel.marks}
    return corners(panel.front), places["learned_l1"], places["surprisal"]


def test_the_front_is_a_staircase_of_what_is_attained():
    """learned_l1 is left of surprisal and above it (a higher error)."""
    found, (x1, y1), (x2, y2) = front_of_corners(("minimize", "minimize"))
    assert found == [(x1, TOP), (x1, TOP), (x1, y1), (x2, y1), (x2, y2), (RIGHT, y2)]
    found, (x1, y1), (x2, y2) = front_of_corners(("maximize", "maximize"))
    assert found == [(x2, BOTTOM), (x2, BOTTOM), (x2, y2), (x1, y2), (x1, y1), (LEFT, y1)]


def test_the_band_goes_around_the_outermost_surfaces():
    answers = answers_of(STUDY)
    found = corners(panel_of(answers).band)
    axis = panel_of(answers).y_axis
    lowest, highest = (answers.front.attainment[i].steps for i in (0, -1))
    heights = {y for _, y in found}
    assert {axis.at(step[0]) for step in (*lowest, *highest)} <= heights
    assert panel_of(replace(answers, front=replace(answers.front, attainment=()))).band == ""
    legend = dict(front_figure(answers, NAMES).legend)
    assert legend["band"] == "border of what 5 to 95 % of the draws attain"


def test_three_objectives_make_three_panels_without_a_line():
    found = front_figure(answers_of(STUDY, 3), NAMES).panels
    assert [(panel.y_title.split()[0], panel.x_title.split()[0]) for panel in found] == [
        ("per", "macs_per_frame"),
        ("per", "accuracy"),
        ("macs_per_frame", "accuracy"),
    ]
    assert {panel.front for panel in found} == {panel.band for panel in found} == {""}
    assert "higher is better" in found[1].x_title and "lower is better" in found[1].y_title


def test_published_points_are_in_our_unit_and_in_one_row():
    answers = answers_of(STUDY)
    (point,) = compared_marks(answers)
    assert point.values == pytest.approx({"macs_per_frame": 168_000.0, "per": 0.181})
    assert (point.row, point.legend) == ("claim-0", "published (Lugosch et al. 2020, arXiv:2006.01659)")
    assert point.text == (
        "published: Lugosch et al. 2020, arXiv:2006.01659, table 2, TIMIT, surprisal\n"
        "per of surprisal: 18.10 ± 0.15 (n = 5)\n"
        "macs_per_frame of surprisal: 168,000"
    )
    accuracy = replace(answers.question, objectives=answers_of(STUDY, 3).question.objectives[::2])
    assert compared_marks(replace(answers, question=accuracy)) == ()


def test_published_points_of_other_data_do_not_stretch_the_axes():
    answers = answers_of(STUDY)
    ours = panel_of(answers)
    places = (0.16, 2e6), (50.0, 150_000.0), (0.18, 160_000.0)
    rows = [{"per": per, "macs_per_frame": macs} for per, macs in places]
    alike = Published(rows[0], "row 1", "published (Somebody 2020)")
    far, near = (Published(row, f"row {i}", "published, other data", False) for i, row in enumerate(rows[1:], 2))
    figure = front_figure(answers, NAMES, (far, near))
    (panel,) = figure.panels
    assert (panel.x_axis, panel.y_axis) == (ours.x_axis, ours.y_axis)
    places = [(d.kind, d.text, d.x, d.y) for d in panel.diamonds]
    assert places == [("other", "row 3", panel.x_axis.at(160_000.0), panel.y_axis.at(0.18))]
    assert ("other", "published, other data (1 of 2 outside the figure)") in figure.legend
    figure = front_figure(answers, NAMES, (alike, near))
    (panel,) = figure.panels
    assert panel.x_axis.limits[1] > 2e6 and panel.y_axis.limits[0] < 0.16
    assert [d.kind for d in panel.diamonds] == ["published", "other"]
    legends = [text for kind, text in figure.legend if kind in ("published", "other")]
    assert legends == ["published (Somebody 2020)", "published, other data"]


def test_chances_are_in_six_classes():
    shares = (0.0, 0.05, 0.06, 0.25, 0.3, 0.5, 0.6, 0.75, 0.8, 0.949, 0.95, 1.0)
    assert [chance_class(share) for share in shares] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_few_marks_are_all_labelled_for_a_picture_has_no_pointer():
    panel = panel_of(answers_of(STUDY))
    assert {label.row for label in panel.labels} == {mark.row for mark in panel.marks}
    assert not all(mark.is_front for mark in panel.marks)


def test_of_many_marks_the_front_and_the_reference_are_labelled():
    places = {f"c{i}": (0.2 + 0.01 * abs(i - 10), 1e5 + 1e4 * i, 0.5) for i in range(21)}
    answers = answers_of(study_of(places, noise=1e-6), reference="c20", claims=False)
    (panel,) = front_figure(answers, range(21)).panels
    labelled, front = (
        {one.row for one in marks if one} for marks in (panel.labels, [m for m in panel.marks if m.is_front])
    )
    (reference,) = (mark.row for mark in panel.marks if mark.is_reference)
    assert reference not in front and labelled == front | {reference}


def test_in_a_crowd_only_the_front_has_whiskers_without_the_pointer():
    places = {f"c{i}": (0.2 + 0.001 * i, 1e5 + i, 0.5) for i in range(61)}
    answers = answers_of(study_of(places), reference="c0", claims=False)
    (panel,) = front_figure(answers, range(61)).panels
    assert {mark.is_front for mark in panel.marks} == {True, False}
    assert all(mark.is_faint != mark.is_front for mark in panel.marks)
    assert not any(mark.is_faint for mark in panel_of(answers_of(STUDY)).marks)


def boxes(labels):
    return [(label.x, label.y - LINE_HEIGHT, label.x + text_width(label.text), label.y) for label in labels]


def test_labels_cover_neither_each_other_nor_points():
    named = [(i, f"condition-{i}", 100 + 17.0 * i, 100 + 11.0 * (i % 5)) for i in range(25)]
    labels = place_labels(named, [(x, y) for _, _, x, y in named], (0, 0, 640, 420))
    assert 5 < len(labels) < 25
    for a, b in itertools.combinations(boxes(labels), 2):
        assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
    for left, top, right, bottom in boxes(labels):
        assert not any(left < x < right and top < y < bottom for _, _, x, y in named)


def test_a_label_stays_in_the_frame_and_long_names_are_cut():
    (label,) = place_labels([(0, "x" * 60, 635.0, 5.0)], [], (0, 0, 640, 420))
    assert label.text == "x" * 27 + "…"
    assert label.x + text_width(label.text) <= 640 and label.y - LINE_HEIGHT + 3 >= 0
