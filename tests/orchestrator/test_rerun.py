"""Replicates of a bundle are trained again: what was tampered with is found as often as the formula says."""

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binom, hypergeom, t
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.write import write_bundle
from orchestrator.rerun import compare, plan_rerun, sentences
from orchestrator.results.provenance import provenance_in
from orchestrator.results.reference import recorded_question
from orchestrator.statistics.discovery_sampling import most_wrong
from orchestrator.tracking.checkout import package_versions
from orchestrator.tracking.load import load_study
from search_spaces.find import find_sweep
from tests.door import PLAIN
from tests.integration.sweeps import run_quietly

WIDE = PLAIN.replace("[4, 8]", "[4, 8, 16, 32]").replace("seeds=(1, 2, 3)", "seeds=(1, 2, 3, 4, 5)")
NUM_DRAWN = 5
NUM_DRAWS = 400


@pytest.fixture
def sweep(workplace):
    (workplace / "toy.py").write_text(WIDE)
    return find_sweep("toy.py:toy")


@pytest.fixture
def truth(sweep):
    run_quietly(sweep)
    return load_study("toy")


def bundle(study, sweep, file="it.zip"):
    answers = answer(study, recorded_question(sweep, study))
    write_bundle(Path(file), answers, tables(answers), provenance_in(study), "<html></html>")
    return Path(file)


def with_losses(study, losses):
    """The study with other values of the loss, by condition and seed."""
    changed = [
        replace(one, metrics={**one.metrics, "loss": losses.get((one.condition, one.seed), one.metrics["loss"])})
        for one in study.replicates
    ]
    return replace(study, replicates=tuple(changed))


def tampered(study):
    """Twenty studies with the number of their wrong replicates; None where what was left out shows by itself."""
    loss = {(one.condition, one.seed): one.metrics["loss"] for one in study.replicates}
    names = study.conditions
    for number in range(5):
        dropped = (names[number % 4], number % 5 + 1)
        yield None, replace(study, replicates=tuple(r for r in study.replicates if (r.condition, r.seed) != dropped))
    for number in range(5):
        place = (names[-1 - number % 4], 5 - number % 5)
        yield 1, with_losses(study, {place: loss[place] * (1 - 10.0 ** -(2 * number))})
    for number in range(5):
        a, b = names[number % 4], names[(number + 1) % 4]
        swapped = {(a, s): loss[b, s] for s in range(1, 6)} | {(b, s): loss[a, s] for s in range(1, 6)}
        yield 10, with_losses(study, swapped)
    for number in range(5):
        rng = random.Random(number)  # each seed ran twice, the second time under one of nobody's
        second = {place: value + rng.uniform(-0.1, 0.1) for place, value in loss.items()}
        kept = {place: min(value, second[place]) for place, value in loss.items()}
        yield sum(kept[place] != loss[place] for place in loss), with_losses(study, kept)


def test_what_was_tampered_with_is_found_as_often_as_the_formula_says(sweep, truth):
    again = {(one.condition, one.seed): one for one in truth.replicates}
    settings, rng, found = read_settings(), random.Random(1), []
    for number, (num_wrong, study) in enumerate(tampered(truth)):
        plan = plan_rerun(bundle(study, sweep, f"{number}.zip"), sweep, NUM_DRAWN, settings)
        if num_wrong is None:
            assert len(plan.lacking) == 1 and len(plan.order) == 19
            continue
        assert plan.lacking == [] and len(plan.order) == 20
        num_found = 0
        for _ in range(NUM_DRAWS):
            drawn = replace(plan, order=rng.sample(plan.order, len(plan.order)))
            rows = compare(drawn, [again[one.condition, one.seed] for one in drawn.drawn])
            num_found += any(row.result == "differs" for row in rows)
        chance = 1 - hypergeom(20, num_wrong, NUM_DRAWN).pmf(0)
        found.append((num_wrong, num_found, chance))
        assert binom.ppf(0.0005, NUM_DRAWS, chance) <= num_found <= binom.ppf(0.9995, NUM_DRAWS, chance), found[-1]
    assert len(found) == 15 and {num_wrong for num_wrong, _, _ in found[:10]} == {1, 10}


def test_on_another_processor_the_objectives_must_lie_in_the_prediction_interval_of_their_seeds(sweep, truth):
    """By the textbook's formula: mean -+ t(.975, n - 1) s sqrt(1 + 1/n)."""
    elsewhere = replace(truth, replicates=tuple(replace(one, device="Another CPU") for one in truth.replicates))
    plan = plan_rerun(bundle(elsewhere, sweep), sweep, 20, read_settings())
    losses = truth.values("width=4", "loss")
    mean = sum(losses) / 5
    std = (sum((value - mean) ** 2 for value in losses) / 4) ** 0.5
    half = t.ppf(0.975, 4) * std * 1.2**0.5

    def rows(factor):
        moved = with_losses(truth, {("width=4", 1): mean + factor * half})
        again = {(one.condition, one.seed): one for one in moved.replicates}
        return compare(plan, [again[one.condition, one.seed] for one in plan.drawn])

    (within,) = (row for row in rows(0.99) if row.result != "same")
    assert (within.condition, within.seed, within.result, within.metric) == ("width=4", 1, "within", "loss")
    assert (within.low, within.high) == pytest.approx((mean - half, mean + half))
    assert within.why.startswith("another processor (Another CPU, here ")
    assert {row.result for row in rows(1.01)} == {"same", "within"}  # outside at 95 %, but there are two objectives
    assert [row.result for row in rows(20.0) if row.result != "same"] == ["differs"]


@pytest.mark.parametrize(("num_all", "num_drawn"), [(20, 5), (28, 22), (1000, 22), (3, 3), (7, 1)])
def test_the_most_that_can_be_wrong_is_the_last_that_the_draw_would_have_missed(num_all, num_drawn):
    most = most_wrong(num_all, num_drawn)
    assert hypergeom(num_all, most, num_drawn).pmf(0) > 0.1 >= hypergeom(num_all, most + 1, num_drawn).pmf(0)
    assert num_all != 1000 or most < 100  # 22 exclude that a tenth is wrong


def test_what_is_not_compared_bounds_nothing(sweep, truth):
    """Such as what diverges when it is trained again, and has a value all the same."""
    plan = plan_rerun(bundle(truth, sweep), sweep, 20, read_settings())
    again = [next(one for one in truth.replicates if one == written) for written in plan.drawn]
    assert any("None is wrong." in line for line in sentences(plan, compare(plan, again)))
    failed = replace(again[3], state="failed", error="DivergedError: The loss is nan.")
    for other in (failed, None):
        rows = compare(plan, [*again[:3], other, *again[4:]])
        assert rows[3].result == "not compared"
        said = " ".join(sentences(plan, rows))
        assert "confidence" not in said and "None is wrong" not in said
        assert "How many of the 20 are wrong at most is not known: 1 of those drawn did" in said


def test_what_is_not_reported_again_and_packages_of_another_replicate_are_no_proof(sweep, truth):
    first, *others = truth.replicates
    invented = replace(first, metrics={**first.metrics, "loss@oracle": 0.0})
    plan = plan_rerun(bundle(replace(truth, replicates=(invented, *others)), sweep), sweep, 20, read_settings())
    again = {(one.condition, one.seed): one for one in truth.replicates}
    found = [again[one.condition, one.seed] for one in plan.drawn]
    (row,) = (row for row in compare(plan, found) if row.result != "same")
    assert (row.result, row.why) == ("not compared", "loss@oracle: not reported again")
    moved = [replace(one, metrics={**one.metrics, "loss": one.metrics["loss"] + 1e-9}) for one in found]
    here = package_versions(sweep.trainable)
    for packages, result in (((here,), "differs"), (("torch==1.0", here), "within")):
        assert {row.result for row in compare(replace(plan, packages=packages), moved)} - {"not compared"} == {result}


def test_on_another_processor_seeds_without_a_spread_predict_nothing_unless_nothing_has_one(sweep, truth):
    flat = with_losses(truth, {("width=4", seed): 0.0 for seed in range(1, 6)})
    for elsewhere, result in ((flat, "not compared"), (flat.of_conditions({"width=4"}), "differs")):
        written = [replace(one, device="Another CPU") for one in elsewhere.replicates]
        plan = plan_rerun(
            bundle(replace(elsewhere, replicates=tuple(written)), sweep, f"{result}.zip"), sweep, 20, read_settings()
        )
        again = {(one.condition, one.seed): one for one in with_losses(flat, {("width=4", 1): 4e-4}).replicates}
        rows = compare(plan, [again[one.condition, one.seed] for one in plan.drawn])
        assert [row.result for row in rows if row.result != "same"] == [result]
    one_value = with_losses(truth, dict.fromkeys(((one.condition, one.seed) for one in truth.replicates), 1234567.8))
    written = [replace(one, device="Another CPU") for one in one_value.replicates]
    plan = plan_rerun(bundle(replace(one_value, replicates=tuple(written)), sweep, "c.zip"), sweep, 20, read_settings())
    rounded = with_losses(one_value, {("width=4", 1): 1234567.8000000003})
    again = {(one.condition, one.seed): one for one in rounded.replicates}
    rows = compare(plan, [again[one.condition, one.seed] for one in plan.drawn])
    assert {row.result for row in rows} == {"same", "within"}, "by rounding alone"


def call(*arguments):
    found = CliRunner().invoke(app, list(map(str, arguments)))
    return found.exit_code, found.stdout, found.stderr


def test_the_command_trains_what_it_draws_once_and_says_what_it_excludes(workplace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (workplace / "toy.py").write_text(PLAIN)
    run_quietly(sweep := find_sweep("toy.py:toy"))
    file = bundle(truth := load_study("toy"), sweep)
    code, out, err = call("verify", file, "--rerun", 2, "--sweep", "toy.py:toy", "--format", "json")
    assert code == 0, err
    first = json.loads(out)
    assert [row["result"] for row in first["rerun"]] == ["same", "same"] and first["lacking"] == []
    assert "2 of 6 replicates are trained again by the installed code" in " ".join(err.split())
    code, out, _ = call("verify", file, "--rerun", 6, "--sweep", "toy.py:toy", "--format", "json")
    assert code == 0
    assert json.loads(out)["rerun"][:2] == first["rerun"]  # the same draw, of which more is trained
    assert "None is wrong." in json.loads(out)["said"]

    one = truth.replicates[4]
    wrong = bundle(with_losses(truth, {(one.condition, one.seed): 0.5}), sweep, "wrong.zip")
    code, out, _ = call("verify", wrong, "--rerun", 6, "--sweep", "toy.py:toy")
    assert code == 1
    (row,) = (line for line in out.splitlines() if "differs" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")[:5]] == [
        one.condition,
        str(one.seed),
        "differs",
        "loss",
        "0.5",
    ]
    assert "1 cannot be what the bundle says." in out

    fewer = bundle(replace(truth, replicates=truth.replicates[1:]), sweep, "fewer.zip")
    code, out, _ = call("verify", fewer, "--rerun", 1, "--sweep", "toy.py:toy")
    assert code == 1
    assert "The sweep declares, and the bundle does not name: width=4 seed 1." in out
    assert call("clean", "--yes")[0] == 0
    assert list(Path("runs/reruns").iterdir()) == []
    for words, said in (
        (("verify", file, "--sweep", "toy.py:toy"), "--sweep says of what a bundle is for --rerun K"),
        (("verify", "toy", "--rerun", 1), "--rerun is of a bundle"),
        (("verify", file, "--rerun", 1, "--sweep", "asr.demo"), "must be a bundle of asr.demo, but is one of toy"),
    ):
        assert said in str(CliRunner().invoke(app, list(map(str, words))).exception)


@pytest.mark.slow
def test_code_that_has_changed_is_taken_from_git(sweep, workplace):
    def git(*words):
        options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        command = ["git", *options, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603

    git("init", "--quiet")
    git("add", "toy.py")
    git("commit", "--quiet", "--message", "The toy.")
    run_quietly(sweep)
    study = load_study("toy")
    file = bundle(study, sweep)
    (workplace / "toy.py").write_text(WIDE.replace("0.9 * loss", "0.8 * loss"))
    commit = git("rev-parse", "HEAD")
    code, out, err = call("verify", file, "--rerun", 1, "--sweep", "toy.py:toy", "--format", "json")
    assert code == 0, err
    assert f"by the sources of commit {commit[:12]}" in " ".join(err.split())
    assert [(row["result"], row["why"]) for row in json.loads(out)["rerun"]] == [("same", "")]
    (workplace / "runs" / "reruns").rename(workplace / "before")
    git("commit", "--quiet", "--message", "Another toy.", "toy.py")
    git("reset", "--quiet", "--hard", git("commit-tree", "HEAD^{tree}", "-m", "Without its past."))
    plan = plan_rerun(file, sweep, 1, read_settings())
    assert plan.commit == ""  # one that the sources here do not go back to is nobody's word
