"""What an audit tests of a recogniser is what its reported numbers are of."""

import pytest
from torchaudio.functional import edit_distance

from tests.trainables.asr.test_train import CONFIG
from tests.trainables.folder_trial import FolderTrial
from trainables.asr import pretrain, train
from trainables.asr.config import GREEDY


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> FolderTrial:
    pretrain.train(CONFIG.pretraining, ar := FolderTrial(tmp_path_factory.mktemp("ar")))
    train.train(CONFIG, trial := FolderTrial(tmp_path_factory.mktemp("trained"), ar.folder / "3.pt"))
    return trial


@pytest.mark.parametrize("name", ["stochastic", "deterministic", "random", "other_targets"])
def test_an_audit_tests_the_predictions_that_the_reported_error_and_cost_are_of(tmp_path, trained, name):
    (evaluation,) = (one for one in CONFIG.evaluations if one.name == name)
    evaluation = evaluation.model_copy(update={"decoding": GREEDY})
    train.evaluate(CONFIG, trained.restore(), evaluation, tested := FolderTrial(tmp_path / "tested", trained.product))
    (reported,) = tested.reports.values()
    examples = train.examples(CONFIG, "test")
    predictions = train.predict(CONFIG, trained.restore(), evaluation, trained, examples)
    edits = 0
    for example, prediction in zip(examples, predictions, strict=True):
        best, blank = prediction.probabilities.argmax(-1).tolist(), prediction.probabilities.shape[-1] - 1
        labels = [label for label, before in zip(best, [None, *best], strict=False) if label not in (blank, before)]
        edits += edit_distance(labels, example.targets.tolist())
    num_frames = sum(len(example.inputs) for example in examples)
    assert reported["per"] == pytest.approx(edits / sum(len(example.targets) for example in examples))
    assert reported["macs_per_frame"] == pytest.approx(sum(one.macs for one in predictions) / num_frames, rel=1e-6)
    assert reported["routing_rate"] == sum(int(one.decisions.sum()) for one in predictions) / num_frames
