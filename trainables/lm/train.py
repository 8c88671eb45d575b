"""The language model as a trainable, from top to bottom: what it reads, keeps and reports, how it trains and tests.

What needs torch is imported where training and testing begin: commands that only read a sweep load this module too, and
loading torch takes longer than all that they do.
"""

import importlib
import math
import tempfile
from pathlib import Path

from trainables import item_errors
from trainables.errors import DivergedError, InputError
from trainables.lm import numbered_text
from trainables.lm.config import AdaptedEvaluation, Evaluation, LmConfig, Recoder, check_gate
from trainables.lm.metrics import METRICS
from trainables.patience import is_exhausted
from trainables.trial import Trial

SELECTION = "valid_loss_nats"
"""The metric whose lowest value marks the checkpoint to keep."""

metrics = METRICS


def reads(config: LmConfig) -> object:
    """The part of `config` that decides the fingerprint."""
    return config.data


def __getattr__(name: str) -> object:
    """The `analyses`, and what an audit asks, loaded when a command wants them: no part of the code that trains."""
    if name == "analyses":
        return importlib.import_module(".analysis.questions", __package__).ANALYSES
    if name in ("examples", "predict", "promises"):
        return getattr(importlib.import_module(".predict", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def fingerprint(config: LmConfig) -> str:
    """The hash of the text."""
    return numbered_text.fingerprint(config.data)


def selection(config: LmConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises.

    It is the same for all: validation with the model's own recoder. With every other recoder that a baseline is tested
    with, validation would cost many times the training.
    """
    return {evaluation.name: SELECTION for evaluation in config.evaluations}


def num_steps(config: LmConfig) -> int | None:
    """The last step that `train` reports: a step is one validation; None with `patience`, which may end it before."""
    if config.training.patience is not None:
        return None
    return config.training.num_epochs * config.training.reports_per_epoch


def train(config: LmConfig, trial: Trial) -> None:
    """Gradient descent on the mean of -log p; state runs on through the windows of an epoch.

    The untrained model is validated and reported as step 0, with the perplexity of a bigram, then `reports_per_epoch`
    times an epoch; always with the model's own recoder.

    Raises:
        DivergedError: when a loss or gradient is no finite number, or a perplexity.
        InputError: when the text cannot be read, or has fewer windows than reports in an epoch, or where the recoder's
            gate can never open.
    """
    from trainables import checkpoint, distributed, rng
    from trainables.lm import corpus, cost
    from trainables.lm.bigram import bigram_perplexity
    from trainables.lm.epoch_part import all_streams, my_streams, train_part
    from trainables.lm.evaluation import num_mine, score, valid_metrics
    from trainables.lm.network import Network
    from trainables.lm.peak_memory import forget_peak, peak_memory_mb
    from trainables.lm.streams import Streams

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
        losses, state = saved["losses"], my_streams(saved["state"])
    training = config.training
    num_reports = training.num_epochs * training.reports_per_epoch
    while len(losses) <= num_reports and not is_exhausted(training.patience, [{SELECTION: loss} for loss in losses]):
        if losses:
            metrics, state = train_part(config, network, streams, losses, state)
        else:  # the untrained model
            metrics = {"bigram_perplexity": bigram_perplexity(text)}
        seed = rng.derive(config.seed, "validation")
        valid = score(network, text.validation, network.own, training.batch_size, seed)
        if not math.isfinite(valid.perplexity):
            raise DivergedError(f"The validation loss is {valid.loss_nats:g} nats a token at step {len(losses)}.")
        losses.append(valid.loss_nats)
        metrics |= valid_metrics(network, valid) | {
            "peak_memory_mb": peak_memory_mb(),
            "train_macs_per_token": cost.training_macs_per_token(config, text.size, metrics.get("train_share_recoded")),
        }
        whole_state = all_streams(state, training.batch_size)
        saved = {"network": network.state_dict(), "losses": losses, "state": whole_state}
        checkpoint.report(trial, metrics, len(losses) - 1, saved)


def evaluate(config: LmConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """Reports perplexity, delta, cost and speed on the test text, and a sample of it word by word.

    Raises:
        InputError: where the recoder's gate can never open.
    """
    from trainables import checkpoint, distributed
    from trainables.lm import corpus, cost, sample_text
    from trainables.lm.adaptation import adapt
    from trainables.lm.evaluation import on_baseline, recoder_of, score, test_seed, valid_metrics
    from trainables.lm.network import Network
    from trainables.lm.peak_memory import forget_peak, peak_memory_mb

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
    metrics |= valid_metrics(network, valid) | {
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
    with tempfile.TemporaryDirectory() as folder:
        files: list[Path] = []
        if not isinstance(evaluation, AdaptedEvaluation):  # the sample text shows a model that does not move
            files = [*sample_text.draw(network, text, attached, evaluation.name, seed, Path(folder))]
            parts = [(f"part {number:03}", *part) for number, part in enumerate(test.streams, start=1)]
            items = [item_errors.Item(name, name, nats, num_tokens) for name, nats, num_tokens in parts]
            files.append(item_errors.write(items, Path(folder), f"test_loss_nats@{evaluation.name}"))
        trial.report(metrics, step=len(saved["losses"]) - 1, artifacts=files)


def _refuse_shut_gate(recoder: Recoder | None, vocabulary_size: int) -> None:
    """Raises InputError for a threshold above all that delta can be."""
    if recoder:
        try:
            check_gate(recoder, vocabulary_size)
        except ValueError as error:
            raise InputError(f"{error}.") from error
