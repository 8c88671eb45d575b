"""Every metric that networks of the family report; those of an evaluation carry its name."""

from typing import Final

from trainables.metric import Metric, higher, lower, neutral

MAX_DIFFICULTY: Final = 64
"""Up to which the updates at each difficulty are a metric; all of them are in the table that is kept."""

METRICS: tuple[Metric, ...] = (
    Metric(
        "step_error",
        "ratio",
        "minimize",
        "test: share of the steps with a target that have not every classification right",
        floor="majority_step_error",
    ),
    *neutral(
        "ratio", majority_step_error="test: `step_error` of always the same answer, the one that is right most often"
    ),
    *lower(
        "ratio",
        sequence_error="test: share of the sequences with a target that have not every classification of every step "
        "right",
        valid_sequence_error="`sequence_error` on the validation set; step 0 is untrained",
        valid_step_error="`step_error` on the validation set; step 0 is untrained",
    ),
    *lower(
        "bits/byte",
        bits_per_character="text, test: mean surprisal of a byte; sequences one behind the other, each from a state "
        "of zeros",
    ),
    *lower(
        "nats/sequence",
        test_loss_nats="test: mean over sequences of their summed cross-entropy",
        valid_loss_nats="`test_loss_nats` on the validation set; step 0 is untrained",
        valid_objective="what the tested checkpoint is chosen by: valid_loss_nats + tau * mean over sequences of their "
        "summed ponder; under a budget valid_loss_nats + 1000 * the mean updates that are more than 2 % above it; of "
        "PonderNet and early exit valid_loss_nats, where it halts as in the evaluation",
        train_loss_nats="mean over the training sequences since the last report",
    ),
    *neutral("nats/update", tau="time penalty, as it stands after the iteration"),
    *lower(
        "updates/step",
        mean_updates="test: mean of N over all steps",
        mean_ponder="test: mean of N + R over all steps",
    ),
    *neutral(
        "updates/step",
        valid_mean_updates="`mean_updates` on the validation set; step 0 is untrained",
        train_mean_updates="over the training sequences since the last report",
        std_updates="test: standard deviation of N over all steps",
        p10_updates="test: 10th percentile of N over all steps",
        p50_updates="test: median of N over all steps",
        p90_updates="test: 90th percentile of N over all steps",
        max_updates="test: largest N of all steps",
        **{
            f"mean_updates_difficulty_{difficulty}": "test: mean of N over the steps of this difficulty (active bits, "
            "gates, digits or items)"
            for difficulty in range(1, MAX_DIFFICULTY + 1)
        },
        mean_updates_space="text, test: mean of N where the byte is white space",
        mean_updates_punctuation="text, test: where it is ASCII punctuation",
        mean_updates_letter="text, test: where it is neither of these nor a digit",
        mean_updates_boundary="text, test: where it is one of , . ; : ! ?",
        mean_updates_digit="text, test: where it is a digit",
        mean_updates_rare="text, test: where it is a byte that makes up less than 1 in 1000 of those read",
        mean_updates_before_rare="text, test: where such a byte comes next",
        mean_updates_end_of_input="sort, test: mean of N at the last item and the steps beside it",
        mean_updates_elsewhere="sort, test: mean of N at all other steps",
        ponder_above_digits="addition, test: mean over the steps with a target of N + R minus the digits of the number "
        "and of the sum before it",
    ),
    *neutral(
        "updates/step per unit of difficulty",
        updates_per_difficulty="test: slope of the least-squares line of N over the difficulty of a step; where "
        "difficulty varies",
    ),
    *neutral(
        "bits/byte",
        **{
            f"surprisal_bits_{kind}": f"text, test: mean surprisal of the byte that comes next, at the steps of "
            f"`mean_updates_{kind}`"
            for kind in ("space", "punctuation", "letter", "boundary", "digit", "rare", "before_rare")
        },
    ),
    *neutral("ratio", share_at_limit="test: share of the steps that took as many updates as there may be"),
    *neutral(
        "",
        updates_difficulty_correlation="test: Pearson's correlation of N with the difficulty of a step; where both "
        "vary",
        updates_surprisal_correlation="text, test: Pearson's correlation of N with the surprisal of the byte that "
        "comes next; where N varies",
        updates_entropy_correlation="text, test: the same with the entropy of the prediction of that byte",
        gradient_norm="mean over the iterations since the last report, before clipping",
    ),
    *lower(
        "multiply-accumulates",
        macs_per_sequence="test: those that must run, mean over sequences; one input projection a step, a readout at "
        "each target, or behind every update where its confidence ends the step",
        valid_macs_per_sequence="`macs_per_sequence` on the validation set; step 0 is untrained",
        train_macs_per_sequence="of the forward pass in training, mean over the sequences since the last report; "
        "PonderNet and early exit run all updates there, and are read out behind each; backward takes about twice that",
    ),
    *higher(
        "sequences/s",
        eval_sequences_per_s="test: of one process, from inputs to predictions",
        train_sequences_per_s="since the last report, making the sequences included",
    ),
)
