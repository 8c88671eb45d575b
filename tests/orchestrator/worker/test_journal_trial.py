"""What a report may hold."""

import numpy as np
import pytest
import torch
from mlflow.utils.validation import _validate_metric_name

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.tracking.names import mean_curve, stored_name
from orchestrator.worker.journal_trial import EvaluationTrial, JournalTrial, best_product


@pytest.mark.parametrize("kind", [JournalTrial, EvaluationTrial])
@pytest.mark.parametrize("step", [6.0, True, np.int64(6), torch.tensor(6), "6", None])
def test_a_step_is_an_integer(work, kind, step):
    folder = ReplicateFolder(work.folder, {})
    sent = []
    with pytest.raises(ValueError, match=r"^`step` must be an int, but got .*; write `step=int\(step\)`\.$"):
        kind(folder, work, sent.append, is_writer=True).report({"loss": 1.0}, step=step)
    assert (folder.records(), sent) == ([], [])


def test_an_evaluation_that_reports_twice_is_refused(work):
    """The second report would take the place of the first."""
    trial = EvaluationTrial(ReplicateFolder(work.folder, {}), work, print, is_writer=True)
    trial.report({"loss": 1.0}, step=1)
    with pytest.raises(ValueError, match="`evaluate` must report once under each evaluation; put all its metrics"):
        trial.report({"per": 1.0}, step=1)


@pytest.mark.parametrize("kind", [JournalTrial, EvaluationTrial])
def test_two_artifacts_of_one_name_are_refused(work, kind, tmp_path):
    """One would take the place of the other."""
    files = [tmp_path / part / "plot.png" for part in ("train", "test")]
    for file in files:
        file.parent.mkdir()
        file.write_text(str(file))
    trial = kind(ReplicateFolder(work.folder, {}), work, print, is_writer=True)
    with pytest.raises(ValueError, match=r"must have different names, but two are 'plot\.png'; rename one\.$"):
        trial.report({"loss": 1.0}, step=1, artifacts=files)
    trial.report({"loss": 1.0}, step=2, artifacts=[files[0], files[0]])  # the same one twice is one


def test_what_a_report_may_hold_is_read_back_as_it_was_written(work):
    folder = ReplicateFolder(work.folder, {})
    values = {"a": np.float32(1.5), "b": torch.tensor(2), "c": True, "d": float("inf"), "e": np.int64(3)}
    JournalTrial(folder, work, lambda record: None, is_writer=True).report(values, step=6)
    (found,) = folder.records()
    assert found["metrics"] == {"a": 1.5, "b": 2.0, "c": 1.0, "d": float("inf"), "e": 3.0}
    assert folder.damage() == ""


def test_a_prerequisite_whose_journal_does_not_say_complete_may_come_back(work):
    """An OSError: its dependants are tried again, as it is no fault of theirs."""
    with pytest.raises(OSError, match="does not say that it is complete"):
        best_product(work.folder)
    folder = ReplicateFolder(work.folder, {})
    folder.append({"kind": "state", "state": "complete", "attempt": "a", "products": {"best": "step_000001.0123.pt"}})
    with pytest.raises(OSError, match="is gone or damaged"):
        best_product(work.folder)


@pytest.mark.parametrize("kind", [JournalTrial, EvaluationTrial])
@pytest.mark.parametrize(
    "name", ["acc%", "loss//x", "/loss", "loss/", "./x", "a/../b", "a@", "@a", "", "x\n", "x" * 151]
)
def test_a_metrics_name_that_mlflow_refuses_is_refused_at_once(work, kind, name):
    """Else the store would refuse the journal at every run."""
    with pytest.raises(ValueError, match=r"^A metric's name must have"):
        kind(ReplicateFolder(work.folder, {}), work, print, is_writer=True).report({name: 1.0}, step=1)


@pytest.mark.parametrize("name", ["loss", "per: x - y/z.w", "a@b", "ähnlich", "x" * 150])
def test_a_metrics_name_that_is_taken_mlflow_takes_too(work, name):
    JournalTrial(ReplicateFolder(work.folder, {}), work, lambda record: None, is_writer=True).report({name: 1}, step=1)
    _validate_metric_name(stored_name(name))
    _validate_metric_name(mean_curve(f"{name}@{'e' * 50}", 10_000))
