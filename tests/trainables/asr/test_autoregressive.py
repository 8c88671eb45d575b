import torch

from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import Pretraining
from trainables.asr.data.config import Features

CONFIG = Pretraining(hidden_size=6, features=Features(num_mel_bins=8))


def test_predictions_have_not_seen_what_they_predict_but_features_have():
    model = AutoregressiveModel(CONFIG).eval()
    frames = torch.randn(1, 10, 8)
    changed = frames.clone()
    changed[0, 6] += 1
    (features, predictions), (other_features, other_predictions) = model(frames), model(changed)
    assert torch.equal(predictions[0, :7], other_predictions[0, :7])
    assert not torch.equal(predictions[0, 7], other_predictions[0, 7])
    assert torch.equal(features[0, :6], other_features[0, :6])
    assert not torch.equal(features[0, 6], other_features[0, 6])


def test_first_prediction_is_the_same_for_every_utterance():
    model = AutoregressiveModel(CONFIG).eval()
    predictions = model(torch.randn(3, 4, 8))[1]
    torch.testing.assert_close(predictions[0, 0], predictions[1, 0], rtol=1e-6, atol=1e-7)


def test_surprisal_is_half_the_squared_distance():
    frames, predictions = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.0, 4.0, 3.0]])
    assert surprisal(frames, predictions).tolist() == [2.5]


def test_normaliser_starts_as_in_the_source():
    frames = torch.randn(2, 3, 8)
    torch.testing.assert_close(AutoregressiveModel(CONFIG).normaliser(frames), frames * 0.1)


def test_start_from_mean_normalises_it_to_zero_and_predicts_it_from_zero_features():
    model, mean = AutoregressiveModel(CONFIG), torch.arange(8.0) - 12
    model.start_from(mean)
    assert torch.equal(model.normaliser(mean), torch.zeros(8))
    assert torch.equal(model.regressor(torch.zeros(6)), mean)
