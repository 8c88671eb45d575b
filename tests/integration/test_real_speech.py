"""Shipped sweeps on real recordings, at their smoke sizes, without Ray."""

from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.run import run_here
from search_spaces.asr_sizes import MINI_LIBRISPEECH, TIMIT, base
from search_spaces.find import find_sweep
from tests.trainables.folder_trial import FolderTrial
from trainables.asr import pretrain
from trainables.asr.config import Surprisal
from trainables.asr.controller_fit import missing_fits
from trainables.asr.data.examples import load_examples
from trainables.asr.recogniser import load_ar
from trainables.config import content_hash


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("task", [MINI_LIBRISPEECH, TIMIT], ids=lambda task: task.title)
def test_the_converged_fit_reaches_its_targets_on_real_speech(tmp_path, real_data, task):
    config = base(task, "smoke")
    pretrain.train(config.pretraining, FolderTrial(tmp_path))
    examples = load_examples(config.data, config.ar.features)
    ar = load_ar(config, FolderTrial(tmp_path, tmp_path / "2.pt"))
    for mu, sigma2 in ((0.5, 0.04), (0.65, 0.04), (0.2, 0.02)):
        controller = Surprisal(mu=mu, sigma2=sigma2)
        fit = missing_fits(config, [controller], ar, examples, {})[content_hash(controller)]
        assert fit.mean_p == pytest.approx(mu, abs=0.01)
        assert fit.var_p == pytest.approx(sigma2, abs=0.005)


@pytest.mark.slow
@pytest.mark.data
def test_a_recogniser_learns_from_real_speech_and_is_tested_on_other_speakers(workplace, real_data):
    """On utterances of known words alone, for which its few epochs suffice."""
    known = find_sweep("asr.laptop_librispeech", smoke=True).only("surprisal", 1)
    sweep = known.with_values({"data.phones": "dictionary"})
    (replicate,) = run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates
    assert replicate.state == "complete"
    folder = ReplicateFolder(workplace / "runs/replicates" / sweep.name / replicate.key, {})
    untrained = next(r for r in folder.records() if r["kind"] == "metrics" and r["step"] == 0)
    assert replicate.metrics["valid_per@stochastic"] < 0.95 * untrained["metrics"]["valid_per@stochastic"]
    assert replicate.metrics["per@stochastic"] < 0.95
    assert 0.3 < replicate.metrics["routing_rate@stochastic"] < 0.7


IN_CI = ("asr.table2_timit", "asr.budget", "asr.ar_encoder", "asr.joint_training")
STUDIES = [
    ("asr.table2_timit", "learned_released"),
    ("asr.table2_mini_librispeech", "learned"),
    ("asr.ablation_timit", "no_ar,surprisal"),
    ("asr.model1", "always_big"),
    ("asr.model2_mini_librispeech", "ar,random"),
    ("asr.model3", "ar,surprisal"),
    ("asr.controller_bias", "surprisal"),
    ("asr.deterministic_timit", "train_deterministic"),
    ("asr.lambda_grid_timit", "corrected,lambda=1000"),
    ("asr.ar_corpus_timit", "larger_corpus,surprisal"),
    ("asr.ar_corpus", "larger_corpus,surprisal"),
    ("asr.budget", "budget_1.7e05"),
    ("asr.ar_encoder", "attention,surprisal"),
    ("asr.joint_training", "joint,ar_loss_weight=0.001"),
    ("asr.table2_converged", "surprisal"),
    ("asr.model3_converged", "random"),
    ("asr.confirm_model3", "surprisal"),
]


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory) -> Path:
    """Where sweeps find the autoregressive models of each other."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "condition"),
    [pytest.param(*one, marks=() if one[0] in IN_CI else pytest.mark.long) for one in STUDIES],
)
def test_a_replicate_of_every_study_runs_on_real_speech(
    workplace, real_data, shared_runs, monkeypatch, name, condition
):
    monkeypatch.setenv("PONDERAY_RUNS", str(shared_runs / "runs"))
    monkeypatch.setenv("PONDERAY_CACHE", str(shared_runs / "cache"))
    sweep = find_sweep(name, smoke=True).only(condition, 1)
    (replicate,) = run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates
    assert replicate.state == "complete", replicate.error
    evaluations = [one.name for one in sweep.config(sweep.conditions[0], 1).evaluations]
    for evaluation in evaluations:
        assert 0 < replicate.metrics[f"per@{evaluation}"] < 1.5
        assert replicate.metrics[f"macs_per_frame@{evaluation}"] > 0
    if name == "asr.controller_bias":
        rates = [replicate.metrics[f"routing_rate@{evaluation}"] for evaluation in evaluations]
        sampling_noise = 0.02  # each evaluation has draws of its own
        assert len(rates) == 10 and rates[-1] > 0.95
        assert all(after > before - sampling_noise for before, after in pairwise(rates))
    if name == "asr.budget":
        assert replicate.metrics["macs_per_frame@stochastic"] == pytest.approx(170e3, rel=0.05)


@pytest.mark.slow
@pytest.mark.data
def test_an_autoregressive_model_alone_is_a_study_whose_result_is_its_best_epoch_beside_the_floors(
    workplace, real_data
):
    sweep = find_sweep("asr.ar_converged", smoke=True).only("dropout=0,decay=0.95", 1)
    (replicate,) = run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates
    assert replicate.state == "complete", replicate.error
    metrics = replicate.metrics
    records = ReplicateFolder(workplace / "runs/replicates" / sweep.name / replicate.key, {}).records()
    reported = [r["metrics"]["valid_surprisal_nats"] for r in records if r["kind"] == "metrics" and r["step"]]
    assert metrics["valid_surprisal_nats@test"] == pytest.approx(min(reported), rel=1e-9)
    assert [r["kind"] for r in records if r["kind"] == "trained"] == ["trained"]
    for name in ("repeated_frame_nats", "linear_2_frames_nats", "linear_4_frames_nats"):
        assert metrics[f"{name}@test"] == metrics[name] > 0
