"""Analytic multiply-accumulates, one for each weight used once; biases and elementwise steps are not counted.

Analytic, so that a plan and a budget know it before anything runs; what has run is counted by
`trainables.conditional.macs`, which holds these counts against it.
"""


def linear_macs(num_inputs: int, num_outputs: int) -> int:
    """Multiply-accumulates of one row through a `Linear`, or one frame of a convolution of kernel * channels inputs."""
    return num_inputs * num_outputs


def gru_macs(num_inputs: int, hidden_size: int, num_directions: int = 1) -> int:
    """Multiply-accumulates of one time step of a GRU layer: three gates, each reading the input and the state."""
    return num_directions * 3 * (num_inputs * hidden_size + hidden_size * hidden_size)


def causal_attention_macs(num_inputs: int, hidden_size: int, num_frames: int, context_frames: int) -> int:
    """Multiply-accumulates of masked self-attention: projections, then scores and sums over what each frame sees.

    Frame t, counted from 0, sees min(t + 1, context_frames) frames.
    """
    projections = num_frames * (3 * num_inputs * hidden_size + hidden_size * hidden_size)
    return projections + 2 * hidden_size * _num_seen(num_frames, context_frames)


def masked_attention_macs(hidden_size: int, num_frames: int, context_frames: int) -> int:
    """Multiply-accumulates of scores and sums that run, in a kernel that computes the full square, and are masked."""
    return 2 * hidden_size * (num_frames**2 - _num_seen(num_frames, context_frames))


def _num_seen(num_frames: int, context_frames: int) -> int:
    num_full = max(0, num_frames - context_frames)
    num_growing = num_frames - num_full
    return num_growing * (num_growing + 1) // 2 + num_full * context_frames
