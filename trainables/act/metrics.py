"""Every metric that networks with Adaptive Computation Time report; those of an evaluation carry its name."""

from typing import Final, Literal

from trainables.metric import Metric

_MIN: Final[Literal["minimize"]] = "minimize"
_MAX: Final[Literal["maximize"]] = "maximize"
_NONE: Final[Literal["none"]] = "none"

MAX_DIFFICULTY: Final = 64
"""Up to which the updates at each difficulty are a metric; all of them are in the table that is kept."""

METRICS: tuple[Metric, ...] = (
    Metric(
        "sequence_error",
        "ratio",
        _MIN,
        "test: share of the sequences with a target that have not every classification of every step right",
    ),
    Metric(
        "step_error", "ratio", _MIN, "test: share of the steps with a target that have not every classification right"
    ),
    Metric(
        "bits_per_character",
        "bits/byte",
        _MIN,
        "text, test: mean surprisal of a byte; sequences one behind the other, each from a state of zeros",
    ),
    Metric("test_loss_nats", "nats/sequence", _MIN, "test: mean over sequences of their summed cross-entropy"),
    Metric("valid_sequence_error", "ratio", _MIN, "`sequence_error` on the validation set; step 0 is untrained"),
    Metric("valid_step_error", "ratio", _MIN, "`step_error` on the validation set; step 0 is untrained"),
    Metric("valid_loss_nats", "nats/sequence", _MIN, "`test_loss_nats` on the validation set; step 0 is untrained"),
    Metric("valid_mean_updates", "updates/step", _NONE, "`mean_updates` on the validation set; step 0 is untrained"),
    Metric(
        "valid_objective",
        "nats/sequence",
        _MIN,
        "what the tested checkpoint is chosen by: valid_loss_nats + tau * mean over sequences of their summed ponder; "
        "under a budget valid_loss_nats + 1000 * the mean updates that are more than 2 % above it",
    ),
    Metric("train_loss_nats", "nats/sequence", _MIN, "mean over the training sequences since the last report"),
    Metric("train_mean_updates", "updates/step", _NONE, "over the training sequences since the last report"),
    Metric("tau", "nats/update", _NONE, "time penalty, as it stands after the iteration"),
    Metric("mean_updates", "updates/step", _MIN, "test: mean of N over all steps"),
    Metric("std_updates", "updates/step", _NONE, "test: standard deviation of N over all steps"),
    Metric("p10_updates", "updates/step", _NONE, "test: 10th percentile of N over all steps"),
    Metric("p50_updates", "updates/step", _NONE, "test: median of N over all steps"),
    Metric("p90_updates", "updates/step", _NONE, "test: 90th percentile of N over all steps"),
    Metric("max_updates", "updates/step", _NONE, "test: largest N of all steps"),
    Metric("mean_ponder", "updates/step", _MIN, "test: mean of N + R over all steps"),
    Metric(
        "share_at_limit", "ratio", _NONE, "test: share of the steps that were stopped by the largest N there may be"
    ),
    *(
        Metric(
            f"mean_updates_difficulty_{difficulty}",
            "updates/step",
            _NONE,
            "test: mean of N over the steps of this difficulty (active bits, gates, digits or items)",
        )
        for difficulty in range(1, MAX_DIFFICULTY + 1)
    ),
    Metric("mean_updates_space", "updates/step", _NONE, "text, test: mean of N where the byte is white space"),
    Metric("mean_updates_punctuation", "updates/step", _NONE, "text, test: where it is ASCII punctuation"),
    Metric("mean_updates_letter", "updates/step", _NONE, "text, test: where it is any other byte"),
    Metric(
        "updates_surprisal_correlation",
        "",
        _NONE,
        "text, test: Pearson's correlation of N with the surprisal of the byte that comes next; where N varies",
    ),
    Metric(
        "updates_entropy_correlation", "", _NONE, "text, test: the same with the entropy of the prediction of that byte"
    ),
    Metric(
        "macs_per_sequence",
        "multiply-accumulates",
        _MIN,
        "test: those that must run, mean over sequences; one input projection a step, a readout at each target",
    ),
    Metric("eval_sequences_per_s", "sequences/s", _MAX, "test: of one process, from inputs to predictions"),
    Metric("train_sequences_per_s", "sequences/s", _MAX, "since the last report, making the sequences included"),
    Metric("gradient_norm", "", _NONE, "mean over the iterations since the last report, before clipping"),
)
