"""Every metric that speech recognisers report; those of an evaluation carry its name: `per@stochastic`."""

from trainables.asr.data.phones import PHONE_CLASSES
from trainables.metric import Metric, higher, lower, neutral

_SURPRISAL = "test, under a surprisal controller: of the valid frames' surprisal, 1/2 ||x - prediction||^2"

METRICS: tuple[Metric, ...] = (
    *lower(
        "ratio",
        per="test: summed edit distance / summed reference length, decoded on valid frames",
        substitution_rate="test: the part of `per` that is substitutions",
        insertion_rate="test: the part of `per` that is insertions",
        deletion_rate="test: the part of `per` that is deletions",
        released_per="test, as the released code counts: random batches of 32 padded as waveforms, decoded over the "
        "padding; runs of silence are one; hypotheses cut to the reference's length; mean of the utterances' rates",
        valid_per="`per` on the validation set; step 0 is the untrained model",
    ),
    *lower(
        "nats/utterance",
        valid_loss_nats="validation: mean over utterances of the CTC loss",
        test_loss_nats="test: mean over utterances long enough for CTC of its loss",
        train_loss_nats="mean over the epoch's utterances of the CTC loss",
    ),
    *neutral(
        "utterances",
        num_too_short="test: shorter than CTC needs for their phones; they count in `per`",
        num_skipped="left out of the subsets read: no phones known, or too short for CTC",
    ),
    *lower(
        "multiply-accumulates",
        macs_per_frame="test: those that must run, per valid frame",
        valid_macs_per_frame="the same on the validation set",
        train_macs_per_frame="those of the epoch's forward passes, per valid frame: of both networks on every frame "
        "where a gate is learned; an autoregressive model that is frozen and does not drop out can be read once for "
        "all epochs and is not in it",
    ),
    *lower(
        "parameters",
        paper_flops_per_frame="test: parameters used per valid frame, which the paper calls FLOPs",
        released_flops_per_frame="the same over all frames of random batches of 32 padded as waveforms, as in the "
        "released code",
    ),
    *neutral(
        "ratio",
        routing_rate="test: share of valid frames that took the big network",
        **{
            f"routing_rate_{name}": f"the same over frames of the class {name}: by the corpus's times, else by the "
            "nearest label of CTC's alignment"
            for name in PHONE_CLASSES
        },
        train_routing_rate="share of the epoch's valid training frames that took the big network",
        controller_mean_p="mean of p_big over the frames of the fit",
        controller_var_p="variance of p_big over the frames of the fit",
    ),
    *neutral("1/nat", controller_w="slope of the fitted controller: p_big = sigmoid(w surprisal + b)"),
    *neutral("", controller_b="bias of the fitted controller"),
    *neutral(
        "nats",
        surprisal_mean_nats=f"{_SURPRISAL}: mean",
        surprisal_std_nats=f"{_SURPRISAL}: standard deviation",
        surprisal_p10_nats=f"{_SURPRISAL}: a tenth lies below",
        surprisal_p50_nats=f"{_SURPRISAL}: median",
        surprisal_p90_nats=f"{_SURPRISAL}: a tenth lies above",
    ),
    *lower(
        "ms",
        batch_latency_ms="test: median time of the longest batch of up to 32 from frames to log-probabilities",
        streaming_latency_ms="median time of the causal part (surprisal, p_big, AR step) for one frame of one stream; "
        "where it runs",
    ),
    *lower("ratio", real_time_factor="test: seconds from frames to phones per second of audio"),
    *higher(
        "frames/s",
        eval_frames_per_s="test: valid frames per second, decoding included",
        train_frames_per_s="valid training frames per second of the epoch's updates",
    ),
    *neutral("", gradient_norm="mean over the epoch's updates, before clipping"),
    *lower(
        "log-energy^2",
        train_mse="autoregressive model: mean squared error per bin, training frames",
        valid_mse="the same on the validation frames; step 0 is the untrained model",
    ),
    Metric(
        "valid_surprisal_nats",
        "nats/frame",
        "minimize",
        "autoregressive model: mean surprisal of the validation frames",
        floor="linear_4_frames_nats",
    ),
    *neutral(
        "nats/frame",
        repeated_frame_nats="`valid_surprisal_nats` of the last frame as the prediction; before an utterance the "
        "training frames' mean",
        linear_2_frames_nats="the same of the affine prediction from the last 2 frames with the least squared error on "
        "the training frames",
        linear_4_frames_nats="the same from the last 4 frames",
    ),
)
