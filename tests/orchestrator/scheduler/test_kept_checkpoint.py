"""The kept checkpoint of a replicate, against the step that its journal shows as the best."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.cli.checkpoint import checkpoint as copy
from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from ponderay import notebook
from tests.integration.sweeps import tiny
from tests.integration.tiny import TinyEvaluation
from tests.orchestrator.driven import drive, new_settings
from trainables import checkpoint
from trainables.errors import InputError

EVALUATIONS = (TinyEvaluation(), TinyEvaluation(name="worst", factor=-1.0))  # whose lowest value is the first
SWEEP = tiny({"a": {"evaluations": EVALUATIONS}, "bad": {"nan_at": 2}}, name="tiny.kept", seeds=(1, 2))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return drive(SWEEP, new_settings(tmp_path_factory.mktemp("kept")))


@pytest.fixture
def runs(done, workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_RUNS", str(done.settings.runs))
    return done.settings.runs


def best_epoch(runs, study, evaluation):
    key = study.of("a")[1].key
    records = ReplicateFolder(runs / "replicates" / "tiny.kept" / key, {}).records()
    values = {r["step"]: r["metrics"][f"valid_error@{evaluation}"] for r in records if r["kind"] == "metrics"}
    return min(values, key=values.get)


def test_each_evaluation_has_the_checkpoint_that_is_best_under_it(runs):
    study = notebook.load("tiny.kept")
    epochs = {name: best_epoch(runs, study, name) for name in ("plain", "worst")}
    assert epochs == {"plain": 4, "worst": 1}
    for name, epoch in epochs.items():
        assert checkpoint.load(notebook.checkpoint(study, "a", 2, name))["epoch"] == epoch
        assert study.of("a")[1].metrics[f"checkpoint_step@{name}"] == epoch
    assert notebook.checkpoint("tiny.kept", "a", 2) == notebook.checkpoint(study, "a", 2, "plain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("c", 1), r"tiny\.kept has no results of the condition 'c'; its conditions are a, bad\."),
        (("a", 3), r"'a' has no seed 3; there are 1, 2\."),
        (("a", 1, "dear"), r"'a' has no evaluation 'dear'; there are plain, worst\."),
        (("bad", 1), "must be complete, but 'bad' with seed 1 is failed; complete are the seeds none"),
    ],
)
def test_what_is_not_there_is_named(runs, arguments, message):
    with pytest.raises(InputError, match=message):
        notebook.checkpoint("tiny.kept", *arguments)


def test_copies_of_conditions_with_long_names_have_digits_in_place_of_the_end(workplace):
    long = [f"a{'ä' * 240}{end}" for end in "12"]
    drive(
        tiny({name: {"x": int(name[-1]) / 2} for name in long}, name="tiny.long", seeds=(1,)),
        new_settings(workplace / "runs"),
    )
    for name in long:
        copy("tiny.long", name, 1, Path("models"))
    first, second = sorted(path.name for path in Path("models").iterdir())
    assert first != second and first.startswith("tiny.long.aää") and first.endswith(".seed1.pt")


def test_runs_elsewhere_and_a_damaged_file_are_named(runs, workplace, monkeypatch):
    study = notebook.load("tiny.kept")
    path = notebook.checkpoint(study, "a", 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"checkpoint of 'a' with seed 1 in .* is gone or damaged"):
        notebook.checkpoint(study, "a", 1)
    path.write_bytes(whole)
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "elsewhere"))
    with pytest.raises(InputError, match="has no journal; name the PONDERAY_RUNS or PONDERAY_STORAGE"):
        notebook.checkpoint(study, "a", 1)


def test_one_that_lies_in_a_bucket_is_fetched(workplace, monkeypatch):
    import fsspec

    fsspec.filesystem("memory").store.clear()
    monkeypatch.setenv("PONDERAY_STORAGE", "memory://bucket/sweeps")
    settings = replace(new_settings(workplace), storage=read_settings().storage)
    drive(tiny({"a": {}}, name="tiny.kept", seeds=(1,), prerequisites=SWEEP.prerequisites), settings)
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "another"))
    monkeypatch.setenv("PONDERAY_TRACKING_URI", settings.tracking_uri)
    path = notebook.checkpoint("tiny.kept", "a", 1)
    assert path.is_relative_to(workplace / "another") and checkpoint.load(path)["epoch"] == 4
