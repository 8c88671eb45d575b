"""Shipped sweeps of recoding language models at their smoke sizes, without Ray, and what is read out of them."""

import json

import pytest
from mlflow import MlflowClient
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.report.analysis import Question
from orchestrator.run import run_here
from orchestrator.scheduler.kept_checkpoint import with_items
from orchestrator.tracking.client import Tracking
from search_spaces.find import find_sweep
from search_spaces.lm_equal_cost import evaluations
from trainables.errors import InputError

pytestmark = pytest.mark.usefixtures("workplace")


def run(sweep):
    return run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates


def invoke(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("sweep", "condition"),
    [
        pytest.param("step_size", "surprisal,step=5", marks=pytest.mark.slow),
        pytest.param("samples", "mc_dropout,moments", marks=pytest.mark.slow),
        pytest.param("dynamic_step", "surprisal,lipschitz", marks=pytest.mark.slow),
        pytest.param("signals", "ensemble,released", marks=pytest.mark.slow),
        ("laptop", "eq44,step=1"),
        pytest.param("converged", "inject", marks=pytest.mark.slow),
    ],
)
def test_a_replicate_of_every_sweep_leaves_metrics_tables_and_figures(sweep, condition):
    chosen = find_sweep(f"lm.{sweep}", smoke=True).only(condition, 1)
    (replicate,) = run(chosen)
    assert replicate.state == "complete", replicate.error
    metrics = replicate.metrics
    assert 1 < metrics["perplexity@test"] < 500 < metrics["macs_per_token@test"]
    assert metrics["delta_after@test"] != metrics["delta_before@test"]
    assert metrics["step_size_h_1"] > 0 and metrics["num_not_finite@test"] == 0
    (recorded,) = Tracking(read_settings()).read_study(chosen.name).replicates
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    kept = {file.path for file in client.list_artifacts(recorded.run_id)}
    assert {"passage_test.csv", "passage_test.png"} <= kept
    items = with_items(Tracking(read_settings()).read_study(chosen.name), read_settings()).items  # they add up, or fail
    assert set(items.metrics(recorded.condition, "test")) == {"test_loss_nats"} and len(items.test_sets[0]) > 1


def test_what_adapts_is_tested_on_top_of_a_recoder_and_trains_nothing():
    """Each test of the one replicate costs more than that of the recoder alone, and tells what it chose."""
    few = {f"data.num_{part}_tokens": 600 if part == "train" else 80 for part in ("train", "validation", "test")}
    (replicate,) = run(find_sweep("lm.equal_cost", smoke=True).only("surprisal", 1).with_values(few))
    assert replicate.state == "complete", replicate.error
    metrics = replicate.metrics
    alone = metrics["macs_per_token@test"]
    for name in ("dynamic_bias", "dynamic_decoder", "dynamic_all", "cache"):
        assert metrics[f"macs_per_token@{name}"] > alone and metrics[f"preparation_macs@{name}"] > 0
        assert 1 < metrics[f"perplexity@{name}"] < 500 and metrics[f"eval_tokens_per_s@{name}"] > 0
    assert "preparation_macs@test" not in metrics
    *_, whole, cache = evaluations("smoke")
    assert metrics["dynamic_rate@dynamic_all"] in whole.adaptation.rates
    assert metrics["cache_share@cache"] in cache.adaptation.shares


@pytest.mark.slow
@pytest.mark.long  # Optuna draws for language models in the next
def test_random_search_draws_step_sizes_from_their_range():
    sweep = find_sweep("lm.search", smoke=True)
    replicates = run(sweep)
    assert [one.state for one in replicates] == ["complete"] * 3
    sizes = [one.metrics["step_size_h_1"] for one in replicates]
    assert len(set(sizes)) == 3 and all(0.5 <= size <= 75 for size in sizes)


@pytest.mark.slow
def test_optuna_searches_error_against_cost():
    replicates = run(find_sweep("lm.search_pareto", smoke=True))
    assert [one.state for one in replicates] == ["complete"] * 3
    assert len({one.metrics["macs_per_token@test"] for one in replicates}) > 1


@pytest.fixture(scope="module")
def ablation(tmp_path_factory):
    """A folder in which the baseline and surprisal of the ablation are complete, with two seeds."""
    place, patch = tmp_path_factory.mktemp("ablation"), pytest.MonkeyPatch()
    patch.chdir(place)
    sweep = find_sweep("lm.ablation", smoke=True)
    for condition in ("baseline", "surprisal,fixed"):
        for seed in (1, 2):
            (replicate,) = run(sweep.only(condition, seed))
            assert replicate.state == "complete", replicate.error
    patch.undo()
    return place


@pytest.fixture
def analysed(ablation, monkeypatch):
    """The JSON of `ponderay analyse` of the condition with surprisal."""
    monkeypatch.chdir(ablation)

    def analyse(*options):
        done = invoke("analyse", "lm.ablation", "surprisal,fixed", *options, "--smoke", "--format", "json")
        assert done.exit_code == 0, (done.output, done.exception)
        return json.loads(done.stdout)

    return analyse


@pytest.mark.slow
def test_the_ablation_evaluates_what_was_trained_otherwise(ablation, monkeypatch):
    monkeypatch.chdir(ablation)
    shown = invoke("pareto", "lm.ablation", "--smoke", "--format", "json")
    points = {(row["condition"], row["evaluation"]): row for row in json.loads(shown.stdout)["points"]}
    assert ("surprisal,fixed", "without") in points and ("baseline", "eq44_fixed") in points
    costs = [points["surprisal,fixed", name]["macs_per_token"] for name in ("test", "without")]
    assert costs[0] > costs[1] == points["baseline", "test"]["macs_per_token"]


@pytest.mark.slow
def test_a_trained_recoder_is_tested_on_one_baseline_that_was_trained_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = find_sweep("lm.ablation", smoke=True)
    found = [run(sweep.only(name, 1))[0] for name in ("eq44,learned", "ensemble,predicted")]
    assert [one.state for one in found] == ["complete"] * 2, [one.error for one in found]
    plain = [one.metrics["perplexity@baseline"] for one in found]
    assert plain[0] == plain[1]
    for one in found:
        assert one.metrics["perplexity@added"] != one.metrics["perplexity@baseline"]
        assert one.metrics["macs_per_token@added"] > one.metrics["macs_per_token@baseline"]


@pytest.mark.slow
def test_sentences_are_read_by_every_replicate_at_one_word_and_beside_another_condition(analysed, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("The value of the *expression is qwertz .\nif x is None :\n")
    rows = analysed("sentences", "--option", f"file={path}")
    assert [row["position"] for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5]
    assert [row["word"] for row in rows if row["is_critical"]] == ["expression"]
    assert rows[6]["word"] == "qwertz = <unk>"
    for row in rows:
        assert row["n"] == 2 and row["bits_after"] < row["bits_before"] and row["delta_after"] < row["delta_before"]
        assert row["bits_before_std"] > 0 and 0 < row["p"] <= row["p_holm"] <= 1
    assert rows[0]["bits_before"] == pytest.approx(rows[0]["bits_without"], rel=1e-5)  # nothing was recoded yet
    assert rows[1]["bits_before"] != pytest.approx(rows[1]["bits_without"], rel=1e-5)

    # At one word alone it changes the words behind it alone.
    path.write_text("The value of the expression is x .\n")
    rows = analysed("sentences", "--option", f"file={path}", "--option", "step=3")
    changed = [row["bits_before"] != pytest.approx(row["bits_without"], rel=1e-4) for row in rows]
    assert changed == [False, False, False, True, True, True, True, True]
    assert [row["bits_after"] < row["bits_before"] - 1e-6 for row in rows] == [i == 2 for i in range(8)]

    # Another condition stands beside.
    rows = analysed("sentences", "--option", f"file={path}", "--against", "baseline")
    assert all(row["bits_before_against"] > 0 and 0 < row["p"] <= 1 for row in rows)


@pytest.mark.slow
def test_classic_garden_paths_and_theorems_are_tables_with_a_figure(ablation, monkeypatch):
    monkeypatch.chdir(ablation)
    for option, kind in (((), "sentences"), (("theorems",), "theorems")):
        done = invoke("analyse", "lm.ablation", "surprisal,fixed", *option, "--smoke")
        assert done.exit_code == 0, (done.output, done.exception)
        assert (ablation / "runs" / "figures" / f"lm.ablation.smoke.surprisal,fixed.{kind}.png").stat().st_size > 5000


@pytest.mark.slow
def test_theorem_1_holds_up_to_its_bound_and_not_for_any_step(analysed):
    """L is estimated where the step begins; a few steps reach where the gradient changes faster (3 of 1,120 tokens in
    the documentation of Python 3.11.2, none in that of 3.11.7)."""
    shares = {(row["theorem"], row["setting"]): row["share"] for row in analysed("theorems")}
    assert shares["1", "alpha=0.001"] == 1.0 and shares["1", "alpha=1/L"] > 0.99
    assert shares["1", "alpha=100"] < 0.9
    assert [name for theorem, name in shares if theorem == "2"] == [f"k={k}" for k in range(1, 11)]
    assert 0 < shares["2", "k=1"] < 1


def test_a_model_is_read_with_the_text_and_the_settings_it_was_trained_with(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat and the dog sat on the log\n" * 100)
    text = f'data.text={{"kind": "one_file", "path": "{book}"}}'
    train = (
        "train",
        "lm.laptop",
        "--smoke",
        "--condition",
        "surprisal,step=1",
        "--set",
        text,
        "--set",
        "hidden_size=8",
    )
    assert invoke(*train).exit_code == 0
    status = json.loads(invoke("status", "lm.laptop", "--smoke", "--format", "json").stdout)
    (condition,) = {row["condition"] for row in status}
    assert "hidden_size=8" in condition
    question = tmp_path / "question.txt"
    question.write_text("the cat sat on the horse\n")
    ask = ("analyse", "lm.laptop", condition, "--smoke", "--option", f"file={question}", "--format", "json")
    words = [row["word"] for row in json.loads(invoke(*ask).stdout)]
    assert words == ["the", "cat", "sat", "on", "the", "horse = <unk>"]
    book.write_text("another story\n" * 200)
    assert str(invoke(*ask).exception).endswith("is no longer what it was trained on; put it back.")


WRONG_QUESTIONS = (
    (["grammar"], "trainables.lm.train has no analysis 'grammar'; it has sentences: Surprisal at each word"),
    (["theorems", "--option", "step=2"], "The analysis 'theorems' has no option 'step'; it has none."),
    (["suite", "--option", "step=2"], "The analysis 'suite' has no option 'step'; the options are file: minimal"),
    (
        ["--option", "step=1", "--option", "step=2"],
        "The option 'step' of 'sentences' must be given once, but got 1",
    ),
    (["--option", "step"], "--option must be NAME=VALUE, but got 'step'."),
    (["agreement"], "The option `file` must name agreement items; give `--option file=PATH`."),
    (
        ["--against", "none"],
        "lm.ablation.smoke has no results of the condition 'none'; its conditions are baseline, surprisal,fixed.",
    ),
    (
        ["--option", "step=99"],
        "The option `step` must be a number from 1 to 14, the words of the longest sentence,",
    ),
    (["--evaluation", "none"], "'surprisal,fixed' has no evaluation 'none'; it has test, without."),
    (["theorems", "--evaluation", "without"], "The theorems are about a recoder; choose a condition or an"),
)


@pytest.mark.slow
def test_a_wrong_question_is_told_what_is_right(ablation, monkeypatch):
    monkeypatch.chdir(ablation)
    for options, message in WRONG_QUESTIONS:
        done = invoke("analyse", "lm.ablation", "surprisal,fixed", *options, "--smoke")
        assert str(done.exception).startswith(message), options


def test_only_what_has_analyses_and_has_run_can_be_analysed():
    with pytest.raises(InputError, match=r"trainables\.asr\.train, the trainable of asr\.demo, has no analyses"):
        Question.of(find_sweep("asr.demo"), "theorems", {})
    assert "has not run here yet" in str(invoke("analyse", "lm.laptop", "baseline").exception)


AGREEMENT = ("the value", "an object", "the name", "this function", "the values", "the objects", "names", "functions")


def test_a_probe_that_is_told_the_number_moves_the_verb_its_way(tmp_path):
    """Fitted to every second item, it is told the number of the others, which their prefixes show as well."""
    (replicate,) = run(find_sweep("lm.weak_supervision", smoke=True).only("baseline", 1))
    assert replicate.state == "complete", replicate.error
    assert replicate.metrics["perplexity@layer_2_step_1"] == replicate.metrics["perplexity@test"]
    columns = "constr_id\tsent_id\tcorrect_number\tform\tclass\ttype\tprefix\tlen_prefix\tsent"
    rows = [columns]
    for i, prefix in enumerate(AGREEMENT):
        number, forms = ("plur", ("are", "is")) if prefix.endswith("s") else ("sing", ("is", "are"))
        for form, kind in zip(forms, ("correct", "wrong"), strict=True):
            length = len(prefix.split())
            rows.append(f"1\t{i}\t{number}\t{form}\t{kind}\toriginal\t{prefix}\t{length}\t{prefix} {forms[0]} .")
    path = tmp_path / "items.tab"
    path.write_text("\n".join(rows) + "\n")
    accuracies = {}
    for evaluation in ("test", "layer_2_step_1"):
        options = ("--option", f"file={path}", "--evaluation", evaluation, "--format", "json")
        done = invoke("analyse", "lm.weak_supervision", "baseline", "agreement", "--smoke", *options)
        assert done.exit_code == 0, (done.output, done.exception)
        found = {(row["kind"], row["reading"]): row for row in json.loads(done.stdout)}
        accuracies |= {(evaluation, reading): row["accuracy"] for (_, reading), row in found.items()}
        assert found["all", "without"]["num_items"] == (8 if evaluation == "test" else 4)
    assert set(accuracies) == {("test", "without"), ("layer_2_step_1", "without"), ("layer_2_step_1", "with")}
    assert accuracies["layer_2_step_1", "with"] >= accuracies["layer_2_step_1", "without"]


@pytest.mark.data
@pytest.mark.slow
def test_minimal_pairs_and_agreement_on_real_files(analysed, real_data):
    suites = [str(real_data / "syntaxgym" / f"{name}.csv") for name in ("mvrr", "npz_obj")]
    rows = analysed("suite", "--option", f"file={suites[0]}", "--option", f"file={suites[1]}")
    assert [(row["suite"], row["reading"]) for row in rows] == [
        (name, reading) for name in ("mvrr", "npz_obj") for reading in ("without", "with")
    ]
    assert all(0 <= row["share_positive"] <= 1 and 0 < row["num_items"] < 28 for row in rows)
    items = analysed("agreement", "--option", f"file={real_data / 'agreement' / 'gulordava' / 'generated.tab'}")
    assert {row["kind"] for row in items} == {"all", "generated", "original"}
    assert all(0 <= row["accuracy"] <= 1 and row["num_items"] > 5 for row in items)


@pytest.mark.data
@pytest.mark.slow
def test_wikitext_2_is_read_as_it_is(real_data):
    values = {
        "data.text": {"kind": "files", "root": str(real_data)},
        "data.num_train_tokens": 20_000,
        "data.vocabulary.max_size": 2000,
    }
    sweep = find_sweep("lm.laptop", smoke=True).with_values(values)
    (replicate,) = run(sweep.only(sweep.conditions[1].name, 1))
    assert replicate.state == "complete", replicate.error
    assert 20 < replicate.metrics["perplexity@test"] < 1500
