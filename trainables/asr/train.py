"""The recogniser as a trainable: what it reads, keeps and reports. torch is loaded when it trains or tests."""

from pathlib import Path

from trainables.asr.config import AsrConfig, Budget, Evaluation, Surprisal
from trainables.asr.data.splits import audio_fingerprint, data_fingerprint
from trainables.asr.metrics import METRICS
from trainables.config import content_hash
from trainables.trial import Trial

metrics = METRICS


def reads(config: AsrConfig) -> tuple[object, ...]:
    """What of `config` decides the fingerprint."""
    return config.data, getattr(config.controller, "data", None)


def fingerprint(config: AsrConfig) -> str:
    """Of the recordings and transcripts, and of the audio of the controller's fit where that is another."""
    found = data_fingerprint(config.data)
    if isinstance(config.controller, Surprisal | Budget) and config.controller.data is not None:
        other = config.controller.data
        return content_hash(found, audio_fingerprint(config.beside(other), config.spared(other)))
    return found


def selection(config: AsrConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises."""
    return {one.name: f"valid_per@{one.checkpoint_of or one.name}" for one in config.evaluations}


def num_steps(config: AsrConfig) -> int | None:
    """The last step that `train` reports; None with `patience`, which may end it before."""
    return config.training.num_epochs if config.training.patience is None else None


def train(config: AsrConfig, trial: Trial) -> None:
    """As `training.train`."""
    from trainables.asr import training

    training.train(config, trial)


def evaluate(config: AsrConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """As `training.evaluate`."""
    from trainables.asr import training

    training.evaluate(config, checkpoint_path, evaluation, trial)
