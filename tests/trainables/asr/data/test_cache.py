import json
from pathlib import Path

import pytest
import torch

from tests.trainables.asr.data.test_examples import CORPUS, write_utterance
from trainables.asr.data.config import Features, LibriSpeech
from trainables.asr.data.examples import load_examples
from trainables.errors import DataWarning

FEATURES = Features(num_mel_bins=20)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch) -> LibriSpeech:
    monkeypatch.setenv("PONDERAY_CACHE", str(tmp_path / "cache"))
    for speaker in (1, 2, 3):
        write_utterance(tmp_path, "train", speaker, speaker, "THE CAT", seconds=1 + speaker / 10)
    write_utterance(tmp_path, "test", 9, 9, "THE DOG")
    return CORPUS.model_copy(update={"root": tmp_path})


def load(corpus: LibriSpeech) -> dict[str, torch.Tensor]:
    load_examples.cache_clear()
    found = load_examples(corpus, FEATURES)
    return {example.identity: example.frames.clone() for example in found.train + found.validation + found.test}


def entries(corpus: LibriSpeech) -> list[Path]:
    return sorted(path for path in (corpus.root / "cache/features").iterdir() if path.suffix != ".lock")


def assert_equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_cached_frames_are_those_that_were_made(corpus, monkeypatch):
    made = load(corpus)
    assert [path.suffix for path in entries(corpus)] == [".json", ".npy"] * 3
    monkeypatch.setattr("trainables.asr.data.examples.fbank", None)
    assert_equal(load(corpus), made)
    monkeypatch.undo()
    monkeypatch.delenv("PONDERAY_CACHE", raising=False)
    assert_equal(load(corpus), made)


@pytest.mark.parametrize("damage", ["bit", "cut", "gone", "index", "pickle"])
def test_a_damaged_entry_is_made_anew(corpus, damage):
    made = load(corpus)
    frames_file = next(path for path in entries(corpus) if path.suffix == ".npy")
    content = frames_file.read_bytes()
    match damage:
        case "bit":
            frames_file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        case "cut":
            frames_file.write_bytes(content[:-40])
        case "gone":
            frames_file.unlink()
        case "index":
            frames_file.with_suffix(".json").write_text("{")
        case "pickle":
            frames_file.write_bytes(b"\x80\x04N.")
    with pytest.warns(DataWarning, match="are damaged and are computed again"):
        assert_equal(load(corpus), made)
    assert frames_file.read_bytes() == content
    assert json.loads(frames_file.with_suffix(".json").read_text())["lengths"]


def test_other_audio_or_another_front_end_is_another_entry(corpus):
    load(corpus)
    write_utterance(corpus.root, "test", 9, 10, "THE DOG")
    load(corpus)
    assert len(entries(corpus)) == 2 * 4
    load_examples(corpus, FEATURES.model_copy(update={"window": "hanning"}))
    assert len(entries(corpus)) == 2 * 7
    assert not list((corpus.root / "cache").rglob("*.partial"))


def test_a_move_of_the_corpus_finds_the_same_entries(corpus, tmp_path_factory, monkeypatch):
    load(corpus)
    place = tmp_path_factory.mktemp("moved")
    for subset in ("train", "test"):
        (corpus.root / subset).rename(place / subset)
    monkeypatch.setattr("trainables.asr.data.examples.fbank", None)
    assert len(load(corpus.model_copy(update={"root": place}))) == 4
