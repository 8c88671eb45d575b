"""Analytic multiply-accumulates, one for each weight used once; biases and elementwise steps are not counted.

Analytic because `torch.utils.flop_counter` sees nothing in fused recurrent layers on a CPU.
"""


def linear_macs(num_inputs: int, num_outputs: int) -> int:
    """Of one row through a `Linear`."""
    return num_inputs * num_outputs


def gru_macs(num_inputs: int, hidden_size: int, num_directions: int = 1) -> int:
    """Of one time step of a GRU layer: three gates, each reading the input and the state."""
    return num_directions * 3 * (num_inputs * hidden_size + hidden_size * hidden_size)
