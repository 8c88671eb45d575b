"""`compare` on recorded studies: who is held against whom, how it is printed, what is refused."""

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli import compare as compare_command
from orchestrator.cli.compare import compare
from orchestrator.console.printing import Format
from orchestrator.results.points import Point
from orchestrator.results.study import Study
from search_spaces import find
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.improved import with_slopes
from tests.orchestrator.report.studies import small_study
from trainables.errors import InputError


@pytest.fixture
def study(workplace, monkeypatch):
    """The small study, for whatever sweep is asked."""
    found = small_study()
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: found)
    return found


def show_with_kinds(study, monkeypatch):
    """Has `load` find a study in which each condition's config has a kind: its name."""
    found = replace(study, configs={name: {"controller.kind": name} for name in study.conditions})
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: found)


@pytest.fixture
def records(capsys):
    """What `compare asr.demo` gives to programs."""

    def call(*names, **options):
        capsys.readouterr()
        compare("asr.demo", *names, format=Format.json, **options)
        return json.loads(capsys.readouterr().out)

    return call


def pairs(records):
    return [(one["a"], one["b"]) for one in records if one["metric"] == "per"]


def test_without_names_all_stand_against_the_reference_under_each_evaluation(study, records):
    found = records()
    assert {(one["a"], one["b"], one["metric"]) for one in found} == {
        (f"{condition}@{evaluation}", f"random@{evaluation}", metric)
        for condition in ("surprisal", "always_big")
        for evaluation in ("greedy", "stochastic")
        for metric in ("per", "macs_per_frame")
    }
    one = next(one for one in found if one["a"] == "surprisal@greedy" and one["metric"] == "per")
    ours, theirs = (study.values(condition, "per@greedy") for condition in ("surprisal", "random"))
    assert one["a_mean"] == pytest.approx(sum(ours) / 3) and (one["a_n"], one["b_n"]) == (3, 3)
    assert one["difference"] == pytest.approx(sum(ours) / 3 - sum(theirs) / 3)
    assert one["low"] < one["difference"] < one["high"] and one["p_holm"] >= one["p"] == one["welch_p"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["surprisal"], [("surprisal@greedy", "random@greedy"), ("surprisal@stochastic", "random@stochastic")]),
        (["surprisal", "always_big"], [("surprisal@greedy", "always_big@greedy"),
                                       ("surprisal@stochastic", "always_big@stochastic")]),
        (["surprisal@greedy"], [("surprisal@greedy", "random@greedy")]),
        (["surprisal@greedy", "always_big"], [("surprisal@greedy", "always_big@greedy")]),
        (["surprisal", "always_big@greedy"], [("surprisal@greedy", "always_big@greedy")]),
        (["surprisal@greedy", "surprisal@stochastic"], [("surprisal@greedy", "surprisal@stochastic")]),
        (["random", "surprisal@greedy"], [("random@greedy", "surprisal@greedy")]),
    ],
)  # fmt: skip
def test_names_say_who_is_held_against_whom(study, records, names, expected):
    assert pairs(records(*names)) == expected


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        ([], {}, [("surprisal", "random")]),
        ([], {"reference": "always_big"}, [("surprisal", "always_big")]),
        (["always_big", "surprisal"], {}, [("always_big", "surprisal")]),
        (["random"], {"reference": "always_big"}, [("random", "always_big")]),
    ],
)
def test_a_filter_hides_neither_the_reference_nor_what_is_named(study, records, monkeypatch, names, options, expected):
    show_with_kinds(study, monkeypatch)
    found = pairs(records(*names, where=["controller.kind=surprisal"], **options))
    by = ("greedy", "stochastic")
    assert sorted(found) == [tuple(f"{name}@{one}" for name in pair) for pair in expected for one in by]


def test_hiding_conditions_makes_nothing_certain(workplace, monkeypatch, records):
    """Values that repeat in c and d say that a and b, which do not vary, may differ by chance."""
    values = {"surprisal": (0.98,) * 3, "random": (0.99,) * 3, "c": (0.97, 0.98, 0.98), "d": (0.97, 0.97, 0.99)}
    rows = [
        replicate(name, seed, metrics={"per": value, "macs_per_frame": 1.0})
        for name, column in values.items()
        for seed, value in enumerate(column, 1)
    ]
    show_with_kinds(Study("asr.demo", tuple(rows)), monkeypatch)
    for where in (None, ["kind=surprisal"]):
        (found,) = [one for one in records(where=where) if (one["a"], one["metric"]) == ("surprisal", "per")]
        assert (found["answer"], found["is_certain"]) == ("undecided", False), where


def test_it_is_said_what_a_filter_shows_and_what_stands_beside_it(study, monkeypatch, capsys):
    show_with_kinds(study, monkeypatch)
    compare("asr.demo", where=["kind=surprisal"])
    assert "Shown: 1 of 3 conditions, where kind=surprisal, and random.\n" in capsys.readouterr().out


def test_a_race_that_was_stopped_is_marked_and_said(workplace, monkeypatch, records, capsys):
    found = with_slopes(small_study(), {"surprisal": -0.01, "random": 0.0})
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: found)
    endings = {(one["a"], one["a_training"], one["b_training"]) for one in records()}
    assert ("surprisal@greedy", "improving", "ended") in endings
    assert ("always_big@greedy", "not known", "ended") in endings
    compare("asr.demo", "surprisal@greedy")
    printed = capsys.readouterr().out
    assert "surprisal@greedy †" in printed and "Still improving when training ended: surprisal@greedy" in printed


def test_the_family_is_what_is_printed(study, records):
    one = records("surprisal@greedy", metric=["per"])
    assert [row["metric"] for row in one] == ["per"] and one[0]["p_holm"] == one[0]["p"]
    more = records("surprisal@greedy")
    (smaller, larger) = sorted(more, key=lambda row: row["p"])
    assert smaller["p_holm"] == 2 * smaller["p"] and larger["p_holm"] == max(2 * smaller["p"], larger["p"])
    assert larger["p"] == one[0]["p"]


def test_metrics_have_the_direction_that_their_family_gives_them(study, records, monkeypatch):
    changed = [replace(r, metrics=r.metrics | {"real_time_factor@greedy": r.seed / 10}) for r in study.replicates]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", tuple(changed)))
    found = records("surprisal", metric=["real_time_factor", "real_time_factor"])
    assert [(one["a"], one["metric"], one["difference"]) for one in found] == [
        ("surprisal@greedy", "real_time_factor", 0.0)
    ]


def test_csv_is_what_the_report_writes(study, capsys):
    compare("asr.demo", "surprisal", format=Format.csv)
    listed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(listed) == 4 and listed[0]["is_paired"] == "true" and listed[0]["seeds_needed"].isdigit()


def test_programs_are_told_of_pairs_that_do_not_cost_the_same(study, records):
    """The sentence of the table says the same; those of the rival's own cost have nothing to say."""
    (unequal,) = records("surprisal@greedy", "always_big", metric=["per"])
    (cost,) = records("surprisal@greedy", "always_big", metric=["macs_per_frame"])
    assert unequal["share_more"] == pytest.approx(cost["a_mean"] / cost["b_mean"] - 1)
    assert abs(unequal["share_more"]) > 0.02 and 0 <= unequal["better"] <= 1 and unequal["line"] > 0
    (equal,) = records("surprisal@greedy", "surprisal@stochastic", metric=["per"])
    assert [equal[name] for name in ("share_more", "line", "better")] == [None] * 3


@pytest.mark.parametrize(("one", "expected"), [("test_sure", "test"), ("harder_sure", "harder"), ("other", "harder")])
def test_an_evaluation_that_the_other_side_lacks_is_held_against_its_counterpart(one, expected):
    several = tuple(Point(f"b@{evaluation}", "b", evaluation, ()) for evaluation in ("test", "harder"))
    assert compare_command._under(one, several).evaluation == expected


@pytest.fixture
def printed(capsys, monkeypatch):
    """What people are shown on a terminal of some width."""

    def call(*names, width=300, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        compare("asr.demo", *names, **options)
        return capsys.readouterr().out

    return call


HEADINGS = (
    "difference", "95 % interval", "p", "p (Holm)", "answer", "effect g", "ASO ε",
    "P(better)", "smallest shown", "n needed",
)  # fmt: skip


def headings(text):
    return [cell.strip() for line in text.splitlines() if line.startswith("┃") for cell in line.strip("┃").split("┃")]


def test_people_see_tests_effects_power_and_notes(study, printed):
    text = printed("surprisal", "always_big")
    assert set(HEADINGS) <= set(headings(text)) and headings(text).count("metric") == 1
    assert "Welch's t-test" in text and "power 0.8" in text and "permutation" not in text


def test_what_does_not_cost_the_same_is_held_against_the_front_at_its_cost(study, printed):
    """1.1e6 multiply-accumulates against 1e6, give or take; the metric alone that is compared hides no cost."""
    (note,) = (one for one in printed("surprisal@greedy", metric=["per"]).splitlines() if "Unequal cost" in one)
    assert "surprisal@greedy costs 9.9 % more than random@greedy (macs_per_frame 1.09" in note
    assert "the interpolated front of the other points has per 0.2" in note
    assert "P(better than that front) = " in note and note.endswith("over seeds.")
    text = printed("random@greedy", "surprisal@greedy")
    assert "random@greedy costs 9." in text and "None of the other points costs as little" in text


def test_a_pair_is_as_certain_beside_the_other_conditions_as_alone(workplace, monkeypatch, records):
    """Where a value repeats in other conditions too, that both sides are constant may be chance."""
    values = {"random": (1.0,) * 5, "a": (0.9,) * 5, "c": (0.9, 0.9, 1.0, 0.8, 0.9)}
    replicates = [
        replicate(
            name, seed, metrics={f"{metric}@{test}": per for metric in ("per", "macs_per_frame") for test in "xy"}
        )
        for name, own in values.items()
        for seed, per in enumerate(own, 1)
    ]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", tuple(replicates)))
    asked = [records(), records("a@x", "random@x"), records("a", "random")]
    found = [{one["answer"] for one in some if (one["a"], one["metric"]) == ("a@x", "per")} for some in asked]
    assert found == [{"undecided"}] * 3


def test_a_line_of_controls_takes_the_place_of_b(workplace, monkeypatch, printed, records):
    """surprisal's 1.1e6 lie a tenth of the way from random to always_big, which lacks a seed: so it is left out."""
    study = Study("asr.demo", tuple(one for one in small_study().replicates if one.seed != 3))
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: study)
    controls = ["random@greedy", "always_big@greedy"]
    (one,) = records("surprisal@greedy", line=controls)
    by = {name: study.values(name, "per@greedy") for name in ("surprisal", "random", "always_big")}
    assert one["error"] == pytest.approx(sum(by["surprisal"]) / 2) and (one["n"], one["a"]) == (2, "surprisal@greedy")
    rough = [0.9 * a + 0.1 * b for a, b in zip(by["random"], by["always_big"], strict=True)]
    assert one["line"] == pytest.approx(sum(rough) / 2, abs=1e-3)
    text = printed("surprisal@greedy", line=controls)
    assert text.startswith("surprisal@greedy against the controls at its macs_per_frame of 1.09")
    assert "in 2 of 2 seeds." in text and "Line: what random@greedy, always_big@greedy have at this cost" in text
    assert {one["a"] for one in records(line=controls)} >= {"surprisal@greedy", "surprisal@stochastic"}


def test_a_line_without_an_evaluation_is_of_the_points_own(workplace, monkeypatch, records):
    """`random` stands for random@greedy beside a point under greedy, and for random@stochastic beside the others."""
    study = Study("asr.demo", tuple(one for one in small_study().replicates if one.seed != 3))
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: study)
    for name in ("greedy", "stochastic"):
        ((one,), (named,)) = (
            records(f"surprisal@{name}", line=line)
            for line in (["random", "always_big"], [f"random@{name}", f"always_big@{name}"])
        )
        assert one == named


def test_a_line_asks_in_place_of_b_for_an_error_and_a_cost(study, records):
    with pytest.raises(InputError, match="B and --line both name what A is compared with: random and a, b; leave one"):
        records("surprisal", "random", line=["a", "b"])
    with pytest.raises(
        InputError, match="--reference and --line both name what A is compared with: random and a; leave"
    ):
        records("surprisal", reference="random", line=["a"])
    with pytest.raises(InputError, match="--line names every point that is compared: random@greedy; name another A"):
        records("random@greedy", line=["random@greedy"])
    with pytest.raises(InputError, match="--line needs an error, the first objective, and a cost to minimize"):
        records("surprisal", metric=["per"], line=["random@greedy"])


def test_on_a_narrow_terminal_each_comparison_is_a_paragraph(study, printed):
    text = printed("surprisal@greedy", width=80, metric=["per"])
    first, *others = text.splitlines()
    assert first == "surprisal@greedy against random@greedy, per: better"
    assert others[-1] == "Of 9 replicates, 1 failed: they count in nothing here."
    paragraph = " ".join(line.strip() for line in others if line.startswith("  "))
    assert all(f"{heading} " in paragraph for heading in HEADINGS if heading != "answer")
    assert max(len(line) for line in others if line.startswith("  ")) <= 80


def test_on_a_narrow_terminal_the_answer_is_that_of_the_table(study, printed, monkeypatch):
    one = [replicate for replicate in study.replicates if replicate.seed == 1]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", tuple(one)))
    first = printed("surprisal@greedy", width=80, metric=["per"]).splitlines()[0]
    assert first == "surprisal@greedy against random@greedy, per: cannot decide"


def test_of_many_the_decided_ones_are_shown_first(workplace, monkeypatch, printed):
    """Conditions of which the last ones differ by far."""
    numbers = random.Random(0)
    metrics = [
        (f"c{i}" if i else "random", seed, 0.5 + numbers.gauss(0, 0.001) + 0.1 * (i > 70))
        for i in range(80)
        for seed in (1, 2, 3, 4, 5)
    ]
    replicates = [replicate(c, seed, metrics={"per@e": per, "macs_per_frame@e": 1e6}) for c, seed, per in metrics]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", tuple(replicates)))
    monkeypatch.setattr(compare_command, "MAX_ROWS", 9)
    text = printed(metric=["per"])
    names = {line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")}
    assert names == {f"c{i}" for i in range(71, 80)}
    assert "9 of 79 comparisons are shown, those decided first; --format csv lists all.\n" in text


def test_of_many_unequal_costs_the_first_are_told_behind_what_the_table_refers_to(workplace, monkeypatch, printed):
    """Skewed noise of the error is warned of below the table; 24 conditions cost more than the reference."""
    numbers = random.Random(0)
    rows = [
        replicate(
            f"c{i}" if i else "random",
            seed,
            metrics={"per@e": numbers.expovariate(1), "macs_per_frame@e": 1e6 + i * 1e5},
        )
        for i in range(25)
        for seed in (1, 2, 3, 4, 5)
    ]
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", tuple(rows)))
    text = printed(metric=["per"])
    assert "the noise is" in text and "Holm" in text.rpartition("└")[2]
    assert text.count("Unequal cost: ") == 20
    assert text.endswith("4 more pairs do not cost the same; --format csv lists all.\n")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["surprisel"], "no results of the condition 'surprisel'; .*; the nearest is 'surprisal'"),
        (["nobody"], "has no results of the condition 'nobody'; its conditions are random, surprisal, always_big"),
        (["surprisal", "nobody@greedy"], "has no results of the condition 'nobody'"),
        (["surprisal@slow"], "has no evaluation 'slow'; it has greedy, stochastic"),
        (["@greedy"], "has no results of the condition '@greedy'"),
        (["random"], "must differ, but both are random; name another B"),
        (["random@greedy"], "must differ, but both are random@greedy; name another B"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(study, names, reason):
    with pytest.raises(InputError, match=reason):
        compare("asr.demo", *names)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("nothing", "'nothing' is not a metric with a direction; choose one of .*per"),
        ("per@greedy", "must be a name without an evaluation, but got 'per@greedy'; give CONDITION@EVALUATION"),
        ("released_per", "No complete replicate of asr.demo has the metric 'released_per'; they have loss, ratio"),
    ],
)
def test_metrics_that_are_not_there_are_refused(study, metric, reason):
    with pytest.raises(InputError, match=reason):
        compare("asr.demo", metric=[metric])


def test_without_a_reference_names_are_asked_for(study, records, monkeypatch):
    plain = replace(find.find_sweep("asr.demo"), reference=None)
    monkeypatch.setattr(find, "find_sweep", lambda *_: plain)
    with pytest.raises(InputError, match="names no reference; name two conditions: `ponderay compare asr"):
        compare("asr.demo")
    with pytest.raises(InputError, match="names no reference; name both conditions"):
        compare("asr.demo", "surprisal")
    assert len(records("surprisal", "random")) == 4


def test_a_short_name_is_that_of_the_condition_with_settings_as_for_train(study, records, monkeypatch):
    """`train asr.demo --set training.num_epochs=3 --condition surprisal` trains `surprisal,num_epochs=3`."""
    long, settings = "surprisal,num_epochs=3", {"surprisal,num_epochs=3": {"training.num_epochs": "3"}}
    with_settings = (replace(r, condition=long) if r.condition == "surprisal" else r for r in study.replicates)
    changed = Study("asr.demo", tuple(with_settings), settings=settings)
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: changed)
    assert {row["a"] for row in records("surprisal", "random")} == {f"{long}@greedy", f"{long}@stochastic"}
    assert {row["a"] for row in records("surprisal@greedy")} == {f"{long}@greedy"}
    both = (*changed.replicates, *(replace(r, condition=f"{long}0") for r in changed.of(long)))
    settings = settings | {f"{long}0": {"training.num_epochs": "30"}}
    several = Study("asr.demo", both, settings=settings)
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: several)
    with pytest.raises(InputError, match=f"is recorded with several settings; name one of {long}, {long}0"):
        compare("asr.demo", "surprisal", "random")


def test_a_condition_with_nothing_complete_is_named(study, monkeypatch):
    failed = (*study.replicates, replicate("learned", 1, state="failed", metrics={}))
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: Study("asr.demo", failed))
    with pytest.raises(InputError, match="learned must have a complete replicate with these metrics, but has none"):
        compare("asr.demo", "learned")


def test_it_is_typed_like_other_commands(study):
    app = typer.Typer()
    app.command()(compare)
    arguments = ["asr.demo", "surprisal@greedy", "always_big", "--metric", "per", "--smoke", "--format", "json"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0 and len(json.loads(found.stdout)) == 1
    assert "Comparing surprisal@greedy ...\n" in found.stderr
    assert not Path("runs").exists()
