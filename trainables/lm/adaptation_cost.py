"""Multiply-accumulates that learning during a test adds, beside those of the model and its recoder."""

from trainables.cost import linear_macs
from trainables.lm import cost
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.config import LmConfig, Recoder, Surprisal
from trainables.lm.shapes import num_copies

OPERATIONS_OF_A_MOVE = 3
"""Operations on a weight that moves: difference to the trained weight, a share of that, a multiple of the gradient."""


def dynamic_macs_per_token(
    config: LmConfig,
    recoder: Recoder | None,
    vocabulary_size: int,
    dynamic: DynamicEvaluation,
    num_weights: int,
    share_recoded: float = 1.0,
) -> float:
    """The backward pass to the weights that move, and the moves: an operation of a weight is a multiply-accumulate.

    Elementwise steps on a token's activations are not counted here either. `share_recoded` as in `lm.cost`.
    """
    backward = backward_macs_per_token(config, recoder, vocabulary_size, dynamic, share_recoded)
    return backward + OPERATIONS_OF_A_MOVE * num_weights / dynamic.segment


def backward_macs_per_token(
    config: LmConfig,
    recoder: Recoder | None,
    vocabulary_size: int,
    dynamic: DynamicEvaluation,
    share_recoded: float = 1.0,
) -> float:
    """Multiply-accumulates of the loss's gradient: none for a bias, one product for a decoder, else those of training.

    The gradient in the top state is found at every step, as in training. Of surprisal, recoding has found it already
    where the gate was open; where it does not compare with the expectation it is another one.
    """
    plain = cost.macs_per_token(config, None, vocabulary_size)
    decoding = plain - cost.macs_per_token(config, None, 0)  # a model with no words has only its layers
    if dynamic.weights != "all":
        to_top = 0.0
        if recoder and isinstance(recoder.signal, Surprisal):
            share = share_recoded if recoder.skips_shut_rows else 1.0
            to_top = (1 - share) * decoding if recoder.signal.compares else decoding
        return to_top + (num_copies(recoder) * decoding if dynamic.weights == "decoder" else 0.0)
    if recoder is None:
        return 2 * plain
    trained = config.model_copy(update={"recoder": recoder})
    forward = cost.macs_per_token(trained, recoder, vocabulary_size, share_recoded)
    return cost.training_macs_per_token(trained, vocabulary_size, share_recoded) - forward


def statistics_macs(
    config: LmConfig,
    recoder: Recoder | None,
    vocabulary_size: int,
    dynamic: DynamicEvaluation,
    num_weights: int,
    num_tokens: int,
    share_recoded: float = 1.0,
) -> float:
    """Multiply-accumulates of a pass over `num_tokens`: forward, backward, a weight's squared gradient once a batch."""
    backward = backward_macs_per_token(config, recoder, vocabulary_size, dynamic, share_recoded)
    forward = cost.macs_per_token(config, recoder, vocabulary_size, share_recoded)
    return num_tokens * (forward + backward + num_weights / dynamic.segment / config.training.batch_size)


def cache_macs_per_token(config: LmConfig, cache: Cache) -> int:
    """The dot products of a state: with the cache, and with all states of its window, of which it sees those before."""
    return linear_macs(config.hidden_size, cache.size + config.training.window)
