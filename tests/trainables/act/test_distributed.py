"""Two processes over gloo learn and report what one does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.trainables.act.test_train import CONFIG
from tests.trainables.folder_trial import FolderTrial
from tests.trainables.processes import assert_same_reports, in_one_and_two, process_group
from trainables import checkpoint
from trainables.act import evaluation, train
from trainables.act.config import Fixed, Sort, Text

pytestmark = pytest.mark.slow

SHORT = CONFIG.with_value("training.num_iterations", 20).with_value("training.report_every", 10)
CONFIGS = {
    "budget": SHORT,
    "windows": SHORT.with_value("data", Sort(num_items=4)).with_value("training.truncate_steps", 2),
    "one_sequence": SHORT.with_value("training.batch_size", 1).with_value("num_validation_sequences", 1),
    "text": SHORT.with_value("data", Text(num_steps=9)).with_value("halting.max_updates", 9),
    "fixed": SHORT.with_value("halting", Fixed(num_updates=2)),
}


def run_all(rank: int, num_processes: int, folder: Path) -> None:
    """Every config one after the other; rank 0 keeps what it reports."""
    evaluation.MAX_SEQUENCES = 11 * num_processes  # several turns for each process
    with process_group(rank, num_processes, folder):
        reports = {}
        for name, config in CONFIGS.items():
            trial = FolderTrial(folder / f"{name}{rank}")
            train.train(config, trial)
            tested = FolderTrial(folder / f"{name}{rank}")
            train.evaluate(config, trial.folder / "20.pt", config.evaluations[0], tested)
            reports[name] = trial.reports | {"test": tested.reports[20]}
        if rank == 0:
            checkpoint.save(folder / "reports.pt", reports)


def test_two_processes_do_what_one_does(tmp_path_factory):
    folders = in_one_and_two(run_all, tmp_path_factory)
    for name in CONFIGS:
        assert_same_reports(folders, name)
        tables = [next((folder / f"{name}0").glob("*.csv")) for folder in folders]
        values = [np.genfromtxt(table, delimiter=",", skip_header=1) for table in tables]
        np.testing.assert_allclose(*values, rtol=2e-3, err_msg=name)
    one, two = ({name: checkpoint.load(folder / f"{name}0/20.pt")["network"] for name in CONFIGS} for folder in folders)
    torch.testing.assert_close(two, one, rtol=5e-3, atol=1e-4)
