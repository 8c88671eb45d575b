"""The analyses of language models are there when they are asked for, and no part of the code that trains."""

import subprocess
import sys

import pytest

from orchestrator.report.figure import analysis as drawing
from orchestrator.worker.code_version import imported_sources
from trainables.lm import train


def test_the_trainable_has_them_in_the_order_of_use():
    assert list(train.analyses) == [
        "sentences",
        "suite",
        "agreement",
        "theorems",
        "delta",
        "groups",
        "batches",
    ]
    assert not hasattr(train, "analysis_of_nothing")


def test_to_train_loads_none_of_them():
    modules = ", ".join(sorted(imported_sources("trainables.lm.train")))
    loaded = "print({'trainables.analysis', 'trainables.lm.analysis.questions'} & sys.modules.keys())"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"import sys, {modules}; {loaded}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"


def test_a_change_of_them_makes_no_other_code_version():
    sources = imported_sources("trainables.lm.train")
    inside = {name for name in sources if name.startswith("trainables.lm.analysis.")}
    assert inside == {"trainables.lm.analysis.words"}  # which the sample text of an evaluation is read with
    assert "trainables.analysis" not in sources


@pytest.mark.parametrize("options", [{}, {"step": "2"}])
def test_recoding_at_one_word_is_compared_with_no_recoding(options):
    pair = train.analyses["sentences"].pair(options)
    assert pair == (("bits_without", "bits_before") if options else ("bits_before", "bits_after"))


def test_the_error_signal_is_drawn_in_a_panel_of_its_own():
    """Ulmer 2019, figures 6.2 and B.6: delta at each word, before and after recoding, and measured alone."""
    lines = train.analyses["sentences"].lines
    deltas = ["delta_without", "delta_before", "delta_after"]
    units = lines.units(["bits_without", "bits_before", "bits_after", *deltas])
    assert list(units.values()) == [["bits_without", "bits_before", "bits_after"], deltas]
    row = {"sentence": 1, "word": "the", "is_critical": False} | dict.fromkeys(lines.measures, 1.5)
    figure = drawing._panels([row | {f"{measure}_std": 0.0 for measure in lines.measures}], lines)
    assert [axes.get_ylabel() for axes in figure.axes] == list(units)
    assert [len(axes.containers) for axes in figure.axes] == [3, 3]


PANELS = {
    "delta": {
        "mean loss in nats": 2,
        "mean error signal delta": 1,
        "mean change by recoding": 2,
        "correlation r, all tokens": 3,
    },
    "batches": {"error signal delta": 2, "loss in nats": 1, "mean step size": 1},
    "groups": {"perplexity": 2},
}


@pytest.mark.parametrize("name", PANELS)
def test_a_figure_of_the_test_text_has_a_panel_for_each_unit(name):
    """Thesis section 8.1.1, figures 5.3 and 5.4b; of groups of words one panel for each kind, which its axis names."""
    analysis = train.analyses[name]
    measures = list(analysis.lines.measures)
    rows = [
        dict.fromkeys(analysis.columns, part) | {"kind": "frequency in training"} | dict.fromkeys(measures, part / 2)
        for part in (1, 2, 3)
    ]
    rows = [row | {f"{measure}_std": 0.5 for measure in measures} for row in rows]
    figure = drawing._panels(rows, analysis.lines)
    found = {axes.get_ylabel(): len(axes.containers) for axes in figure.axes}
    assert found == PANELS[name]
    assert figure.axes[-1].get_xlabel() == ("frequency in training" if name == "groups" else analysis.lines.along) != ""
    ticks = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert ticks == ["1", "2", "3"]
