"""A pretrained autoregressive model of the released code: the same predictions, and what is said of other files."""

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.nn import functional as F

from tests.trainables.asr.test_train import CONFIG, DATA
from tests.trainables.folder_trial import FolderTrial
from trainables.asr import pretrain, released_weights, train
from trainables.asr.config import CausalConvolution, Pretraining
from trainables.asr.data.config import LibriSpeech
from trainables.asr.data.examples import load_audio
from trainables.asr.recogniser import load_ar
from trainables.config import content_hash
from trainables.errors import InputError

BINS, HIDDEN = 16, 12


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(BINS)), nn.Parameter(torch.randn(BINS))


class Released(nn.Module):
    """The released layout: one list of layers, of which those without weights take a number, too."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        super().__init__()
        layers: list[nn.Module] = [Scale(), nn.Identity()]
        for width in (BINS, hidden):
            layers += [nn.GRU(width, hidden, batch_first=True), nn.Identity(), nn.Dropout(0.5)]
            layers += [nn.Linear(hidden, hidden), nn.LeakyReLU(0.125)]
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(layers)
        self.regressor = nn.Linear(hidden, BINS)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        scale, _, *layers = self.encoder.layers
        hidden = F.pad((frames + scale.bias) * scale.weight, (0, 0, 1, 0))
        for layer in layers:
            hidden = layer(hidden)[0] if isinstance(layer, nn.GRU) else layer(hidden)
        return hidden[:, 1:], self.regressor(hidden)[:, :-1]


@pytest.fixture
def released() -> Released:
    torch.manual_seed(3)
    return Released().eval()


def config_of(path: Path, **changes) -> Pretraining:
    ar = CONFIG.ar.model_copy(update={"data": None, "weights": path, "hidden_size": HIDDEN, **changes})
    return ar.with_value("features.num_mel_bins", BINS)


@pytest.mark.parametrize("start", ["", "autoregressive_model."])
def test_the_model_is_the_released_one_and_nothing_is_trained(tmp_path, released, start):
    path = tmp_path / "model_state.pth"
    state = {start + name: value for name, value in released.state_dict().items()}
    if start:  # a recogniser's file has more
        state["prenet.0.weight_ih_l0"] = torch.zeros(3, 3)
    torch.save(state, path)
    config = CONFIG.model_copy(update={"ar": config_of(path)})
    trial = FolderTrial(tmp_path / "ar")
    pretrain.train(config.pretraining, trial)
    assert (trial.reports, pretrain.num_steps(config.pretraining)) == ({0: {}}, 0)
    frames = torch.randn(2, 9, BINS)
    with torch.no_grad():
        torch.testing.assert_close(
            load_ar(config, FolderTrial(tmp_path, tmp_path / "ar/0.pt"))(frames), released(frames)
        )


def test_a_recogniser_trains_on_given_weights(tmp_path, released):
    path = tmp_path / "model_state.pth"
    torch.save(released.state_dict(), path)
    config = CONFIG.model_copy(update={"ar": config_of(path)}).with_value("training.num_epochs", 1)
    pretrain.train(config.pretraining, made := FolderTrial(tmp_path / "ar"))
    train.train(config, trial := FolderTrial(tmp_path / "recogniser", made.folder / "0.pt"))
    assert max(trial.reports) == 1


def test_given_weights_are_tested_on_the_tasks_own_audio(tmp_path, released):
    """Whatever corpus they would have learnt from."""
    path = tmp_path / "model_state.pth"
    torch.save(released.state_dict(), path)
    ar = config_of(path).model_copy(update={"data": LibriSpeech(root=tmp_path / "none")})
    made = CONFIG.model_copy(update={"ar": ar}).pretraining
    trial = FolderTrial(tmp_path / "ar")
    pretrain.train(made, trial)
    pretrain.evaluate(made, trial.folder / "0.pt", None, trial)
    errors = []
    for example in load_audio(DATA, made.features).validation:
        with torch.no_grad():
            errors.append((released(example.frames[None])[1][0] - example.frames).square())
    assert trial.reports[0]["valid_mse"] == pytest.approx(float(torch.cat(errors).mean()), rel=1e-5)


def test_the_content_of_the_file_counts_and_not_its_place(tmp_path, released):
    a, b = tmp_path / "a.pth", tmp_path / "b.pth"
    torch.save(released.state_dict(), a)
    b.write_bytes(a.read_bytes())

    def key(path):
        made = CONFIG.model_copy(update={"ar": config_of(path)}).pretraining
        return content_hash(made, pretrain.fingerprint(made))

    keys = [key(path) for path in (a, b)]
    torch.save({name: value + 1 for name, value in released.state_dict().items()}, b)
    keys.append(key(b))
    assert keys[0] == keys[1] != keys[2]


def without(state, name):
    return {key: value for key, value in state.items() if key != name}


SPOILT = {
    "other size": (
        lambda state: Released(9).state_dict(),
        r"has encoder.layers.2.weight_ih_l0 of shape \(27, 16\) for",
    ),
    "a layer less": (lambda state: without(state, "encoder.layers.10.bias"), "but lacks encoder.layers.10.bias; set"),
    "a layer more": (
        lambda state: state | {"encoder.layers.12.bias": torch.zeros(1)},
        "has encoder.layers.12.bias beside",
    ),
    "another model": (lambda state: {"a": torch.zeros(1)}, "but lacks encoder.layers.0.weight, "),
    "no number": (
        lambda state: state | {"regressor.bias": torch.full((BINS,), torch.nan)},
        "but regressor.bias has others",
    ),
    "no tensors": (lambda state: {"epoch": 3}, "must be a state_dict that torch.save wrote"),
    "a list": (lambda state: [torch.zeros(1)], "must be a state_dict that torch.save wrote"),
    "nothing": (lambda state: {}, "must be a state_dict that torch.save wrote"),
    "code": (lambda state: {"a": Path("x")}, "must be a state_dict that torch.save wrote"),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_what_differs_is_named(tmp_path, released, kind):
    path, (spoil, said) = tmp_path / "spoilt.pth", SPOILT[kind]
    torch.save(spoil(released.state_dict()), path)
    with pytest.raises(InputError, match=rf"spoilt\.pth.*{said}") as raised:
        released_weights.read(path, config_of(path))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"no file of torch", b"\x80\x04}\x94\x8c\x01a\x94K\x01s.", b"PK\x03\x04 broken"]
)
def test_what_torch_cannot_load_is_named(tmp_path, content):
    path = tmp_path / "spoilt.pth"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"spoilt\.pth must be a state_dict that torch.save wrote"):
        released_weights.read(path, config_of(path))


def test_a_file_that_is_not_there_is_named_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match=r"none\.pth cannot be read: No such file or directory; correct `ar.weights`"):
        pretrain.fingerprint(CONFIG.model_copy(update={"ar": config_of(tmp_path / "none.pth")}).pretraining)


def test_weights_are_of_grus(tmp_path):
    with pytest.raises(ValidationError, match="weights are of an encoder of kind gru, but got convolution"):
        Pretraining(weights=tmp_path / "a.pth", encoder=CausalConvolution())
