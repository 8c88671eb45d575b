"""Two processes over gloo learn and report what one does."""

from pathlib import Path

import pytest
import torch

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.test_train import ENSEMBLE, RECODERS, config_for, write_text
from tests.trainables.processes import assert_same_reports, in_one_and_two, process_group
from trainables import checkpoint
from trainables.lm import passage, train
from trainables.lm.config import Evaluation, FiniteDifference, FixedStep, McDropout, Recoder

MODELS = {
    "plain": None,
    **RECODERS,
    "weight_masks": Recoder(signal=McDropout(num_samples=2, masks="weights"), step=FixedStep(size=0.5)),
    "directions": Recoder(step=FixedStep(size=0.5), gradient=FiniteDifference(num_directions=2)),
    "ensemble": ENSEMBLE,
}
BATCH_SIZE = 5
"""Streams: three for the first process, two for the second."""


def run_all(rank: int, num_processes: int, folder: Path) -> None:
    """Every model one after the other; rank 0 keeps what it reports."""
    passage.draw = lambda *_: []
    text = write_text(folder / f"text{rank}.txt", num_lines=30)
    with process_group(rank, num_processes, folder):
        reports = {}
        for name, recoder in MODELS.items():
            cfg = config_for(text, recoder, batch_size=BATCH_SIZE, num_epochs=1, reports_per_epoch=2)
            trial, tested = FolderTrial(folder / f"{name}{rank}"), FolderTrial(folder / f"{name}{rank}")
            train.train(cfg, trial)
            train.evaluate(cfg, trial.folder / "2.pt", Evaluation(batch_size=BATCH_SIZE), tested)
            reports[name] = trial.reports | {"test": tested.reports[2]}
            for row in reports[name].values():
                del row["peak_memory_mb"]  # of this process alone
        if rank == 0:
            checkpoint.save(folder / "reports.pt", reports)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    return in_one_and_two(run_all, tmp_path_factory)


@pytest.mark.parametrize("name", MODELS)
def test_two_processes_do_what_one_does(folders, name):
    assert_same_reports(folders, name)
    one, two = (checkpoint.load(folder / f"{name}0/2.pt") for folder in folders)
    torch.testing.assert_close(two["network"], one["network"], rtol=5e-3, atol=1e-4)
    torch.testing.assert_close(two["state"], one["state"], rtol=5e-3, atol=1e-4)
    assert one["state"].shape[2] == BATCH_SIZE
    assert one["state"].abs().amax((0, 1, 3)).min() > 0.01


def continue_in_other_processes(rank: int, num_processes: int, folder: Path) -> None:
    """From what one process left in the middle of an epoch."""
    text = write_text(folder / f"text{rank}.txt", num_lines=30)
    with process_group(rank, num_processes, folder):
        for name in ("surprisal", "variational"):
            cfg = config_for(text, RECODERS[name], batch_size=BATCH_SIZE, num_epochs=1, reports_per_epoch=2)
            trial = FolderTrial(folder / f"{name}{rank}")
            before = torch.load(folder.parent / "before" / f"{name}.pt")
            checkpoint.save(trial.folder / "1.pt", before)
            train.train(cfg, trial)
            assert list(trial.reports) == [2]


def test_two_processes_go_on_where_one_was_interrupted(folders, tmp_path):
    (tmp_path / "before").mkdir()
    for name in ("surprisal", "variational"):
        checkpoint.save(tmp_path / "before" / f"{name}.pt", checkpoint.load(folders[0] / f"{name}0/1.pt"))
    (tmp_path / "two").mkdir()
    torch.multiprocessing.spawn(continue_in_other_processes, (2, tmp_path / "two"), nprocs=2)
    for name in ("surprisal", "variational"):
        two, one = checkpoint.load(tmp_path / f"two/{name}0/2.pt"), checkpoint.load(folders[0] / f"{name}0/2.pt")
        assert two["losses"] == pytest.approx(one["losses"], rel=1e-4)
        torch.testing.assert_close(two["network"], one["network"], rtol=5e-3, atol=1e-4)
        torch.testing.assert_close(two["state"], one["state"], rtol=5e-3, atol=1e-4)
