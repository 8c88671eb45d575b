"""Every metric that speech recognisers report; those of an evaluation carry its name: `per@stochastic`."""

from typing import Final, Literal

from trainables.asr.data.phones import PHONE_CLASSES
from trainables.metric import Metric

_MIN: Final[Literal["minimize"]] = "minimize"
_MAX: Final[Literal["maximize"]] = "maximize"
_NONE: Final[Literal["none"]] = "none"
_SURPRISAL = "test, under a surprisal controller: of the valid frames' surprisal, 1/2 ||x - prediction||^2"

METRICS: tuple[Metric, ...] = (
    Metric("per", "ratio", _MIN, "test: summed edit distance / summed reference length, decoded on valid frames"),
    Metric("substitution_rate", "ratio", _MIN, "test: the part of `per` that is substitutions"),
    Metric("insertion_rate", "ratio", _MIN, "test: the part of `per` that is insertions"),
    Metric("deletion_rate", "ratio", _MIN, "test: the part of `per` that is deletions"),
    Metric(
        "released_per",
        "ratio",
        _MIN,
        "test, as the released code counts: random batches of 32 padded as waveforms, decoded over the padding; runs "
        "of silence are one; hypotheses cut to the reference's length; mean of the utterances' rates",
    ),
    Metric("valid_per", "ratio", _MIN, "`per` on the validation set; step 0 is the untrained model"),
    Metric("valid_loss_nats", "nats/utterance", _MIN, "validation: mean over utterances of the CTC loss"),
    Metric("test_loss_nats", "nats/utterance", _MIN, "test: mean over utterances long enough for CTC of its loss"),
    Metric("num_too_short", "utterances", _NONE, "test: shorter than CTC needs for their phones; they count in `per`"),
    Metric("train_loss_nats", "nats/utterance", _MIN, "mean over the epoch's utterances of the CTC loss"),
    Metric("macs_per_frame", "multiply-accumulates", _MIN, "test: those that must run, per valid frame"),
    Metric(
        "paper_flops_per_frame",
        "parameters",
        _MIN,
        "test: parameters used per valid frame, which the paper calls FLOPs",
    ),
    Metric(
        "released_flops_per_frame",
        "parameters",
        _MIN,
        "the same over all frames of random batches of 32 padded as waveforms, as in the released code",
    ),
    Metric("routing_rate", "ratio", _NONE, "test: share of valid frames that took the big network"),
    *(
        Metric(
            f"routing_rate_{name}",
            "ratio",
            _NONE,
            f"the same over frames of the class {name}: by the corpus's times, else by the nearest label of CTC's "
            "alignment",
        )
        for name in PHONE_CLASSES
    ),
    Metric(
        "train_routing_rate", "ratio", _NONE, "share of the epoch's valid training frames that took the big network"
    ),
    Metric("controller_w", "1/nat", _NONE, "slope of the fitted controller: p_big = sigmoid(w surprisal + b)"),
    Metric("controller_b", "", _NONE, "bias of the fitted controller"),
    Metric("controller_mean_p", "ratio", _NONE, "mean of p_big over the frames of the fit"),
    Metric("controller_var_p", "ratio", _NONE, "variance of p_big over the frames of the fit"),
    Metric("surprisal_mean_nats", "nats", _NONE, f"{_SURPRISAL}: mean"),
    Metric("surprisal_std_nats", "nats", _NONE, f"{_SURPRISAL}: standard deviation"),
    Metric("surprisal_p10_nats", "nats", _NONE, f"{_SURPRISAL}: a tenth lies below"),
    Metric("surprisal_p50_nats", "nats", _NONE, f"{_SURPRISAL}: median"),
    Metric("surprisal_p90_nats", "nats", _NONE, f"{_SURPRISAL}: a tenth lies above"),
    Metric(
        "batch_latency_ms",
        "ms",
        _MIN,
        "test: median time of the longest batch of up to 32 from frames to log-probabilities",
    ),
    Metric(
        "streaming_latency_ms",
        "ms",
        _MIN,
        "median time of the causal part (surprisal, p_big, AR step) for one frame of one stream; where it runs",
    ),
    Metric("real_time_factor", "ratio", _MIN, "test: seconds from frames to phones per second of audio"),
    Metric("eval_frames_per_s", "frames/s", _MAX, "test: valid frames per second, decoding included"),
    Metric("train_frames_per_s", "frames/s", _MAX, "valid training frames per second of the epoch's updates"),
    Metric("gradient_norm", "", _NONE, "mean over the epoch's updates, before clipping"),
    Metric("num_skipped", "utterances", _NONE, "left out: no phones known, or too short for CTC"),
    Metric("train_mse", "log-energy^2", _MIN, "autoregressive model: mean squared error per bin, training frames"),
    Metric("valid_mse", "log-energy^2", _MIN, "the same on the validation frames; step 0 is the untrained model"),
)
