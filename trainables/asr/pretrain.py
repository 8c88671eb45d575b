"""Pretraining of the autoregressive model, read from top to bottom: a trainable whose product other replicates use.

What needs torch is imported where training and testing begin, as in `train`.
"""

import hashlib
from pathlib import Path

from trainables.asr.config import Pretraining
from trainables.asr.data.config import Data
from trainables.asr.data.splits import audio_fingerprint
from trainables.asr.metrics import METRICS
from trainables.config import content_hash
from trainables.errors import InputError
from trainables.patience import is_exhausted
from trainables.trial import Trial

metrics = METRICS

SELECTION = "valid_mse"
"""The metric whose lowest value marks the checkpoint to keep."""


def reads(config: Pretraining) -> tuple[object, ...]:
    """The parts of `config` that decide the fingerprint."""
    return config.data, config.spared, config.weights


def fingerprint(config: Pretraining) -> str:
    """The hash of the audio that the model learns from, and of the bytes of its weights, where they are given.

    Raises:
        InputError: if audio or weights cannot be read.
    """
    audio = audio_fingerprint(data_of(config), config.spared)
    if config.weights is None:
        return audio
    try:
        with config.weights.open("rb") as file:
            return content_hash(audio, hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise InputError(f"{config.weights} cannot be read: {error.strerror}; correct `ar.weights`.") from None


def selection(config: Pretraining) -> dict[str, str]:
    """Names of the checkpoints to keep, each with the metric that it minimises."""
    return {} if config.weights else {"best": SELECTION}


def num_steps(config: Pretraining) -> int | None:
    """The last step that `train` reports: 0 where weights are given; None with `patience`, which may end it before."""
    if config.weights is not None:
        return 0
    return config.training.num_epochs if config.training.patience is None else None


def data_of(config: Pretraining) -> Data:
    """The audio of a pretraining that stands alone.

    Raises:
        InputError: if it names none.
    """
    if config.data is None:
        raise InputError("`data` of a pretraining that stands alone must be given, but got None.")
    return config.data


def train(config: Pretraining, trial: Trial) -> None:
    """Adam on the mean squared error of the next frame; one step is one epoch, reported with a checkpoint.

    Step 0 is the untrained model, reported with the floors; it does not count for `patience`.

    Where the config names `weights`, they are read and reported as step 0, and nothing is trained.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the audio cannot be read, or the weights are not those of such a model.
    """
    import torch

    from trainables import checkpoint, distributed, rng
    from trainables.asr import released_weights
    from trainables.asr.autoregressive import AutoregressiveModel
    from trainables.asr.data.examples import load_audio
    from trainables.asr.floors import floors, mean_frame
    from trainables.asr.next_frame import train_epoch, validate

    if config.weights is not None:
        weights = released_weights.read(config.weights, config)
        checkpoint.report(trial, {}, 0, {"model": weights, "epoch": 0})
        return
    examples, device = load_audio(data_of(config), config.features, config.spared), distributed.device()
    rng.seed_everything(config.seed)
    model = AutoregressiveModel(config).to(device)
    if config.start == "data_mean":
        model.start_from(mean_frame(examples.train).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.training.learning_rate)
    rng.seed_everything(rng.derive(config.seed, "dropout", distributed.rank()))
    order = rng.generator(config.seed, "order")
    first, validated = 1, list[dict[str, float]]()
    if restored := trial.restore():
        state = checkpoint.load(restored)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rng.put_back_process(state["rng"], distributed.rank(), shared={"order": order})
        first, validated = state["epoch"] + 1, state.get("validated", [])
    else:
        trial.report(validate(model, examples) | floors(examples), step=0)

    wrapped = distributed.wrap(model)
    for epoch in range(first, config.training.num_epochs + 1):
        if is_exhausted(config.training.patience, validated):
            break
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * config.training.decay ** (epoch - 1)
        metrics = train_epoch(wrapped, optimizer, examples.train, config, order, epoch)
        if config.training.is_validated(epoch):
            metrics |= validate(model, examples)
            validated.append({SELECTION: metrics[SELECTION]})
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
            "validated": validated,
            "rng": distributed.gather(rng.capture(order=order)),
        }
        checkpoint.report(trial, metrics, epoch, state)


def evaluate(config: Pretraining, checkpoint_path: Path, evaluation: object, trial: Trial) -> None:
    """Reports the error of a checkpoint on the validation audio, beside the floors; there is one way of testing."""
    from trainables import checkpoint, distributed
    from trainables.asr.autoregressive import AutoregressiveModel
    from trainables.asr.data.examples import load_audio
    from trainables.asr.floors import floors
    from trainables.asr.next_frame import validate

    examples = load_audio(data_of(config), config.features, config.spared)
    state, model = checkpoint.load(checkpoint_path), AutoregressiveModel(config).to(distributed.device())
    model.load_state_dict(state["model"])
    trial.report(validate(model, examples) | floors(examples), step=state["epoch"])
