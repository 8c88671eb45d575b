"""Training and testing of one recogniser, read from top to bottom."""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from trainables import checkpoint, distributed, rng
from trainables.asr import controller as controllers
from trainables.asr import cost, data
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Evaluation, Surprisal
from trainables.asr.controller import SurprisalFit
from trainables.asr.data import Example
from trainables.asr.network import Recogniser
from trainables.asr.recognition import FrozenParts, ctc_loss, load_ar, test
from trainables.errors import DivergedError
from trainables.trial import Trial


def fingerprint(config: AsrConfig) -> str:
    """Of the recordings and transcripts."""
    return data.fingerprint(config.data)


def selection(config: AsrConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises."""
    return {evaluation.name: f"valid_per@{evaluation.name}" for evaluation in config.evaluations}


def num_steps(config: AsrConfig) -> int:
    """The last step that `train` reports."""
    return config.training.num_epochs


def train(config: AsrConfig, trial: Trial) -> None:
    """Adam on the CTC loss; one step is one epoch, validated under every evaluation and reported with a checkpoint.

    Step 0 is the untrained model. The autoregressive model and the controller stay frozen.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the data cannot be read.
    """
    examples, device = data.load(config.data, config.ar.features), distributed.device()
    ar = load_ar(config, trial)
    rng.seed_everything(config.seed)
    model = Recogniser(config, len(examples.labels)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.training.learning_rate)
    rng.seed_everything(rng.derive(config.seed, "dropout", distributed.rank()))
    order = rng.generator(config.seed, "order")
    routing = rng.generator(config.seed, "routing", distributed.rank())
    first = 1
    if restored := trial.restore():
        state = checkpoint.load(restored)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rng.put_back_process(state["rng"], distributed.rank(), shared={"order": order}, own={"routing": routing})
        frozen, first = FrozenParts(ar, _fit_from(state)), state["epoch"] + 1
    else:
        frozen = FrozenParts(ar, _fit(config, ar, examples.train))
        metrics = _validate(config, model, frozen, examples.validation) | _fit_metrics(frozen.fit)
        trial.report(metrics | {"num_skipped": examples.num_skipped}, step=0)

    wrapped = distributed.wrap(model)
    for epoch in range(first, config.training.num_epochs + 1):
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * config.training.decay ** (epoch - 1)
        metrics = _train_epoch(config, wrapped, frozen, optimizer, examples.train, order, routing, epoch)
        metrics |= _validate(config, model, frozen, examples.validation)
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "fit": asdict(frozen.fit) if frozen.fit else {},
            "epoch": epoch,
            "rng": distributed.gather(rng.capture(order=order, routing=routing)),
        }
        with tempfile.TemporaryDirectory() as folder:
            trial.report(metrics, step=epoch, checkpoint=checkpoint.save(Path(folder) / "state.pt", state))


def evaluate(config: AsrConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """Reports error, cost and speed on the test set, and the error on the validation set, of a trained recogniser."""
    examples = data.load(config.data, config.ar.features)
    state = checkpoint.load(checkpoint_path)
    model = Recogniser(config, len(examples.labels)).to(distributed.device())
    model.load_state_dict(state["model"])
    frozen = FrozenParts(load_ar(config, trial), _fit_from(state))
    validation, _ = test(config, model, frozen, examples.validation, evaluation, config.decoding.validation)
    tally, frames_per_s = test(config, model, frozen, examples.test, evaluation, config.decoding.test)
    rate = tally.num_big / tally.num_frames
    metrics = {
        "per": tally.per,
        "macs_per_frame": tally.num_macs / tally.num_frames,
        "paper_flops_per_frame": cost.paper_flops_per_frame(config, len(examples.labels), rate),
        "routing_rate": rate,
        "eval_frames_per_s": frames_per_s,
        "valid_per": validation.per,
    }
    trial.report(metrics, step=state["epoch"])


def _train_epoch(
    config: AsrConfig,
    model: nn.Module,
    frozen: FrozenParts,
    optimizer: torch.optim.Optimizer,
    examples: Sequence[Example],
    order: torch.Generator,
    routing: torch.Generator,
    epoch: int,
) -> dict[str, float]:
    model.train()
    started, rank, num_processes = time.perf_counter(), distributed.rank(), distributed.world_size()
    loss_sum = norm_sum = num_frames = num_big = 0.0
    batches = data.bucketed(examples, config.training.batch_size, order)
    for number, whole in enumerate(batches, start=1):
        mine = whole[rank::num_processes]
        batch = data.collate(mine or whole[:1], distributed.device())
        features, p = frozen.see(config, batch)
        choose_big = controllers.draw(p, torch.rand(p.shape, generator=routing).to(p.device))
        nats = ctc_loss(model(features, batch.num_frames, choose_big), batch)
        loss = nats * (bool(mine) * num_processes / len(whole))
        if not math.isfinite(loss.item()):
            raise DivergedError(f"The loss is {loss.item()} at epoch {epoch}, batch {number}.")
        optimizer.zero_grad()
        loss.backward()
        norm_sum += float(nn.utils.clip_grad_norm_(model.parameters(), config.training.max_gradient_norm))
        optimizer.step()
        if mine:
            valid = torch.arange(p.shape[1]) < batch.num_frames[:, None]
            loss_sum, num_frames = loss_sum + nats.item(), num_frames + float(valid.sum())
            num_big += float(choose_big.cpu()[valid].sum())
    loss_sum, num_frames, num_big = distributed.sum_over_processes(loss_sum, num_frames, num_big)
    return {
        "train_loss_nats": loss_sum / len(examples),
        "train_routing_rate": num_big / num_frames,
        "train_frames_per_s": num_frames / (time.perf_counter() - started),
        "gradient_norm": norm_sum / len(batches),
    }


def _validate(
    config: AsrConfig, model: nn.Module, frozen: FrozenParts, examples: Sequence[Example]
) -> dict[str, float]:
    metrics = {}
    for evaluation in config.evaluations:
        tally, _ = test(config, model, frozen, examples, evaluation, config.decoding.validation)
        metrics[f"valid_per@{evaluation.name}"] = tally.per
        metrics[f"valid_loss_nats@{evaluation.name}"] = tally.loss_nats / tally.num_utterances
    return metrics


@torch.no_grad()
def _fit(config: AsrConfig, ar: AutoregressiveModel, examples: Sequence[Example]) -> SurprisalFit | None:
    """The controller's two scalars from the surprisal of every valid training frame."""
    if not isinstance(config.controller, Surprisal):
        return None
    found = []
    for group in data.bucketed(examples, batch_size=32):
        batch = data.collate(group, distributed.device())
        surprisals = surprisal(batch.frames, ar(batch.frames)[1]).cpu()
        found += [row[:length] for row, length in zip(surprisals, batch.num_frames.tolist(), strict=True)]
    return controllers.fit_surprisal(np.concatenate([row.numpy() for row in found]), config.controller)


def _fit_from(state: dict[str, Any]) -> SurprisalFit | None:
    return SurprisalFit(**state["fit"]) if state["fit"] else None


def _fit_metrics(fit: SurprisalFit | None) -> dict[str, float]:
    return {"controller_mean_p": fit.mean_p, "controller_var_p": fit.var_p} if fit else {}
