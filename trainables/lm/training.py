"""Training and testing of one language model, with a recoder or without, read from top to bottom."""

import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainables import checkpoint, distributed, item_errors, rng
from trainables.errors import DivergedError, InputError
from trainables.item_errors import Item
from trainables.lm import corpus, cost, noise, sample_text
from trainables.lm.adaptation import adapt
from trainables.lm.bigram import bigram_perplexity
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig, Recoder, check_gate
from trainables.lm.cuda_graph import CudaGraph, Work
from trainables.lm.evaluation import Score, mine, num_mine, score
from trainables.lm.learning_rate import learning_rate
from trainables.lm.meters import Meters
from trainables.lm.network import AttachedRecoder, Network, Run, attach_recoder, members_around
from trainables.lm.noise import Noise
from trainables.lm.peak_memory import forget_peak, peak_memory_mb
from trainables.lm.streams import NO_TARGET, Streams, Window
from trainables.lm.train import SELECTION
from trainables.patience import is_exhausted
from trainables.trial import Trial


def train(config: LmConfig, trial: Trial) -> None:
    """Gradient descent on the mean of -log p; state runs on through the windows of an epoch.

    The untrained model is validated and reported as step 0, with the perplexity of a bigram, then `reports_per_epoch`
    times an epoch.

    Raises:
        DivergedError: when a loss or gradient is no finite number, or a perplexity.
        InputError: when the text cannot be read, or has fewer windows than reports in an epoch, or where the recoder's
            gate can never open.
    """
    text = corpus.load(config.data)
    _refuse_shut_gate(config.recoder, text.size)
    streams = Streams(text.train, config.training.batch_size, config.training.window)
    if streams.num_windows < config.training.reports_per_epoch:
        raise InputError(
            f"training.reports_per_epoch must be at most the {streams.num_windows} windows of an epoch, "
            f"but got {config.training.reports_per_epoch}."
        )
    rng.seed_everything(config.seed)
    forget_peak()
    network = Network(config, text.size).to(distributed.device())
    losses: list[float] = []
    state = network.zeros(num_mine(config.training.batch_size), None)
    if path := trial.restore():
        saved = checkpoint.load(path)
        network.load_state_dict(saved["network"])
        losses, state = saved["losses"], _my_streams(saved["state"])
    else:
        _report(config, network, text, losses, state, {"bigram_perplexity": bigram_perplexity(text)}, trial)
    training = config.training
    num_reports = training.num_epochs * training.reports_per_epoch
    while len(losses) <= num_reports and not is_exhausted(training.patience, [{SELECTION: one} for one in losses]):
        metrics, state = _train_part(config, network, streams, losses, state)
        _report(config, network, text, losses, state, metrics, trial)


def evaluate(config: LmConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """Reports perplexity, delta, cost and speed on the test text, and a sample of it word by word.

    Raises:
        InputError: where the recoder's gate can never open.
    """
    saved = checkpoint.load(checkpoint_path)
    forget_peak()
    text = corpus.load(config.data)
    network = Network(config, text.size).to(distributed.device())
    network.load_state_dict(saved["network"])
    attached = recoder_of(network, evaluation)
    _refuse_shut_gate(attached.recoder if attached else None, text.size)
    if evaluation.weights == "baseline":
        network, attached = on_baseline(network, attached, trial.prerequisite("baseline"), evaluation)
    config, seed = network.config, test_seed(network, evaluation)
    metrics, added_macs = {}, 0.0
    if isinstance(evaluation, AdaptedEvaluation):
        adapted = adapt(network, attached, evaluation.adaptation, text, seed)
        valid, test = adapted.valid, adapted.test
        metrics, added_macs = dict(adapted.metrics), adapted.added_macs_per_token
    else:
        valid = score(network, text.validation, attached, evaluation.batch_size, seed)
        test = score(network, text.test, attached, evaluation.batch_size, seed, measures_delta=True)
    recoder, share = attached.recoder if attached else None, test.share_recoded or 0.0
    metrics |= _valid_metrics(valid) | {
        "macs_per_token": cost.macs_per_token(config, recoder, text.size, share) + added_macs,
        "perplexity": test.perplexity,
        "test_loss_nats": test.loss_nats,
        "unknown_share": text.num_unknown["test"] / len(text.test),
        "num_not_finite": test.num_not_finite,
        "eval_tokens_per_s": test.tokens_per_s,
        "peak_memory_mb": peak_memory_mb(),
    }
    if test.before is not None and test.after is not None and test.raised is not None:
        metrics |= {"delta_before": test.before, "delta_after": test.after, "raised_share": test.raised}
    if test.share_recoded is not None:
        metrics |= {"share_recoded": test.share_recoded}
    metrics |= _spread_metrics(network)
    with tempfile.TemporaryDirectory() as folder:
        files: list[Path] = []
        if not isinstance(evaluation, AdaptedEvaluation):  # the sample text shows a model that does not move
            files = [*sample_text.draw(network, text, attached, evaluation.name, seed, Path(folder))]
            parts = [(f"part {number:03}", *part) for number, part in enumerate(test.streams, start=1)]
            items = [Item(name, name, nats, num_tokens) for name, nats, num_tokens in parts]
            files.append(item_errors.write(items, Path(folder), f"test_loss_nats@{evaluation.name}"))
        trial.report(metrics, step=len(saved["losses"]) - 1, artifacts=files)


def recoder_of(network: Network, evaluation: Evaluation) -> AttachedRecoder | None:
    """The recoder of an evaluation: the model's own, none, or one that the model was trained without."""
    if evaluation.recoder == "none":
        return None
    if evaluation.recoder == "own":
        return network.own
    return attach_recoder(network, evaluation.recoder, test_seed(network, evaluation))


def on_baseline(
    network: Network, attached: AttachedRecoder | None, checkpoint_path: Path, evaluation: Evaluation
) -> tuple[Network, AttachedRecoder | None]:
    """The baseline in a checkpoint, with the recoder and the trained step sizes of `network` (thesis section 5.3.5)."""
    baseline = Network(network.config.baseline, network.vocabulary_size).to(distributed.device())
    baseline.load_state_dict(checkpoint.load(checkpoint_path)["network"])
    if attached is None:
        return baseline, None
    members = members_around(baseline, attached.recoder, test_seed(network, evaluation))
    return baseline, replace(attached, members=members)


def test_seed(network: Network, evaluation: Evaluation) -> int:
    """Of what an evaluation draws; replicates draw each their own."""
    return rng.derive(network.config.seed, "evaluation", evaluation.seed)


def _refuse_shut_gate(recoder: Recoder | None, vocabulary_size: int) -> None:
    """Raises InputError for a threshold above all that delta can be."""
    if recoder:
        try:
            check_gate(recoder, vocabulary_size)
        except ValueError as error:
            raise InputError(f"{error}.") from error


def _train_part(
    config: LmConfig, network: Network, streams: Streams, losses: list[float], state: Tensor
) -> tuple[dict[str, float], Tensor]:
    """The windows up to the next report; returns what to report of them, and the state behind them."""
    training, done = config.training, len(losses) - 1
    epoch, part = divmod(done, training.reports_per_epoch)
    attached = network.own if epoch >= training.num_plain_epochs else None
    recoder = attached.recoder if attached else None
    rate = learning_rate(training, losses)
    optimizer = torch.optim.SGD(_parameter_groups(network, training.weight_decay), lr=rate)
    if part == 0:
        state = network.zeros(num_mine(training.batch_size), recoder)
    first, last = (streams.num_windows * i // training.reports_per_epoch for i in (part, part + 1))
    device, meters, started = distributed.device(), Meters(), time.perf_counter()
    num_asked = torch.ones((), device=device)
    is_fixed = not (recoder and recoder.skips_shut_rows)
    learn = CudaGraph(_learning(config, network, attached, streams, num_asked), list(network.parameters()), is_fixed)
    network.train()
    for index in range(first, last):
        whole = streams.window(index)
        num_tokens = int((whole.targets != NO_TARGET).sum())
        num_asked.fill_(num_tokens)
        generator = torch.Generator(device).manual_seed(rng.derive(config.seed, "train", epoch, index))
        shape = (whole.inputs.shape[0], whole.inputs.shape[1])
        drawn = noise.draw(config, recoder, shape, network.vocabulary_size, generator, is_training=True)
        window, drawn = mine(whole.to(device), drawn)
        run = learn(window, state, drawn)
        distributed.sum_gradients(network.parameters())
        norm = float(nn.utils.clip_grad_norm_(network.parameters(), training.max_gradient_norm))
        if not math.isfinite(norm):
            raise DivergedError(
                f"The loss's gradient is {norm} at window {index} of epoch {epoch + 1}; lower the learning rate."
            )
        optimizer.step()
        state = run.state
        meters.add(run, window.targets != NO_TARGET, num_tokens, norm)
    metrics = meters.metrics()
    metrics["train_tokens_per_s"] = meters.num_tokens / (time.perf_counter() - started)
    metrics["learning_rate"] = rate
    return metrics, state


def _learning(
    config: LmConfig, network: Network, attached: AttachedRecoder | None, streams: Streams, num_asked: Tensor
) -> Work:
    """Leaves the gradients of the mean loss over `num_asked` tokens, of all processes together, in the parameters."""
    is_half = config.training.precision == "bfloat16" and num_asked.is_cuda
    num_tokens, num_processes = streams.num_tokens, distributed.world_size()

    def learn(window: Window, state: Tensor, drawn: Noise) -> Run:
        with torch.autocast(num_asked.device.type, torch.bfloat16, enabled=is_half):
            run: Run = network(window, state, drawn, attached)
            total = run.loss.sum() / num_asked + network.anchor_penalty(num_tokens) / num_processes
        total.backward()
        return run

    return learn


def _parameter_groups(network: Network, weight_decay: float) -> list[dict[str, Any]]:
    """Step sizes do not decay."""
    steps = list(network.steps.parameters()) if network.steps else []
    others = [parameter for parameter in network.parameters() if all(parameter is not step for step in steps)]
    return [{"params": others, "weight_decay": weight_decay}, {"params": steps}]


def _report(
    config: LmConfig,
    network: Network,
    text: corpus.Corpus,
    losses: list[float],
    state: Tensor,
    metrics: dict[str, float],
    trial: Trial,
) -> None:
    """Validates, always with the model's recoder, appends the loss to `losses`, and reports with a checkpoint.

    Raises:
        DivergedError: if the perplexity is no finite number.
    """
    seed = rng.derive(config.seed, "validation")
    valid = score(network, text.validation, network.own, config.training.batch_size, seed)
    if not math.isfinite(valid.perplexity):
        raise DivergedError(f"The validation loss is {valid.loss_nats:g} nats a token at step {len(losses)}.")
    losses.append(valid.loss_nats)
    metrics |= (
        _valid_metrics(valid)
        | _spread_metrics(network)
        | {
            "peak_memory_mb": peak_memory_mb(),
            "train_macs_per_token": cost.training_macs_per_token(config, text.size, metrics.get("train_share_recoded")),
        }
    )
    saved = {
        "network": network.state_dict(),
        "losses": losses,
        "state": _all_streams(state, config.training.batch_size),
    }
    checkpoint.report(trial, metrics, len(losses) - 1, saved)


def _valid_metrics(valid: Score) -> dict[str, float]:
    return {"valid_loss_nats": valid.loss_nats, "valid_perplexity": valid.perplexity}


def _spread_metrics(network: Network) -> dict[str, float]:
    """Of an ensemble."""
    spread = network.member_spread()
    return {} if spread is None else {"member_spread": spread}


def _all_streams(state: Tensor, batch_size: int) -> Tensor:
    """The state of the streams of all processes in their order (A, copies, streams, H)."""
    parts = distributed.gather(state.cpu())
    num_copies = parts[0].shape[1] // len(range(0, batch_size, len(parts)))
    whole = state.new_empty((len(state), num_copies, batch_size, state.shape[-1]), device="cpu")
    for rank, part in enumerate(parts):
        rows = whole[:, :, rank :: len(parts)]
        rows.copy_(part.view_as(rows))
    return whole


def _my_streams(whole: Tensor) -> Tensor:
    """This process's share of that (A R H)."""
    return whole[:, :, distributed.share()].flatten(1, 2).to(distributed.device())
