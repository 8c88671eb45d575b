"""The recogniser as a trainable, read from top to bottom: what it reads, keeps and reports, how it trains and tests.

What needs torch is imported where training and testing begin: commands that only read a sweep load this module too, and
loading torch takes longer than all that they do.
"""

import importlib
import tempfile
from dataclasses import asdict
from pathlib import Path

from trainables import item_errors
from trainables.asr.config import AsrConfig, Budget, Evaluation, Surprisal
from trainables.asr.data.splits import audio_fingerprint, data_fingerprint
from trainables.asr.metrics import METRICS
from trainables.config import content_hash
from trainables.patience import is_exhausted
from trainables.trial import Trial

metrics = METRICS


def __getattr__(name: str) -> object:
    """What an audit asks, loaded when a command wants it: no part of the code that trains."""
    if name in ("examples", "predict", "promises"):
        return getattr(importlib.import_module(".predict", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def reads(config: AsrConfig) -> tuple[object, ...]:
    """The parts of `config` that decide the fingerprint."""
    return config.data, getattr(config.controller, "data", None)


def fingerprint(config: AsrConfig) -> str:
    """The hash of recordings and transcripts, and of the audio of the controller's fit where that is another."""
    own = data_fingerprint(config.data)
    if isinstance(config.controller, Surprisal | Budget) and config.controller.data is not None:
        other = config.controller.data
        return content_hash(own, audio_fingerprint(config.beside(other), config.spared(other)))
    return own


def selection(config: AsrConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises."""
    return {e.name: f"valid_per@{e.checkpoint_of or e.name}" for e in config.evaluations}


def num_steps(config: AsrConfig) -> int | None:
    """The last step that `train` reports; None with `patience`, which may end it before."""
    return config.training.num_epochs if config.training.patience is None else None


def train(config: AsrConfig, trial: Trial) -> None:
    """Adam on the CTC loss; one step is one epoch, reported with a checkpoint; validation is under every evaluation.

    Step 0 is the untrained model, which does not count for `patience`. The controller's fit stays as it is, and so does
    the autoregressive model unless `ar_loss_weight` trains it on; then the fit is made anew after every epoch.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the data cannot be read.
    """
    import torch

    from trainables import checkpoint, distributed, rng
    from trainables.asr import frozen
    from trainables.asr.controller_fit import all_fits, control, controllers_in_use, fit_metrics, restored_fits
    from trainables.asr.data.examples import load_examples
    from trainables.asr.epoch import train_epoch
    from trainables.asr.evaluation import validate
    from trainables.asr.recogniser import Recogniser, load_ar

    examples, device = load_examples(config.data, config.ar.features), distributed.device()
    ar = load_ar(config, trial)
    drops_out = config.ar_dropout == "released"  # then the autoregressive model says something else in every epoch
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
        recogniser.put_back(state)
        optimizer.load_state_dict(state["optimizer"])
        fits, first = all_fits(config, ar, examples, restored_fits(state)), state["epoch"] + 1
        rng.put_back_process(state["rng"], distributed.rank(), shared={"order": order}, own={"routing": routing})
        validated = state.get("validated", [])
    else:
        fits = all_fits(config, ar, examples)
        metrics = validate(recogniser, fits, examples, kept) | fit_metrics(config, fits)
        trial.report(metrics | {"num_skipped": examples.num_skipped}, step=0)

    wrapped = distributed.wrap(recogniser)
    for epoch in range(first, config.training.num_epochs + 1):
        if is_exhausted(config.training.patience, validated):
            break
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * config.training.decay ** (epoch - 1)
        working, kept_training = control(config, fits), None if drops_out else kept
        metrics = train_epoch(config, wrapped, working, optimizer, examples, kept_training, order, routing, epoch)
        if recogniser.trains_ar:
            fits = all_fits(config, ar, examples)
            metrics |= fit_metrics(config, fits)
        if config.training.is_validated(epoch):
            metrics |= validate(recogniser, fits, examples, kept)
            validated.append({metric: metrics[metric] for metric in selection(config).values()})
        state = recogniser.weights() | {
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
    from trainables import checkpoint, distributed
    from trainables.asr import figure, frozen, latency, released
    from trainables.asr.controller_fit import tested_control
    from trainables.asr.cost import runs_ar
    from trainables.asr.data.examples import load_examples
    from trainables.asr.evaluation import score, test_metrics, valid_metrics
    from trainables.asr.recogniser import Recogniser, load_ar

    examples = load_examples(config.data, config.ar.features)
    state = checkpoint.load(checkpoint_path)
    recogniser = Recogniser(config, len(examples.labels), load_ar(config, trial)).to(distributed.device())
    recogniser.put_back(state)
    working = tested_control(config, evaluation, state, recogniser.ar, examples)
    labels, key, decoding = examples.labels, (config.seed, evaluation.name), evaluation.decoding
    kept = frozen.keep_all(config, recogniser.ar, [working.controller], examples.validation)
    validation = score(recogniser, working, examples.validation, labels, key, config.validation_decoding, kept)
    results = score(recogniser, working, examples.test, labels, key, decoding)
    metrics = test_metrics(results, config, working, len(labels)) | valid_metrics(validation)
    metrics |= released.metrics(recogniser, working, examples.test_utterances, labels, key, decoding)
    metrics["batch_latency_ms"] = latency.batch_latency_ms(recogniser, working, examples.test, key)
    if runs_ar(config, working.controller):
        metrics["streaming_latency_ms"] = latency.streaming_latency_ms(recogniser.ar, working, examples.test[0].frames)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"utterance_{evaluation.name}.png"
        figure.draw_utterance(recogniser, working, examples.test[0], labels, key, decoding, path)
        speakers = {utterance.identity: utterance.speaker for utterance in examples.test_utterances}
        items = [
            item_errors.Item(o.identity, speakers[o.identity], o.edits.total, o.edits.num_labels)
            for o in results.outcomes
        ]
        errors = item_errors.write(items, Path(folder), f"per@{evaluation.name}")
        trial.report(metrics, step=state["epoch"], artifacts=[path, errors])
