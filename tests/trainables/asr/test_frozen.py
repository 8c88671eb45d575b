"""What is kept of a frozen autoregressive model: the digits of a recomputation, made once, by content."""

import dataclasses
from pathlib import Path

import pytest
import torch

from tests.trainables.asr.test_train import CONFIG, DATA
from trainables.asr import frozen
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AlwaysSmall
from trainables.asr.controller import Control
from trainables.asr.controller_fit import missing_fits, surprisals_of
from trainables.asr.data.batches import collate
from trainables.asr.data.config import LibriSpeech
from trainables.asr.data.examples import load_examples
from trainables.asr.recogniser import Recogniser
from trainables.conditional.surprisal_controller import SurprisalFit
from trainables.errors import DataWarning, InputError

FRAMES = CONFIG.with_value("inputs", "frames")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("PONDERAY_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def examples():
    return load_examples(DATA, CONFIG.ar.features)


def model(seed: int = 1) -> AutoregressiveModel:
    torch.manual_seed(seed)
    return AutoregressiveModel(CONFIG.pretraining).eval()


def equal(a, b) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("config", [CONFIG, FRAMES], ids=["features", "frames"])
def test_rows_are_features_and_surprisals_of_each_utterance_alone(place, examples, config):
    ar, found = model(), frozen.keep(config, model(), examples.train)
    assert list(found) == [example.identity for example in examples.train]
    for example in examples.train:
        with torch.no_grad():
            features, predictions = ar(example.frames[None])
        rows = found[example.identity]
        torch.testing.assert_close(rows[:, -1], surprisal(example.frames, predictions[0]), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(rows[:, :-1], features[0] if config is CONFIG else rows[:, :0], rtol=1e-5, atol=1e-6)


def test_a_second_replicate_and_a_process_without_a_cache_have_the_same_digits(place, examples, monkeypatch):
    made = frozen.keep(CONFIG, model(), examples.train)
    with monkeypatch.context() as patched:
        patched.setattr(frozen, "read", None)  # nothing is computed
        assert equal(frozen.keep(CONFIG, model(), examples.train), made)
    monkeypatch.delenv("PONDERAY_CACHE")
    assert equal(frozen.keep(CONFIG, model(), examples.train), made)


def test_another_model_or_other_audio_is_another_entry(place, examples):
    frozen.keep(CONFIG, model(), examples.train)
    frozen.keep(CONFIG, model(2), examples.train)
    frozen.keep(CONFIG, model(), examples.validation)
    first = examples.train[0]
    louder = dataclasses.replace(first, frames=first.frames + 1)
    frozen.keep(CONFIG, model(), (louder, *examples.train[1:]))
    assert len(list((place / "ar_features").glob("*.npy"))) == 4


def test_without_room_features_are_not_kept_and_surprisals_stay_in_memory(place, examples, monkeypatch):
    made = frozen.keep(FRAMES, model(), examples.train)
    monkeypatch.setattr("trainables.asr.data.cache.ROOM", 1e18)
    with pytest.warns(DataWarning, match="GB are wanted to keep rows .* set PONDERAY_CACHE to a larger one"):
        assert frozen.keep(CONFIG, model(), examples.train) is None
        assert frozen.keep_all(CONFIG, model(), [CONFIG.controller], examples.train) is None
        fitted = surprisals_of(CONFIG, model(), examples.train)
        assert equal(frozen.keep(FRAMES, model(), examples.train), made)
        monkeypatch.setenv("PONDERAY_CACHE", str(place / "other"))
        assert equal(frozen.keep(FRAMES, model(), examples.train), made)
    assert [one.tolist() for one in fitted] == [one[:, -1].tolist() for one in made.values()]
    assert len(list(place.rglob("*.npy"))) == 1


def test_of_audio_that_no_recogniser_hears_surprisals_alone_are_kept(place, examples):
    separate = CONFIG.with_value("controller.data", DATA.model_copy(update={"seed": 5}))
    assert len(missing_fits(separate, [separate.controller], model(), examples, {})) == 1
    assert {path.parent.name for path in place.rglob("*.npy")} == {"surprisals"}


def test_controllers_of_one_name_with_audio_at_two_places_are_refused(examples):
    places = [LibriSpeech(root=Path(place)) for place in ("clean", "noisy")]
    controllers = [CONFIG.with_value("controller.data", place).controller for place in places]
    with pytest.raises(InputError, match="must differ in more than the place of their data"):
        missing_fits(CONFIG, controllers, model(), examples, {})


def test_an_utterance_that_stands_twice_is_refused(place, examples):
    with pytest.raises(InputError, match="train-00000 stands twice in one split; name each subset once"):
        frozen.keep(CONFIG, model(), (*examples.train, examples.train[0]))


def test_a_recogniser_reads_the_same_of_kept_rows_as_of_its_model(examples):
    group = examples.train[:5]
    recogniser = Recogniser(CONFIG, len(examples.labels), model()).eval()
    batch, uniform = collate(group), torch.rand(5, max(len(example.frames) for example in group))
    control = Control(CONFIG.controller, fit=SurprisalFit(w=0.1, b=-1.0, mean_p=0.5, var_p=0.0))
    kept = frozen.pad(frozen.keep_all(CONFIG, recogniser.ar, [CONFIG.controller], group), batch)
    with torch.no_grad():
        ran = recogniser(batch.frames, batch.num_frames, control, uniform)
        read = recogniser(batch.frames, batch.num_frames, control, uniform, kept)
    valid = batch.valid
    for name in ("log_probs", "surprisals", "p_big", "used_big"):
        torch.testing.assert_close(getattr(read, name)[valid], getattr(ran, name)[valid], rtol=1e-5, atol=1e-5)


def test_nothing_is_kept_of_a_model_that_is_trained_on_or_that_nothing_needs(examples):
    joint = CONFIG.with_value("ar_loss_weight", 1e-3)
    unused = FRAMES.model_copy(update={"controller": AlwaysSmall()})
    assert frozen.keep_all(joint, model(), [joint.controller], examples.train) is None
    assert frozen.keep_all(unused, model(), [unused.controller], examples.train) is None
    assert frozen.keep_all(unused, model(), [CONFIG.controller], examples.train) is not None
