"""Two processes over gloo learn and report what one does."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import multiprocessing

from tests.trainables.folder_trial import FolderTrial
from tests.trainables.lm.small_runs import ENSEMBLE, RECODERS, config_for, write_text
from tests.trainables.lm.test_network import SIGNALS, B, V, case, own
from tests.trainables.processes import assert_same_reports, process_group
from trainables import checkpoint, distributed
from trainables.lm import corpus, epoch_part, evaluation, sample_text, train
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.config import AdaptedEvaluation, Evaluation, Recoder
from trainables.lm.gate_config import Chance
from trainables.lm.network import Network
from trainables.lm.step_config import FixedStep
from trainables.lm.streams import Streams

MODELS = RECODERS | {"ensemble": ENSEMBLE}
GONE_ON = ("surprisal", "variational")
"""Which are also interrupted in one process, within an epoch, and go on in two."""
ADAPTED = {"surprisal": DynamicEvaluation(rates=(0.01,), decays=(0.1,)), "mc_dropout": Cache()}
"""Which are tested so as well: one process reads the one stream, and both the training text."""
BATCH_SIZE = 5
"""Streams: three for the first process, two for the second."""


def run_all(rank: int, num_processes: int, folder: Path, other: Path | None = None) -> None:
    """Every model one after the other; rank 0 keeps what it reports. In `other` one process has done the same."""
    text = write_text(folder / f"text{rank}.txt", num_lines=20)
    with pytest.MonkeyPatch.context() as patch, process_group(rank, num_processes, folder):
        patch.setattr(sample_text, "draw", lambda *_: [])
        reports = {}
        for name, recoder in MODELS.items():
            cfg = config_for(text, recoder, batch_size=BATCH_SIZE, num_epochs=1, reports_per_epoch=2)
            trial, tested = FolderTrial(folder / f"{name}{rank}"), FolderTrial(folder / f"{name}{rank}")
            train.train(cfg, trial)
            train.evaluate(cfg, trial.folder / "2.pt", Evaluation(batch_size=BATCH_SIZE), tested)
            reports[name] = trial.reports | {"test": tested.reports[2]}
            if name in ADAPTED:
                adapted = FolderTrial(folder / f"{name}{rank}")
                train.evaluate(cfg, trial.folder / "2.pt", AdaptedEvaluation(adaptation=ADAPTED[name]), adapted)
                reports[name]["adapted"] = adapted.reports[2]
            for row in reports[name].values():
                del row["peak_memory_mb"]  # of this process alone
            if other and name in GONE_ON:
                resumed = FolderTrial(folder / f"{name}_resumed{rank}")
                checkpoint.save(resumed.folder / "1.pt", checkpoint.load(other / f"{name}0/1.pt"))
                train.train(cfg, resumed)
        if rank == 0:
            checkpoint.save(folder / "reports.pt", reports)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[Path, Path]:
    """Of one process, which is this one, and of two."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    run_all(0, 1, one)
    multiprocessing.spawn(run_all, (2, two, one), nprocs=2)
    return one, two


def assert_same_states(one: Path, two: Path) -> None:
    first, second = checkpoint.load(one), checkpoint.load(two)
    for part in ("network", "state", "losses"):
        torch.testing.assert_close(second[part], first[part], rtol=5e-3, atol=1e-4)
    assert first["state"].shape[2] == BATCH_SIZE
    assert first["state"].abs().amax((0, 1, 3)).min() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_do_what_one_does(folders, name):
    assert_same_reports(folders, name)
    assert_same_states(*(folder / f"{name}0/2.pt" for folder in folders))


@pytest.mark.slow
@pytest.mark.parametrize("name", GONE_ON)
def test_two_processes_go_on_where_one_was_interrupted(folders, name):
    assert_same_states(folders[0] / f"{name}0/2.pt", folders[1] / f"{name}_resumed0/2.pt")


@pytest.mark.parametrize("gradient", ["closed_form", "finite_difference"])
@pytest.mark.parametrize("name", [None, *(name for name in SIGNALS if name != "ensemble_released")])
def test_streams_shared_out_with_their_noise_are_read_as_in_one_batch(name, gradient, monkeypatch):
    """In a released ensemble the rows of a batch are not independent."""
    recoder = None
    if name:
        recoder = Recoder(signal=SIGNALS[name], step=FixedStep(size=0.5), gate=Chance(), gradient={"kind": gradient})
    network, window, state, drawn = case(recoder)
    attached = own(network, recoder) if recoder else None
    whole = network(window, state, drawn, attached)
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        mine, my_noise = evaluation.mine(window, drawn)
        rows = slice(rank, None, 2)
        my_state = state.unflatten(1, (-1, B))[:, :, rows].flatten(1, 2)
        equipped = attached
        if attached and attached.supervision:
            told = attached.supervision
            equipped = replace(attached, supervision=replace(told, labels=told.labels[rows]))
        run = network(mine, my_state, my_noise, equipped)
        assert mine.inputs.shape[1] == evaluation.num_mine(B) == 2 - rank
        torch.testing.assert_close(run.loss, whole.loss[:, rows])
        torch.testing.assert_close(run.state, whole.state.unflatten(1, (-1, B))[:, :, rows].flatten(1, 2))


@pytest.fixture
def second_of_two(monkeypatch):
    """Sums and collections are of this process alone."""
    monkeypatch.setattr(distributed, "rank", lambda: 1)
    monkeypatch.setattr(distributed, "world_size", lambda: 2)


@pytest.mark.parametrize("name", [None, *SIGNALS])
def test_a_process_without_a_stream_adds_nothing_to_a_test(second_of_two, name):
    network, *_ = case(Recoder(signal=SIGNALS[name]) if name else None)
    score = evaluation.score(network, torch.randint(V, (30,)), network.own, 1, 1, measures_delta=True)
    assert (score.loss_nats, score.num_not_finite, score.before) == (0, 0, None)


@pytest.mark.parametrize("gradient", ["finite_difference", "second_order"])
def test_a_process_without_a_stream_adds_nothing_with_other_gradients(second_of_two, gradient):
    network, *_ = case(Recoder(gradient={"kind": gradient}, step={"kind": "lipschitz"}))
    score = evaluation.score(network, torch.randint(V, (30,)), network.own, 1, 1, measures_delta=True)
    assert (score.loss_nats, score.num_not_finite, score.before) == (0, 0, None)


@pytest.mark.parametrize("copies", [1, 3])
def test_states_of_all_streams_are_put_together_where_a_process_has_none(second_of_two, monkeypatch, copies):
    only = torch.randn(4, copies, 1, 8)
    monkeypatch.setattr(distributed, "gather", lambda mine: [only, mine])
    whole = epoch_part.all_streams(torch.zeros(4, 0, 8), 1)
    assert torch.equal(whole, only)
    assert epoch_part.my_streams(whole).shape == (4, 0, 8)


@pytest.mark.parametrize("name", ["plain", *MODELS])
def test_a_process_without_a_stream_trains_along(second_of_two, tmp_path, name):
    """Its share of every sum is 0, and its weights move only with those that the others send."""
    cfg = config_for(write_text(tmp_path / "text.txt", num_lines=20), MODELS.get(name), batch_size=1, window=50)
    cfg = cfg.with_value("recoder.signal.pull", 0) if name == "ensemble" else cfg
    streams = Streams(corpus.load(cfg.data).train, 1, 50)
    network = Network(cfg, corpus.load(cfg.data).size)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    metrics, state = epoch_part.train_part(cfg, network, streams, [5.0], network.zeros(0, None))
    assert (metrics["train_loss_nats"], metrics["gradient_norm"]) == (0, 0)
    assert state.numel() == 0
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())
