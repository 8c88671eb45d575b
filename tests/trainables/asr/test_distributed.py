"""Two processes over gloo compute what one computes: all that depends on a whole batch, without dropout and draws."""

from pathlib import Path

import pytest
import torch

from tests.trainables.asr.test_train import CONFIG
from tests.trainables.folder_trial import FolderTrial
from tests.trainables.processes import assert_same_reports, in_one_and_two, process_group
from trainables import checkpoint
from trainables.asr import pretrain, train
from trainables.asr.config import Evaluation, Learned, MaskedSelfAttention, Random

pytestmark = pytest.mark.slow

PLAIN = CONFIG.with_value("evaluations", (Evaluation(),)).with_value("network.dropout", 0.0)
ONE_TEST = PLAIN.with_value("data.num_test_utterances", 1)
CONFIGS = {
    "random": ONE_TEST.with_value("controller", Random(p_big=1.0)),
    "learned_corrected": PLAIN.with_value("controller", Learned(weight=50.0)),
    "learned_released": PLAIN.with_value("controller", Learned(penalty="released", weight=0.01)),
    "joint": PLAIN.with_value("controller", Random(p_big=1.0)).with_value("ar_loss_weight", 1e-3),
}
GRU = CONFIG.pretraining.with_value("dropout", 0.0)
PRETRAINING = CONFIG.pretraining.with_value("dropout", 0.0).with_value("encoder", MaskedSelfAttention(num_heads=3))


def run_all(rank: int, num_processes: int, folder: Path) -> None:
    """Every config one after the other; rank 0 keeps what it reports."""
    with process_group(rank, num_processes, folder):
        ar, gru = (FolderTrial(folder / f"{name}{rank}") for name in ("ar", "gru"))
        pretrain.train(PRETRAINING, ar)
        pretrain.train(GRU, gru)
        reports = {"pretraining": ar.reports, "pretraining of a GRU": gru.reports}
        for name, config in CONFIGS.items():
            config = config.with_value("ar", PRETRAINING)
            trial = FolderTrial(
                folder / f"{name}{rank}", folder / "ar0/3.pt" if num_processes == 1 else ar.folder / "3.pt"
            )
            train.train(config, trial)
            tested = FolderTrial(folder / f"{name}{rank}", trial.product)
            train.evaluate(config, trial.folder / "4.pt", config.evaluations[0], tested)
            reports[name] = trial.reports | {"test": tested.reports[4]}
        if rank == 0:
            checkpoint.save(folder / "reports.pt", reports)


def test_two_processes_report_and_learn_what_one_does(tmp_path_factory):
    folders = in_one_and_two(run_all, tmp_path_factory)
    for name in ("pretraining", "pretraining of a GRU", *CONFIGS):
        assert_same_reports(folders, name)
    for name, part in [(name, "recogniser") for name in CONFIGS] + [("joint", "ar"), ("gru", "model")]:
        last = "3.pt" if name == "gru" else "4.pt"
        one, two = (checkpoint.load(folder / f"{name}0" / last) for folder in folders)
        named = [{f"{part} of {name}": state[part]} for state in (two, one)]
        torch.testing.assert_close(*named, rtol=5e-3, atol=1e-4)
        assert [len(state["rng"]) for state in (one, two)] == [1, 2]
