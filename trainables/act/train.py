"""Adaptive Computation Time as a trainable, from top to bottom: what it reads and keeps, how it trains and tests.

What needs torch is imported where training and testing begin: commands that only read a sweep load this module too, and
loading torch takes longer than all that they do.
"""

import importlib
import tempfile
from pathlib import Path

from trainables.act.config import ActConfig, Evaluation, Text
from trainables.act.metrics import METRICS
from trainables.act.tasks import text_file
from trainables.act.time_penalty import first_tau
from trainables.patience import is_exhausted
from trainables.trial import Trial

metrics = METRICS


def reads(config: ActConfig) -> object:
    """The part of `config` that decides the fingerprint."""
    return config.data


def __getattr__(name: str) -> object:
    """The `analyses`, and what an audit asks, loaded when a command wants them: no part of the code that trains."""
    if name == "analyses":
        return importlib.import_module(".analysis.questions", __package__).ANALYSES
    if name in ("examples", "predict", "promises"):
        return getattr(importlib.import_module(".predict", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def fingerprint(config: ActConfig) -> str:
    """The hash of the text, once it is known to be long enough; a generated task is the same everywhere."""
    return text_file.fingerprint(config.data) if isinstance(config.data, Text) else "generated"


def selection(config: ActConfig) -> dict[str, str]:
    """Names of the checkpoints to keep, one for each evaluation, each with the metric that it minimises."""
    return {e.name: f"valid_objective@{e.name}" if e.halts else "valid_objective" for e in config.evaluations}


def num_steps(config: ActConfig) -> int | None:
    """The last step that `train` reports; None with `patience`, which may end it before."""
    return config.training.num_iterations if config.training.patience is None else None


def train(config: ActConfig, trial: Trial) -> None:
    """Adam on the mean over sequences of summed cross-entropy + tau * ponder; a step is an iteration.

    PonderNet and early exit have their own losses (`conditional.ponder_net`, `conditional.early_exit`), and run all
    updates of every step for them.

    The untrained network, which does not count for `patience`, every `report_every`-th iteration and the last are
    validated and reported.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the text cannot be read.
    """
    import torch

    from trainables import checkpoint, distributed, rng
    from trainables.act.evaluation import validate
    from trainables.act.iterations import train_until
    from trainables.act.network import Network
    from trainables.act.tasks import data

    training, device = config.training, distributed.device()
    validation = data.validation_set(config)
    for evaluation in config.evaluations:
        data.test_set(config, evaluation)  # a text too short for it is refused before hours of training
    rng.seed_everything(config.seed)
    network = Network(config).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=training.learning_rate, fused=True)
    tau, iteration, validated = first_tau(config.halting), 0, list[dict[str, float]]()
    if restored := trial.restore():
        state = checkpoint.load(restored)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        tau, iteration, validated = state["tau"], state["iteration"], state.get("validated", [])
    else:
        trial.report(validate(config, network, validation), step=0)

    wrapped = distributed.wrap(network)
    while iteration < training.num_iterations and not is_exhausted(training.patience, validated):
        last = min(iteration + training.report_every, training.num_iterations)
        metrics, tau = train_until(config, wrapped, optimizer, tau, iteration, last)
        iteration = last
        metrics |= validate(config, network, validation)
        validated.append({"valid_objective": metrics["valid_objective"]})  # under whatever evaluations
        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "tau": tau,
            "iteration": iteration,
            "validated": validated,
        }
        checkpoint.report(trial, metrics, iteration, state)


def evaluate(config: ActConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial) -> None:
    """Reports error, updates, cost and speed on the test set of a trained network, with tables and figures of them."""
    from trainables import checkpoint, distributed
    from trainables.act import figure
    from trainables.act.evaluation import score, test_metrics, valid_metrics
    from trainables.act.network import Network
    from trainables.act.tasks import data

    state = checkpoint.load(checkpoint_path)
    network = Network(config).to(distributed.device())
    network.load_state_dict(state["network"])
    sequences, halts = data.test_set(config, evaluation), evaluation.halts
    results = score(network, sequences, halts)
    metrics = test_metrics(config, results, sequences, halts)
    metrics |= valid_metrics(config, score(network, data.validation_set(config), halts), halts)
    with tempfile.TemporaryDirectory() as folder:
        files = figure.draw(config, results, sequences, evaluation.name, Path(folder))
        trial.report(metrics, step=state["iteration"], artifacts=files)
