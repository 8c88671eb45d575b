"""One contract for every causal layer: it never looks ahead, and frame by frame it gives what it gives at once."""

import pytest
import torch

from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import CausalConvolution, Gru, MaskedSelfAttention, Pretraining
from trainables.asr.data.config import Features
from trainables.asr.encoders import make_mixer

ENCODERS = [Gru(), CausalConvolution(kernel_frames=3), MaskedSelfAttention(num_heads=2, context_frames=4)]


@pytest.fixture(params=ENCODERS, ids=lambda encoder: encoder.kind)
def model(request) -> AutoregressiveModel:
    config = Pretraining(encoder=request.param, hidden_size=8, features=Features(num_mel_bins=8), dropout=0.5)
    return AutoregressiveModel(config).eval()


def test_features_and_predictions_depend_on_no_later_frame(model):
    frames = torch.randn(2, 20, 8)
    changed = frames.clone()
    changed[:, 12] += 1
    (features, predictions), (other_features, other_predictions) = model(frames), model(changed)
    torch.testing.assert_close(features[:, :12], other_features[:, :12], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(predictions[:, :13], other_predictions[:, :13], rtol=1e-5, atol=1e-6)
    assert (features[:, 12] - other_features[:, 12]).abs().max() > 1e-3
    assert (predictions[:, 13] - other_predictions[:, 13]).abs().max() > 1e-4


@torch.no_grad()
def test_a_stream_gives_what_the_whole_utterance_gives(model):
    frames = torch.randn(3, 20, 8)
    features, predictions = model(frames)
    stream = model.begin(3)
    for t in range(20):
        torch.testing.assert_close(model.predict(stream), predictions[:, t], rtol=1e-4, atol=1e-5)
        stream = model.step(frames[:, t], stream)
        torch.testing.assert_close(stream.feature, features[:, t], rtol=1e-4, atol=1e-5)


def test_attention_sees_its_context_and_nothing_older():
    mixer = make_mixer(MaskedSelfAttention(num_heads=2, context_frames=4), 6, 8, 0)
    inputs = torch.randn(1, 12, 6)
    changed = inputs.clone()
    changed[0, 5] += 1
    different = (mixer(inputs) - mixer(changed)).abs().amax(-1)[0] > 1e-6
    assert different.nonzero()[:, 0].tolist() == [5, 6, 7, 8]


def test_the_second_convolution_reaches_back_as_far_as_the_first_times_its_kernel():
    first, second = (make_mixer(CausalConvolution(kernel_frames=3), 4, 4, number) for number in (0, 1))
    assert (first.num_past, second.num_past) == (2, 6)
    assert second.convolution.dilation == (3,)


def test_attention_by_its_definition():
    """Softmax over q k / sqrt(d) - slope * distance, one head, by hand."""
    mixer = make_mixer(MaskedSelfAttention(num_heads=1, context_frames=8), 3, 2, 0)
    inputs = torch.randn(1, 3, 3)
    queries, keys, values = mixer.queries_keys_values(inputs)[0].chunk(3, -1)
    slope = 2.0**-8
    scores = torch.stack([queries[2] @ keys[s] / 2**0.5 - slope * (2 - s) for s in range(3)])
    attended = (scores.softmax(0)[:, None] * values).sum(0)
    expected = mixer.present(inputs[0, 2]) + mixer.output(attended)
    torch.testing.assert_close(mixer(inputs)[0, 2], expected, rtol=1e-5, atol=1e-6)
