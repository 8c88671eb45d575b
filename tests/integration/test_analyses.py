"""Analyses that a trainable outside this repository's packages brings with it."""

import importlib
import json
import sys
from dataclasses import replace

import pytest
from scipy.stats import ttest_ind, ttest_rel
from typer.testing import CliRunner

from orchestrator.cli.main import app
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Sweep
from tests.integration.sweeps import run_quietly
from tests.orchestrator.recorded import empty_store

TOY = """
import tempfile
from pathlib import Path
from typing import Annotated

from trainables import checkpoint
from trainables.analysis import Analysis, Lines
from trainables.config import NOT_IN_KEY, Config

DATA = Path(__file__).with_name("data.txt")


class Test(Config):
    name: str = "plain"
    factor: float = 1.0


class ToyConfig(Config):
    width: int = 1
    evaluations: Annotated[tuple[Test, ...], NOT_IN_KEY] = (Test(), Test(name="doubled", factor=2.0))
    seed: Annotated[int, NOT_IN_KEY] = 1


def fingerprint(config):
    return DATA.read_text()


def num_steps(config):
    return 1


def selection(config):
    return {test.name: "loss" for test in config.evaluations}


def train(config: ToyConfig, trial):
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(Path(folder) / "toy.pt", {"weight": config.width * config.seed**2})
        trial.report({"loss": 1.0 / config.seed}, step=1, checkpoint=path)


def evaluate(config, path, test, trial):
    trial.report({"error": test.factor / checkpoint.load(path)["weight"], "loss": 1.0 / config.seed}, step=1)


def ask(config, path, test, options):
    weight = test.factor * checkpoint.load(path)["weight"]
    words = options.get("word", ("a", "bcd"))
    moved = weight + float(options.get("by", 1)) * config.seed
    cells = {}
    for word in words:
        is_lost = word == "lost" and config.seed == 2
        cells[word, len(word) > 1, "before"] = float("nan") if is_lost else weight * len(word)
        cells[word, len(word) > 1, "after"] = moved * len(word)
    return cells


def odd(config, path, test, options):
    return {("row", config.seed, "number"): 1.0}


analyses = {
    "words": Analysis(
        "What words weigh.",
        ("word", "is_long"),
        ask,
        compared=("before", "after"),
        options={"word": "a word; may be repeated", "by": "how far it is moved"},
        repeatable=("word",),
        headings={"before": "was"},
        lines=Lines("is_long", "word", {"before": "as it was"}, "weight"),
    ),
    "bars": Analysis("The same as bars.", ("word", "is_long"), ask),
    "misnamed": Analysis("Rows without their columns.", ("word",), ask),
    "uneven": Analysis("Rows that differ between replicates.", ("row", "seed"), odd),
    "nothing": Analysis("No numbers.", ("row",), lambda *_: {}),
    "incomparable": Analysis("A measure that is not there.", ("word", "is_long"), ask, compared=("before", "x")),
}
"""
SEEDS = (1, 2, 3)
WEIGHTS = {"narrow": [2.0, 8.0, 18.0], "wide": [5.0, 20.0, 45.0]}  # width times seed squared


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The toy's sweep, run in a folder of its own, from which commands are called."""
    place, patch = tmp_path_factory.mktemp("toy"), pytest.MonkeyPatch()
    (place / "toylab.py").write_text(TOY)
    (place / "data.txt").write_text("one")
    (place / "runs").mkdir()
    (place / "runs" / "mlflow.db").write_bytes(empty_store())
    patch.chdir(place)
    patch.syspath_prepend(str(place))
    sweep = Sweep(
        name="toylab.widths",
        description="For tests.",
        trainable="toylab",
        base=importlib.import_module("toylab").ToyConfig(),
        objectives=(Objective("error"),),
        conditions=(Condition("narrow", {"width": 2}), Condition("wide", {"width": 5})),
        seeds=SEEDS,
        resources=Resources(num_workers=0),
    )
    ran = run_quietly(sweep).replicates
    assert [one.error for one in ran if one.state != "complete"] == [] and len(ran) == 6
    yield place, sweep
    patch.undo()
    sys.modules.pop("toylab")


@pytest.fixture
def analyse(toy, monkeypatch):
    """The outcome of `ponderay analyse toylab.widths` with more arguments."""
    place, sweep = toy
    monkeypatch.chdir(place)
    monkeypatch.setattr("orchestrator.cli.analyse.find", lambda *_: sweep)
    return lambda *arguments: CliRunner().invoke(app, ["analyse", "toylab.widths", *arguments])


def rows(done):
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout, parse_constant=pytest.fail)  # NaN is no JSON


def test_the_first_analysis_compares_two_measures_of_each_row_over_seeds(analyse):
    short, long = rows(analyse("narrow", "--format", "json"))
    assert list(short) == [
        "word", "is_long", "before", "before_std", "after", "after_std", "n", "p", "p_holm"
    ]  # fmt: skip
    weights = WEIGHTS["narrow"]
    assert (short["word"], short["is_long"], short["n"]) == ("a", False, 3)
    assert short["before"] == pytest.approx(28 / 3) and short["before_std"] == pytest.approx((196 / 3) ** 0.5)
    assert long["after"] == pytest.approx(34.0)
    expected = ttest_rel(weights, [w + seed for w, seed in zip(weights, SEEDS, strict=True)]).pvalue
    assert short["p"] == pytest.approx(expected)
    assert [row["p_holm"] for row in (short, long)] == pytest.approx([min(1.0, 2 * expected)] * 2)


def test_what_a_replicate_has_no_number_for_is_left_out(analyse):
    (found,) = rows(analyse("narrow", "--option", "word=lost", "--format", "json"))
    assert (found["before"], found["n"]) == (40.0, 2) and found["after"] == pytest.approx(4 * 34 / 3)
    assert found["p"] == pytest.approx(ttest_rel([8.0, 72.0], [12.0, 84.0]).pvalue)


def test_a_change_that_is_the_same_in_every_replicate_is_no_test(analyse):
    (found,) = rows(analyse("narrow", "--option", "word=a", "--option", "by=0", "--format", "json"))
    assert found["before"] == found["after"] and found["p"] is None


def test_options_an_evaluation_and_another_condition_go_into_the_answer(analyse):
    found = rows(
        analyse(
            "narrow", "words", "--option", "word=xyz", "--option", "word=q", "--option", "by=-2", "--evaluation",
            "doubled", "--against", "wide", "--format", "json",
        )
    )  # fmt: skip
    assert [row["word"] for row in found] == ["xyz", "q"]
    assert found[1]["before"] == pytest.approx(56 / 3) and found[1]["after"] == pytest.approx(44 / 3)
    assert found[1]["before_against"] == pytest.approx(140 / 3)
    expected = ttest_ind([2 * w for w in WEIGHTS["narrow"]], [2 * w for w in WEIGHTS["wide"]], equal_var=False).pvalue
    assert found[1]["p"] == pytest.approx(expected)


def test_each_replicate_has_rows_of_its_own(analyse):
    found = rows(analyse("narrow", "bars", "--each", "--format", "json"))
    assert [(row["word"], row["seed"], row["before"]) for row in found] == [
        (word, seed, len(word) * weight)
        for word in ("a", "bcd")
        for seed, weight in zip(SEEDS, WEIGHTS["narrow"], strict=True)
    ]
    assert list(found[0]) == ["word", "is_long", "seed", "before", "after"]
    refused = analyse("narrow", "bars", "--each", "--against", "wide")
    assert "--each gives the numbers of one condition" in str(refused.exception)


def test_without_measures_to_compare_there_is_no_test(analyse):
    assert all("p" not in row for row in rows(analyse("wide", "bars", "--format", "json")))


@pytest.mark.parametrize(
    ("asked", "heading", "figure"),
    [
        (("words", "--option", "by=3"), "was", "toylab.widths.wide.by=3.words.png"),
        (("bars", "--against", "narrow"), "before", "toylab.widths.wide.against=narrow.bars.png"),
    ],
)
def test_a_table_has_short_names_and_a_figure_named_by_what_was_asked(analyse, toy, asked, heading, figure):
    done = analyse("wide", *asked)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"toylab.widths, wide: {asked[0]}" in done.output and f" {heading} " in done.output
    assert (toy[0] / "runs" / "figures" / figure).stat().st_size > 3000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["narrow", "sums"], "toylab has no analysis 'sums'; it has words: What words weigh. bars: The same as bars."),
        (
            ["narrow", "words", "--option", "to=1"],
            "The analysis 'words' has no option 'to'; the options are word: a word; may be repeated; by: how far it is",
        ),
        (["narrow", "bars", "--option", "by=1"], "The analysis 'bars' has no option 'by'; it has none."),
        (["narrow", "--option", "by=1", "--option", "by=2"], "The option 'by' of 'words' must be given once, but got"),
        (["narrow", "--option", "=1"], "--option must be NAME=VALUE, but got '=1'."),
        (["broad"], "toylab.widths has no results of the condition 'broad'; its conditions are narrow, wide."),
        (["narrow", "--evaluation", "x"], "'narrow' has no evaluation 'x'; it has plain, doubled."),
        (["narrow", "misnamed"], "misnamed of narrow seed 1 must name each number by word and a measure, but has ('a'"),
        (["narrow", "uneven"], "uneven of narrow seed 2 must have the rows and measures of seed 1, but has others."),
        (["narrow", "nothing"], "nothing of narrow seed 1 must give each measure for each row, but some are missing."),
        (["narrow", "incomparable"], "incomparable of narrow seed 1 must have the measure 'x', which is compared,"),
    ],
)
def test_a_wrong_question_is_one_sentence(analyse, arguments, message):
    assert str(analyse(*arguments).exception).startswith(message)


def test_data_that_has_changed_is_not_analysed(analyse, toy):
    place, _ = toy
    (place / "data.txt").write_text("two")
    message = str(analyse("narrow").exception)
    (place / "data.txt").write_text("one")
    assert message.startswith("The data of ") and message.endswith("is no longer what it was trained on; put it back.")


def test_a_trainable_without_analyses_says_so(analyse, toy, monkeypatch):
    _, sweep = toy
    plain = replace(sweep, trainable="tests.integration.tiny")
    monkeypatch.setattr("orchestrator.cli.analyse.find", lambda *_: plain)
    assert str(analyse("narrow").exception) == (
        "tests.integration.tiny, the trainable of toylab.widths, has no analyses; give it a mapping `analyses` from "
        "names to `trainables.analysis.Analysis`."
    )
