"""RESULTS.md and docs/results/ are what the bundles and notes in evidence/ give."""

import math
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pandas
import pytest
from scipy.stats import ttest_1samp

from evidence import make_page
from evidence.metric_tables import Family, asked_table, difference_table, metric_table, p_values
from orchestrator.report.answers import answer
from orchestrator.report.numerals import MINUS, p_value
from orchestrator.report.save import save
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.significance import holm, welch_p
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.searched import write_search
from tests.orchestrator.report.studies import question, small_study
from trainables.errors import InputError

NOTE = "# Is it worth it?\n\nA question.\n\n{answers}\n\n**Learnt: yes\nit is.** By **all**.\n"


@pytest.fixture
def evidence(workplace, monkeypatch):
    """A folder with one bundle and its note, the benchmarks, and a note that is no page."""
    folder = workplace / "evidence"
    folder.mkdir()
    save(answer(small_study(), question()), workplace / "report", folder / "one.zip")
    (folder / "one.md").write_text(NOTE)
    (folder / "benchmarks.md").write_text("# Speed\n\nFast.\n")
    (folder / "plan.md").write_text("# Plan\n")
    monkeypatch.setattr(make_page, "HERE", folder)
    return folder


def make(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["make_page.py", *arguments])
    return make_page.main()


def test_each_study_has_a_page_and_the_short_page_its_answer(evidence, workplace, monkeypatch):
    assert make(monkeypatch) == 0
    short = (workplace / "RESULTS.md").read_text()
    assert "| [Is it worth it?](docs/results/one.md) | Learnt: yes it is. | 2 to 3 |" in short
    assert "surprisal@greedy" not in short
    page = (workplace / "docs/results/one.md").read_text()
    texts = ["# Is it worth it?", "](../../RESULTS.md)", "A question.", "ponderay run asr.demo", "8 complete, 1 failed"]
    texts += ['src="../../evidence/one.png"', "surprisal@greedy", "**Learnt: yes\nit is.**"]
    places = [page.index(text) for text in texts]
    assert places == sorted(places)
    assert (workplace / "docs/results/benchmarks.md").read_text() == "# Speed\n\nFast.\n"
    assert sorted(path.name for path in (workplace / "docs/results").iterdir()) == ["benchmarks.md", "one.md"]
    assert (evidence / "one.png").read_bytes().startswith(b"\x89PNG")
    assert make(monkeypatch, "--check") == 0


def test_the_entry_of_a_search_has_the_importance_of_its_parameters(evidence, workplace, monkeypatch):
    monkeypatch.setattr("orchestrator.scheduler.importance.NUM_GROUPS", 2)
    monkeypatch.setattr("orchestrator.scheduler.importance.NUM_TREES", 16)
    write_search(evidence / "one.zip")
    make(monkeypatch)
    page = (workplace / "docs/results/one.md").read_text()
    assert "**asr.demo: importance of the parameters**" in page and "over 20 trials each parameter explains" in page
    assert re.search(r"\| x \| 0\.[89]\d \| \S+ to \S+ \| ", page)
    assert make(monkeypatch, "--check") == 0


def test_a_note_without_an_answer_is_told(evidence, monkeypatch):
    (evidence / "one.md").write_text("# Is it worth it?\n\nOf **all**.\n\n{answers}\n")
    with pytest.raises(InputError, match=r"evidence/one\.md must have a line that begins with its answer in bold"):
        make(monkeypatch)


@pytest.mark.parametrize("name", ["RESULTS.md", "docs/results/one.md", "docs/results/benchmarks.md"])
def test_a_page_that_says_something_else_is_told(name, evidence, workplace, monkeypatch, capsys):
    make(monkeypatch)
    page = workplace / name
    page.write_text(page.read_text() + "No.\n")
    assert make(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == f"Not what the bundles give: {name}\n"
    page.unlink()
    assert make(monkeypatch, "--check") == 1


def test_a_page_that_nothing_makes_any_more_is_told_and_removed(evidence, workplace, monkeypatch, capsys):
    make(monkeypatch)
    stale = workplace / "docs/results/gone.md"
    stale.write_text("# Gone\n")
    assert make(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == "Not what the bundles give: docs/results/gone.md\n"
    make(monkeypatch)
    assert not stale.exists() and make(monkeypatch, "--check") == 0


def test_a_bundle_that_was_changed_is_told(evidence, monkeypatch, capsys):
    make(monkeypatch)
    whole, changed = evidence / "one.zip", evidence / "changed"
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            after.writestr(name, content.replace(b"0.", b"1.") if name == "study.json" else content)
    shutil.move(changed, whole)
    assert make(monkeypatch, "--check") == 1
    assert "one" in capsys.readouterr().out


def of_seeds(values, condition="a"):
    """A study of one condition, with a dictionary of metrics for each seed."""
    rows = [{"condition": condition, "seed": seed, **metrics} for seed, metrics in values.items()]
    return Study.from_dataframe(pandas.DataFrame(rows), [Objective("error")])


def test_a_table_of_metrics_has_mean_spread_and_interval():
    """Of 1, 2, 3: deviation 1, and Student's t of two degrees of freedom, 4.303, over the root of three: 2.484."""
    table = metric_table(of_seeds({1: {"error": 1.0}, 2: {"error": 2.0}, 3: {"error": 3.0}}), ["error"])
    assert table.columns == ("condition", "error", "95 % interval", "n")
    assert table.rows == (("a", "2.0 ± 1.0", f"{MINUS}0.5 to 4.5", "3"),)


def test_the_number_of_seeds_is_that_of_each_metric():
    study = of_seeds({1: {"error": 1.0, "slope": 2.0}, 2: {"error": 2.0}})
    assert metric_table(study, ["error", "slope"]).rows[0][-1] == "2, 1"
    assert metric_table(study, ["error"]).rows[0][-1] == "2"


def test_differences_are_paired_by_seed():
    """11 against 10, 18 against 20: 1 and -2, which are 10 % and -10 %."""
    study = of_seeds({1: {"error": 10.0, "error@b": 11.0}, 2: {"error": 20.0, "error@b": 18.0}, 3: {"error": 7.0}})
    (row,) = difference_table(study, ["a error@b against a error"]).rows
    assert row[:2] == ("a error@b", "a error") and row[5:] == (f"{MINUS}10.0 to 10.0", "2")
    low, high = (float(end.replace(MINUS, "-")) for end in row[3].split(" to "))
    assert float(row[2].replace(MINUS, "-")) == pytest.approx(-0.5, abs=0.5)
    half = 12.706 * math.sqrt(4.5) / math.sqrt(2)
    assert (low, high) == (pytest.approx(-0.5 - half, abs=0.5), pytest.approx(-0.5 + half, abs=0.5))


def recorded(values):
    """A study whose replicates ended well, whatever they reported in training."""
    made = (Replicate(f"a/{seed}", "a", seed, "complete", metrics) for seed, metrics in values.items())
    return Study("asr.demo", tuple(made))


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_a_value_that_is_no_finite_number_does_not_count(strange):
    """As in every other table; 1 and 3 have the mean 2 and the deviation 1.4."""
    study = recorded({1: {"loss": 1.0, "flat": 1.0}, 2: {"loss": strange, "flat": 1.0}, 3: {"loss": 3.0, "flat": 2.0}})
    (row,) = metric_table(study, ["loss"]).rows
    assert (row[1], row[-1]) == ("2.0 ± 1.4", "2")
    (row,) = difference_table(study, ["a loss against a flat"]).rows
    assert (row[5], row[-1]) == ("0.0 to 50.0", "2")


def test_a_share_has_the_sign_of_its_difference():
    """-1 against -2 is 1 more, half of 2; -3 against -4 is 1 more, a quarter of 4."""
    study = recorded({1: {"gain": -1.0, "base": -2.0}, 2: {"gain": -3.0, "base": -4.0}})
    (row,) = difference_table(study, ["a gain against a base"]).rows
    assert row[2:] == ("+1", "1 to 1", "", "25.0 to 50.0", "2")


def test_of_nothing_there_is_no_share():
    study = recorded({1: {"gain": 1.0, "base": 0.0}, 2: {"gain": 3.0, "base": 4.0}})
    (row,) = difference_table(study, ["a gain against a base"]).rows
    assert row[5:] == ("", "2")


def test_tests_of_differences_are_corrected_for_their_number():
    """Differences 1 and -2: t is 1/3 with one degree of freedom, so p is 1 - 2/pi atan(1/3); 5 and 6: t is 11."""
    values = {1: {"x": 11.0, "y": 15.0, "base": 10.0}, 2: {"x": 18.0, "y": 26.0, "base": 20.0}}
    table = difference_table(recorded(values), ["a x against a base", "a y against a base"])
    alone = [1 - 2 / math.pi * math.atan(t) for t in (1 / 3, 11)]
    assert [row[4] for row in table.rows] == [f"{alone[0]:.3f}", f"{2 * alone[1]:.3f}"]
    assert "Holm over the 2 tests" in table.notes[0]


@pytest.mark.parametrize("asked", ["metrics err0r", "differences a error against a err0r"])
def test_a_metric_that_is_not_there_is_told(asked, tmp_path):
    study = of_seeds({1: {"error": 1.0}})
    with pytest.raises(InputError, match="err0r"):
        asked_table(study, (), *asked.split(" ", 1), tmp_path)


def test_a_line_of_controls_is_asked_by_the_names_of_points():
    """Half-way between the two controls in cost; their middle is 15 and 25."""
    values = {"low": (1.0, (10.0, 20.0)), "high": (3.0, (20.0, 30.0)), "ours": (2.0, (12.0, 23.0))}
    made = [
        replicate(name, seed, metrics={"per@greedy": errors[seed - 1], "cost": cost})
        for name, (cost, errors) in values.items()
        for seed in (1, 2)
    ]
    study, objectives = Study("asr.demo", tuple(made)), (Objective("per"), Objective("cost"))
    table = asked_table(study, objectives, "line", "ours against low; high", Path())
    assert (table.values("error"), table.values("line"), table.values("difference")) == ((17.5,), (20.0,), (-2.5,))
    assert table.values("num_better") == (2,) and "low, high" in table.notes[0]


def test_a_note_asks_for_tables(evidence, workplace, monkeypatch):
    (evidence / "one.md").write_text(NOTE + "\n{metrics per@greedy}\n\n{analysis one.bits.csv}\n")
    (evidence / "one.bits.csv").write_text("bits,seed,updates\n1,1,1.0\n1,2,2.0\n1,3,3.0\n2,1,5.0\n")
    make(monkeypatch)
    page = (workplace / "docs/results/one.md").read_text()
    assert "asr.demo: per@greedy" in page
    assert f"| 1 | 2.0 ± 1.0 | {MINUS}0.5 to 4.5 | 3 |" in page and "| 2 | 5.0 |  | 1 |" in page


def test_an_answer_that_calls_two_alike_needs_a_margin(evidence, workplace, monkeypatch):
    (evidence / "one.md").write_text(NOTE.replace("yes\nit is.", "they are not\ntold apart."))
    with pytest.raises(InputError, match=r"one\.md must say in its answer what was not shown, for asr\.demo has no"):
        make(monkeypatch)
    asked = question(non_inferiority=0.01)
    save(answer(small_study(), asked), workplace / "report", evidence / "one.zip")
    assert make(monkeypatch) == 0


PAIRS = "surprisal per@greedy against random per@greedy; surprisal per@greedy against surprisal per@stochastic"


def test_a_page_has_one_family_and_the_sweeps_test(evidence, workplace, monkeypatch):
    """Eight comparisons with the reference, and two differences of the note."""
    (evidence / "one.md").write_text(NOTE.replace("{answers}", "{answers}\n\n{differences " + PAIRS + "}"))
    assert make(monkeypatch) == 0
    page = (workplace / "docs/results/one.md").read_text()
    assert "Holm over the 10 tests of this page" in page and "Holm over the page's 10 tests" in page
    assert "p: of Welch's t-test, of the same replicates a paired t-test" in page
    study, objectives = small_study(), question().objectives
    found = answer(study, question())
    raw = [one.p for one in found.comparisons]
    own = p_values(study, objectives, "differences", PAIRS, "welch")
    a, b = ([*study.values(name, "per@greedy")] for name in ("surprisal", "random"))
    assert own[0] == pytest.approx(welch_p(a, b))
    paired = [x - y for x, y in zip(a, study.values("surprisal", "per@stochastic"), strict=True)]
    assert own[1] == pytest.approx(ttest_1samp(paired, 0).pvalue)
    adjusted = holm([*raw, *own])
    table = difference_table(study, PAIRS.split("; "), Family("welch", tuple(raw)))
    assert [row[4] for row in table.rows] == [p_value(p) for p in adjusted[-2:]]


def test_pairs_of_seeds_are_tested_by_the_promised_test():
    study = small_study()
    (p,) = p_values(study, question().objectives, "differences", PAIRS.partition(";")[0], "paired_permutation")
    assert p == 0.25  # three pairs, all of one sign
