import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from trainables.asr.network import WindowLinear
from trainables.asr.windows import windows


@pytest.mark.parametrize("kernel_frames", [1, 3, 11])
def test_windows_of_packed_frames_are_what_a_padded_convolution_sees(kernel_frames: int):
    lengths = torch.tensor([5, 9, 1, 7])
    padded = torch.randn(4, 9, 6) * (torch.arange(9) < lengths[:, None])[..., None]
    packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    layer = WindowLinear(6, 4, kernel_frames, dropout=0.0)
    convolution = nn.Conv1d(6, 4, kernel_frames, padding=kernel_frames // 2)
    with torch.no_grad():
        convolution.weight.copy_(layer.linear.weight.unflatten(1, (kernel_frames, 6)).transpose(1, 2))
        convolution.bias.copy_(layer.linear.bias)
    outputs = pad_packed_sequence(packed._replace(data=layer(windows(packed, kernel_frames))), batch_first=True)[0]
    expected = convolution(padded.transpose(1, 2)).transpose(1, 2)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(outputs[row, :length], expected[row, :length], rtol=1e-5, atol=1e-6)
