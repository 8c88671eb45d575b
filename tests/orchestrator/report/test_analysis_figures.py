"""Figures of analyses: each says what it is about, and the report of its sweep shows it."""

import base64
import io
import math

import pytest

from orchestrator.report.analysis_figures import AnalysisFigure, analysis_figures
from orchestrator.report.figure.analysis import _bars, _panels, draw
from orchestrator.report.page import render
from tests.orchestrator.report.made_answers import EVIL, answers_of, provenance_of
from tests.orchestrator.report.test_page import STUDY
from trainables.analysis import Lines

ROWS = [
    {"text": 1, "word": "a", "top": "A", "is_end": False, "nats": 1.0, "nats_std": 0.1, "n": 2.0, "n_std": None},
    {"text": 1, "word": "b", "top": "", "is_end": True, "nats": 3.0, "nats_std": 0.2, "n": 4.0, "n_std": None},
    {"text": 2, "word": "c", "top": "C", "is_end": False, "nats": 2.0, "nats_std": 0.0, "n": 9.0, "n_std": None},
]
MEASURES = {"nats": "loss", "n": "updates", "absent": "of other rows"}


def test_measures_of_several_units_have_a_panel_each_in_every_group():
    lines = Lines("text", "word", MEASURES, {"nats": "loss (nats)", "n": "updates N"}, "is_end", "word read", "top")
    figure = _panels(ROWS, lines)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss (nats)", "updates N"] * 2
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "", "word read"]
    drawn = [list(axes.containers[0].lines[0].get_ydata()) for axes in figure.axes]
    assert drawn == [[1.0, 3.0], [2.0, 4.0], [2.0], [9.0]]
    (above,) = figure.axes[0].child_axes
    assert [tick.get_text() for tick in above.get_xticklabels()] == ["A", ""]
    assert len(figure.axes[0].patches) == 1 and len(figure.axes[2].patches) == 0


def test_all_rows_may_share_one_panel_and_places_without_order_are_not_joined():
    joined, loose = (Lines("", "word", MEASURES, "several", is_joined=is_joined) for is_joined in (True, False))
    for lines, style in ((joined, "-"), (loose, "None")):
        (axes,) = _panels(ROWS, lines).axes
        assert [one.get_label() for one in axes.containers] == ["loss", "updates"]
        assert [one.lines[0].get_linestyle() for one in axes.containers] == [style, style]
        assert axes.get_ylabel() == "several" and axes.get_legend() is not None


def test_counts_have_whole_ticks():
    """One and two digits: without the rule ticks lie at 1.2, 1.4 and so on, as those of the loss do."""
    lines = Lines("", "word", {"nats": "loss", "n": "digits"}, {"nats": "nats", "n": "digits"})
    rows = [{**row, "nats": row["nats"] / 4, "n": value} for row, value in zip(ROWS, (1.0, 2.0, 1.0), strict=True)]
    loss, digits = _panels(rows, lines).axes
    assert all(float(tick).is_integer() for tick in digits.get_yticks())
    assert not all(float(tick).is_integer() for tick in loss.get_yticks())


def test_a_row_without_a_finite_number_has_a_gap_and_names_are_no_formulas():
    rows = [ROWS[0], {**ROWS[1], "nats": None, "n": None}, ROWS[2]]
    lines = Lines("", "word", {"nats": "$\\foo$", "n": "updates"}, "from $ 5 to $ 6 and $\\foo$")
    (axes,) = _panels(rows, lines).axes
    low, gap, high = axes.containers[0].lines[0].get_ydata()
    assert (low, high) == (1.0, 2.0) and math.isnan(gap)
    axes.figure.savefig(io.BytesIO())
    bars = _bars(rows, ("word",), "nats")
    bars.savefig(io.BytesIO())
    assert [bar.get_width() for bar in bars.axes[0].patches][::2] == [1.0, 2.0]


@pytest.fixture
def folder(tmp_path):
    lines = Lines("text", "word", MEASURES, "several")
    for name, sweep, title in (("b", "asr.demo", "big: words"), ("a", "asr.demo", EVIL), ("c", "asr.demo.smoke", "x")):
        draw(
            ROWS,
            ("text", "word"),
            "nats",
            lines,
            tmp_path / f"{name}.png",
            title,
            AnalysisFigure(sweep, title, "Of words."),
        )
    (tmp_path / "torn.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "front.png").write_bytes(b"no picture")
    return tmp_path


def test_a_report_shows_the_figures_of_its_sweep_alone_and_loads_nothing(folder):
    found = analysis_figures(folder, "asr.demo")
    assert [(one.title, one.text) for one in found] == [(EVIL, "Of words."), ("big: words", "Of words.")]
    assert base64.b64decode(found[1].image) == (folder / "b.png").read_bytes()
    page = render(answers_of(STUDY), (), provenance_of(STUDY), None, found)
    assert 'href="#analyses"' in page and page.count('<img class="analysis"') == 2
    assert f'src="data:image/png;base64,{found[0].image}"' in page and EVIL not in page
    assert "img-src data:;" in page


def test_without_figures_there_is_no_section_and_no_image_is_allowed(folder):
    found = analysis_figures(folder / "none", "asr.demo")
    assert found == ()
    page = render(answers_of(STUDY), (), provenance_of(STUDY), None, found)
    assert 'id="analyses"' not in page and "img-src" not in page
