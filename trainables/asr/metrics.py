"""Every metric that speech recognisers report; those of an evaluation carry its name: `per@stochastic`."""

from trainables.metric import Metric

METRICS: tuple[Metric, ...] = (
    Metric(
        "per",
        "ratio",
        "minimize",
        "test: summed edit distance / summed reference length, decoded on valid frames",
    ),
    Metric("valid_per", "ratio", "minimize", "the same on the validation set; step 0 is the untrained model"),
    Metric("valid_loss_nats", "nats/utterance", "minimize", "validation: mean over utterances of the CTC loss"),
    Metric("train_loss_nats", "nats/utterance", "minimize", "mean over the epoch's utterances of the CTC loss"),
    Metric(
        "macs_per_frame",
        "multiply-accumulates",
        "minimize",
        "test: those that must run, per valid 20 ms frame",
    ),
    Metric(
        "paper_flops_per_frame",
        "parameters",
        "minimize",
        "test: parameters used per valid frame, as the paper counts",
    ),
    Metric("routing_rate", "ratio", "none", "test: share of valid frames that took the big network"),
    Metric("train_routing_rate", "ratio", "none", "the same over the epoch's training frames"),
    Metric("controller_mean_p", "ratio", "none", "mean of p_big over the training frames after the fit"),
    Metric("controller_var_p", "ratio", "none", "variance of p_big over the training frames after the fit"),
    Metric(
        "train_frames_per_s",
        "frames/s",
        "maximize",
        "valid training frames per second of the epoch's updates",
    ),
    Metric("eval_frames_per_s", "frames/s", "maximize", "valid test frames per second, decoding included"),
    Metric("gradient_norm", "", "none", "mean over the epoch's updates, before clipping"),
    Metric("num_skipped", "utterances", "none", "left out: a word without phones, or too short for CTC"),
    Metric(
        "train_mse",
        "log-energy^2",
        "minimize",
        "autoregressive model: mean squared error per bin, training frames",
    ),
    Metric(
        "valid_mse",
        "log-energy^2",
        "minimize",
        "the same on the validation frames; step 0 is the untrained model",
    ),
)
