"""Training and testing of one recogniser, read from top to bottom."""

import math
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainables import checkpoint, distributed, item_errors, rng
from trainables.asr import controller as controllers
from trainables.asr import figure, frozen, latency, released
from trainables.asr.config import AsrConfig, Evaluation, Learned
from trainables.asr.controller import Control
from trainables.asr.controller_fit import Fits, all_fits, control, controllers_in_use, missing_fits
from trainables.asr.cost import runs_ar, training_macs
from trainables.asr.ctc_loss import ctc_losses
from trainables.asr.data.batches import Batch, bucketed, collate
from trainables.asr.data.examples import Examples, load_examples
from trainables.asr.evaluation import Results, score, test_metrics
from trainables.asr.frozen import Kept
from trainables.asr.macs import part_macs
from trainables.asr.recogniser import Output, Recogniser, load_ar
from trainables.asr.train import selection
from trainables.conditional.surprisal_controller import SurprisalFit
from trainables.config import content_hash
from trainables.errors import DivergedError
from trainables.item_errors import Item
from trainables.patience import is_exhausted
from trainables.trial import Trial


def train(config: AsrConfig, trial: Trial) -> None:
    """Adam on the CTC loss; one step is one epoch, reported with a checkpoint; validation is under every evaluation.

    Step 0 is the untrained model, which does not count for `patience`. The controller's fit stays as it is, and so does
    the autoregressive model unless `ar_loss_weight` trains it on; then the fit is made anew after every epoch.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the data cannot be read.
    """
    examples, device = load_examples(config.data, config.ar.features), distributed.device()
    ar = load_ar(config, trial)
    drops_out = config.ar_dropout == "released"
    read_once = (examples.validation,) if drops_out else (examples.train, examples.validation)
    kept = frozen.keep_all(config, ar, controllers_in_use(config), *read_once)
    rng.seed_everything(config.seed)
    recogniser = Recogniser(config, len(examples.labels), ar).to(device)
    learns = [parameter for parameter in recogniser.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learns, lr=config.training.learning_rate)
    rng.seed_everything(rng.derive(config.seed, "dropout", distributed.rank()))
    order = rng.generator(config.seed, "order")
    routing = rng.generator(config.seed, "routing", distributed.rank())
    first, validated = 1, list[dict[str, float]]()
    if restored := trial.restore():
        state = checkpoint.load(restored)
        _put_back(recogniser, state)
        optimizer.load_state_dict(state["optimizer"])
        fits, first = all_fits(config, ar, examples, _fits_of(state)), state["epoch"] + 1
        rng.put_back_process(state["rng"], distributed.rank(), shared={"order": order}, own={"routing": routing})
        validated = state.get("validated", [])
    else:
        fits = all_fits(config, ar, examples)
        metrics = _validate(recogniser, fits, examples, kept) | _fit_metrics(config, fits)
        trial.report(metrics | {"num_skipped": examples.num_skipped}, step=0)

    wrapped = distributed.wrap(recogniser)
    for epoch in range(first, config.training.num_epochs + 1):
        if is_exhausted(config.training.patience, validated):
            break
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * config.training.decay ** (epoch - 1)
        working = control(config, fits)
        kept_training = None if drops_out else kept
        metrics = _train_epoch(config, wrapped, working, optimizer, examples, kept_training, order, routing, epoch)
        if recogniser.trains_ar:
            fits = all_fits(config, ar, examples)
            metrics |= _fit_metrics(config, fits)
        if config.training.is_validated(epoch):
            metrics |= _validate(recogniser, fits, examples, kept)
            validated.append({metric: metrics[metric] for metric in selection(config).values()})
        state = {
            "recogniser": recogniser.network.state_dict(),
            "ar": ar.state_dict() if recogniser.trains_ar else {},
            "optimizer": optimizer.state_dict(),
            "fits": {name: asdict(fit) for name, fit in fits.items()},
            "epoch": epoch,
            "validated": validated,
            "rng": distributed.gather(rng.capture(order=order, routing=routing)),
        }
        checkpoint.report(trial, metrics, epoch, state)


def evaluate(config: AsrConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """Reports error, cost and speed on the test set, and the error on the validation set, of a trained recogniser.

    A figure of the first test utterance is kept with them.
    """
    examples = load_examples(config.data, config.ar.features)
    state = checkpoint.load(checkpoint_path)
    recogniser = Recogniser(config, len(examples.labels), load_ar(config, trial)).to(distributed.device())
    _put_back(recogniser, state)
    fits = _fits_of(state)
    fits |= missing_fits(config, [evaluation.controller or config.controller], recogniser.ar, examples, fits)
    working, labels, key = control(config, fits, evaluation), examples.labels, (config.seed, evaluation.name)
    decoding = evaluation.decoding
    kept = frozen.keep_all(config, recogniser.ar, [working.controller], examples.validation)
    validation = score(recogniser, working, examples.validation, labels, key, config.validation_decoding, kept)
    results = score(recogniser, working, examples.test, labels, key, decoding)
    metrics = test_metrics(results, config, working, len(labels)) | _valid_metrics(validation)
    metrics |= released.metrics(recogniser, working, examples.test_utterances, labels, key, decoding)
    metrics["batch_latency_ms"] = latency.batch_latency_ms(recogniser, working, examples.test, key)
    if runs_ar(config, working.controller):
        metrics["streaming_latency_ms"] = latency.streaming_latency_ms(recogniser.ar, working, examples.test[0].frames)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"utterance_{evaluation.name}.png"
        figure.draw_utterance(recogniser, working, examples.test[0], labels, key, decoding, path)
        speakers = {utterance.identity: utterance.speaker for utterance in examples.test_utterances}
        items = [
            Item(one.identity, speakers[one.identity], one.edits.total, one.edits.num_labels)
            for one in results.outcomes
        ]
        errors = item_errors.write(items, Path(folder), f"per@{evaluation.name}")
        trial.report(metrics, step=state["epoch"], artifacts=[path, errors])


def _train_epoch(
    config: AsrConfig,
    model: nn.Module,
    working: Control,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    kept: Kept | None,
    order: torch.Generator,
    routing: torch.Generator,
    epoch: int,
) -> dict[str, float]:
    model.train()
    started, num_processes = time.perf_counter(), distributed.world_size()
    loss_sum = norm_sum = num_frames = num_big = 0.0
    batches = bucketed(examples.train, config.training.batch_size, order)
    for number, whole in enumerate(batches, start=1):
        mine = whole[distributed.share()]
        batch = collate(mine or whole[:1], distributed.device())
        uniform = torch.rand(batch.frames.shape[:2], generator=routing).to(batch.frames.device)
        output = model(batch.frames, batch.num_frames, working, uniform, frozen.pad(kept, batch))
        nats = ctc_losses(output.log_probs, batch.num_frames, batch.labels).sum()
        total = nats + _other_losses(config, output, batch, len(whole))
        loss = total * (bool(mine) * num_processes / len(whole))
        if not math.isfinite(loss.item()):
            raise DivergedError(f"The loss is {loss.item()} at epoch {epoch}, batch {number}.")
        optimizer.zero_grad()
        loss.backward()
        norm_sum += float(nn.utils.clip_grad_norm_(model.parameters(), config.training.max_gradient_norm))
        optimizer.step()
        if mine:
            loss_sum, num_frames = loss_sum + nats.item(), num_frames + float(batch.num_frames.sum())
            num_big += float(output.used_big.detach().sum())
    loss_sum, num_frames, num_big = distributed.sum_over_processes(loss_sum, num_frames, num_big)
    lengths = [len(example.frames) for example in examples.train]
    macs = training_macs(config, part_macs(config, len(examples.labels)), lengths, int(num_big))
    return {
        "train_loss_nats": loss_sum / len(examples.train),
        "train_routing_rate": num_big / num_frames,
        "train_macs_per_frame": macs / num_frames,
        "train_frames_per_s": num_frames / (time.perf_counter() - started),
        "gradient_norm": norm_sum / len(batches),
    }


def _other_losses(config: AsrConfig, output: Output, batch: Batch, batch_size: int) -> Float[Tensor, ""]:
    """What joins the summed CTC loss of a batch: the learned controller's penalty, the autoregressive model's loss."""
    total = output.log_probs.new_zeros(())
    if isinstance(config.controller, Learned):
        total = total + controllers.penalty(config.controller, output.used_big, batch.num_frames, batch_size)
    if config.ar_loss_weight is not None:
        total = total + config.ar_loss_weight * output.surprisals[batch.valid.to(output.surprisals.device)].sum()
    return total


def _validate(recogniser: Recogniser, fits: Fits, examples: Examples, kept: Kept | None) -> dict[str, float]:
    config = recogniser.config
    metrics: dict[str, float] = {}
    for evaluation in (one for one in config.evaluations if one.checkpoint_of is None):
        working, key = control(config, fits, evaluation), (config.seed, evaluation.name)
        found = score(recogniser, working, examples.validation, examples.labels, key, config.validation_decoding, kept)
        metrics |= {f"{name}@{evaluation.name}": value for name, value in _valid_metrics(found).items()}
        metrics[f"valid_loss_nats@{evaluation.name}"] = found.loss_nats
    return metrics


def _valid_metrics(validation: Results) -> dict[str, float]:
    return {"valid_per": validation.per, "valid_macs_per_frame": validation.macs_per_frame}


def _put_back(recogniser: Recogniser, state: dict[str, Any]) -> None:
    recogniser.network.load_state_dict(state["recogniser"])
    if recogniser.trains_ar:
        recogniser.ar.load_state_dict(state["ar"])


def _fits_of(state: dict[str, Any]) -> dict[str, SurprisalFit]:
    return {name: SurprisalFit(**fit) for name, fit in state["fits"].items()}


def _fit_metrics(config: AsrConfig, fits: Fits) -> dict[str, float]:
    """Of the controller of training, where it is fitted."""
    fit = fits.get(content_hash(config.controller))
    names = {"controller_w": "w", "controller_b": "b", "controller_mean_p": "mean_p", "controller_var_p": "var_p"}
    return {metric: getattr(fit, name) for metric, name in names.items()} if fit else {}
