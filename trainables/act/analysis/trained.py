"""A trained network on sequences of an analysis."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainables import checkpoint, distributed
from trainables.act.config import ActConfig, Evaluation
from trainables.act.evaluation import Results, score
from trainables.act.network import Network
from trainables.act.tasks.batch import Batch


def results_of(config: ActConfig, path: Path, sequences: Batch, evaluation: Evaluation) -> Results:
    """What the network of the checkpoint at `path` makes of the sequences, halted as in the evaluation."""
    network = Network(config).to(distributed.device())
    network.load_state_dict(checkpoint.load(path)["network"])
    return score(network, sequences, evaluation.halts)


def ponder_of(results: Results) -> Mapping[str, NDArray[np.floating]]:
    """N, and N + R, of every step (B T)."""
    return {"updates": results.num_updates.astype(float), "ponder": results.num_updates + results.remainders}


def predictions_of(results: Results) -> Mapping[str, NDArray[np.floating]]:
    """The surprisal of the byte behind every byte (B T), and the entropy of its prediction, in bits."""
    return {"surprisal_bits": results.nats / math.log(2), "entropy_bits": results.entropies / math.log(2)}
