"""Every metric that recoding language models report; those of an evaluation carry its name."""

from typing import Final, Literal

from trainables.metric import Metric

_MIN: Final[Literal["minimize"]] = "minimize"
_MAX: Final[Literal["maximize"]] = "maximize"
_NONE: Final[Literal["none"]] = "none"

MAX_LAYERS: Final = 8
"""Up to which step sizes and gradients of each layer are metrics."""

_OF_LAYERS = tuple(
    metric
    for layer in range(1, MAX_LAYERS + 1)
    for kind in "hc"
    for metric in (
        Metric(
            f"step_size_{kind}_{layer}",
            "ratio",
            _NONE,
            f"mean step size of {kind} of layer {layer} over the recoded tokens since the last report",
        ),
        Metric(
            f"recoding_norm_{kind}_{layer}",
            "nats/unit",
            _NONE,
            f"mean Euclidean norm of the finite recoding gradients of {kind} of layer {layer} since the last report",
        ),
    )
)

METRICS: tuple[Metric, ...] = (
    Metric("perplexity", "ratio", _MIN, "test: exp of the mean of -log p of every token but the first"),
    Metric("test_loss_nats", "nats/token", _MIN, "test: log of `perplexity`"),
    Metric("unknown_share", "ratio", _NONE, "test: share of the tokens that the vocabulary lacks, read as <unk>"),
    Metric(
        "delta_before",
        "signal",
        _NONE,
        "test: mean error signal before recoding, over the first 20 windows of all streams; nats, or, of eq44 and "
        "sigmoid, p^-p - 1",
    ),
    Metric("delta_after", "signal", _NONE, "test: the same of the recoded activations, with the same masks and target"),
    Metric("num_not_finite", "gradients", _MIN, "test: recoding gradients of an activation that were not finite"),
    Metric(
        "macs_per_token",
        "MAC/token",
        _MIN,
        "test: multiply-accumulates of a token, with all that recoding adds; a gate that stays shut saves nothing",
    ),
    Metric("eval_tokens_per_s", "tokens/s", _MAX, "test: tokens read, from inputs to losses, per second"),
    Metric("valid_perplexity", "ratio", _MIN, "`perplexity` of the validation part; step 0 is untrained"),
    Metric("valid_loss_nats", "nats/token", _MIN, "log of `valid_perplexity`; step 0 is untrained"),
    Metric(
        "train_loss_nats",
        "nats/token",
        _MIN,
        "mean loss of the tokens since the last report: of an ensemble without its pull",
    ),
    Metric(
        "train_perplexity", "ratio", _MIN, "exp of the mean of -log predictive p since the last report, with dropout"
    ),
    Metric("train_delta", "signal", _NONE, "mean error signal before recoding since the last report, with dropout"),
    Metric("train_not_finite", "gradients", _MIN, "`num_not_finite` in training since the last report"),
    Metric("learning_rate", "ratio", _NONE, "that the windows since the last report were trained with"),
    Metric("gradient_norm", "nats", _NONE, "mean over windows of the gradient's norm, before it is cut"),
    Metric("train_tokens_per_s", "tokens/s", _MAX, "tokens trained on per second since the last report"),
    Metric("train_macs_per_token", "MAC/token", _MIN, "multiply-accumulates of a token, forward and backward"),
    Metric(
        "peak_memory_mb",
        "MB",
        _MIN,
        "the most that was held at once: allocated on a GPU, else by the process since its start",
    ),
    *_OF_LAYERS,
)
