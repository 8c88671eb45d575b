"""Every metric that recoding language models report; those of an evaluation carry its name."""

from typing import Final

from trainables.metric import Metric, higher, lower, neutral

MAX_LAYERS: Final = 8
"""Up to which step sizes and gradients of each layer are metrics."""

_ACTIVATIONS = [(kind, layer) for layer in range(1, MAX_LAYERS + 1) for kind in "hc"]

METRICS: tuple[Metric, ...] = (
    Metric(
        "perplexity",
        "ratio",
        "minimize",
        "test: exp of the mean of -log p of every token but the first",
        floor="bigram_perplexity",
    ),
    *neutral("ratio", bigram_perplexity="`perplexity` of an interpolated bigram of the training part, once a run"),
    *lower(
        "ratio",
        valid_perplexity="`perplexity` of the validation part; step 0 is untrained",
        train_perplexity="exp of the mean of -log predictive p since the last report, with dropout",
    ),
    *lower(
        "nats/token",
        test_loss_nats="test: log of `perplexity`",
        valid_loss_nats="log of `valid_perplexity`; step 0 is untrained",
        train_loss_nats="mean loss of the tokens since the last report: of an ensemble without its anchor penalty",
    ),
    *neutral(
        "ratio",
        unknown_share="test: share of the tokens that the vocabulary lacks, read as <unk>",
        raised_share="test: share of the tokens whose error signal recoding raises, by more than rounding",
        share_recoded="test: share of the tokens that were recoded",
        train_share_recoded="`share_recoded` in training since the last report",
        learning_rate="that the windows since the last report were trained with",
    ),
    *neutral(
        "signal",
        delta_before="test: mean error signal before recoding, over the text; nats, or, of eq44 and sigmoid, p^-p - 1",
        delta_after="test: the same of the recoded activations, with the same masks and target; neither is measured "
        "where the model adapts",
        train_delta="mean error signal before recoding since the last report, with dropout, of the tokens that it was "
        "read at",
    ),
    *lower(
        "gradients",
        num_not_finite="test: recoding gradients of an activation that were not finite",
        train_not_finite="`num_not_finite` in training since the last report",
    ),
    *neutral(
        "weight",
        member_spread="standard deviation of a weight or bias over the members of an ensemble, root mean square over "
        "all of them",
    ),
    *lower(
        "MAC/token",
        macs_per_token="test: multiply-accumulates of a token, with all that recoding adds behind an open gate",
        train_macs_per_token="multiply-accumulates of a token since the last report, forward and backward, with "
        "what recoding adds behind an open gate; at step 0, and in epochs without the recoder, of the plain model",
    ),
    *lower(
        "MAC",
        preparation_macs="of what adapts: multiply-accumulates before the test, of the pass over the training text and "
        "of the choice of its two settings on the validation part",
    ),
    *neutral(
        "1",
        dynamic_rate="eta of a dynamic evaluation, as chosen on the validation part",
        dynamic_decay="lambda of a dynamic evaluation, as chosen on the validation part",
        cache_theta="theta of a continuous cache, as chosen on the validation part",
        cache_share="lambda of a continuous cache, as chosen on the validation part",
    ),
    *higher(
        "tokens/s",
        eval_tokens_per_s="test: tokens read, from inputs to losses, per second",
        train_tokens_per_s="tokens trained on per second since the last report",
    ),
    *neutral("nats", gradient_norm="mean over windows of the gradient's norm, before it is cut"),
    *lower(
        "MB",
        peak_memory_mb="the most that was held at once: allocated on a GPU, else by the process since its start",
    ),
    *neutral(
        "ratio",
        **{
            f"step_size_{kind}_{layer}": f"mean step size of {kind} of layer {layer} over the recoded tokens since the "
            "last report"
            for kind, layer in _ACTIVATIONS
        },
    ),
    *neutral(
        "nats/unit",
        **{
            f"recoding_norm_{kind}_{layer}": f"mean Euclidean norm of the finite recoding gradients of {kind} of layer "
            f"{layer} since the last report; 0 where it is not computed, below the lowest layer that moves"
            for kind, layer in _ACTIVATIONS
        },
    ),
)
