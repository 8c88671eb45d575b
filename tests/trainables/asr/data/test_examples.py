"""Readers, features and batches, on small files of the tests' own and on the synthetic corpus."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from trainables.asr.config import AsrConfig, Pretraining
from trainables.asr.data.batches import bucketed, collate
from trainables.asr.data.config import Features, LibriSpeech, Synthetic
from trainables.asr.data.corpus import Splits, Utterance
from trainables.asr.data.examples import Example, load_audio, load_examples
from trainables.asr.data.features import fbank, num_frames
from trainables.asr.data.phones import PHONES, pronounce
from trainables.asr.data.splits import audio_fingerprint, data_fingerprint, read_audio_splits, read_splits
from trainables.asr.data.synthetic import SOUNDS, waveform
from trainables.errors import DataWarning, InputError

CORPUS = LibriSpeech(train=("train",), test=("test",), num_validation_speakers=1)


def everyone(found: Splits) -> tuple[Utterance, ...]:
    return found.train + found.validation + found.test


def write_utterance(root: Path, subset: str, speaker: int, number: int, words: str, seconds: float = 1.0) -> Path:
    folder = root / subset / str(speaker) / "7"
    folder.mkdir(parents=True, exist_ok=True)
    identity = f"{speaker}-7-{number:04d}"
    noise = np.random.default_rng(number).uniform(-0.1, 0.1, int(16_000 * seconds))
    soundfile.write(folder / f"{identity}.flac", noise, 16_000)
    with (folder / f"{speaker}-7.trans.txt").open("a") as transcript:
        transcript.write(f"{identity} {words}\n")
    return folder / f"{identity}.flac"


@pytest.fixture
def corpus(tmp_path: Path) -> LibriSpeech:
    for speaker in (1, 2, 3):
        write_utterance(tmp_path, "train", speaker, 0, "THE CAT")
        write_utterance(tmp_path, "train", speaker, 1, "HELLO")
    write_utterance(tmp_path, "test", 9, 0, "THE DOG")
    return CORPUS.model_copy(update={"root": tmp_path})


def test_there_are_39_phones_and_the_first_pronunciation_is_taken_without_stress():
    assert len(PHONES) == 39 == len(set(PHONES))
    assert pronounce("HELLO") == ("hh", "ah", "l", "ow")
    assert pronounce("XYZZYX") is None


def test_reader_gives_phones_and_holds_speakers_apart(corpus: LibriSpeech):
    found = read_splits(corpus)
    speakers = [{u.speaker for u in part} for part in (found.train, found.validation, found.test)]
    assert [len(s) for s in speakers] == [2, 1, 1]
    assert speakers[0] | speakers[1] == {"1", "2", "3"}
    assert [PHONES[label] for label in found.test[0].labels] == ["dh", "ah", "d", "ao", "g"]
    assert found.test[0].num_samples == 16_000


def test_a_word_without_phones_is_spoken_noise_and_counted(corpus: LibriSpeech):
    write_utterance(corpus.root, "train", 1, 2, "XYZZYX CAT")
    with pytest.warns(
        DataWarning, match=r"1 of 11 words \(9\.1 %\) of train are not in the .* dictionary: each is .* spn"
    ):
        found = read_splits(corpus)
    assert (found.num_skipped, len(everyone(found))) == (0, 8)
    (changed,) = (u for u in everyone(found) if u.identity == "1-7-0002")
    assert [found.labels[label] for label in changed.labels] == ["spn", "k", "ae", "t"]
    assert len(found.labels) == 41 and found.labels[:39] == PHONES


def test_asked_for_39_labels_such_a_word_is_a_counted_skip(corpus: LibriSpeech):
    write_utterance(corpus.root, "train", 1, 2, "XYZZYX CAT")
    remedy = "`--set data.phones=dictionary_spn` keeps them"
    with pytest.warns(DataWarning, match=rf"1 of 7 utterances \(14 %\) of train are left out: .*; {remedy}"):
        found = read_splits(corpus.model_copy(update={"phones": "dictionary"}))
    assert (found.num_skipped, len(everyone(found)), found.labels) == (1, 7, PHONES)


@pytest.mark.data
def test_no_utterance_of_real_speech_is_left_out_and_few_words_are_noise(real_data: Path):
    config = LibriSpeech(root=real_data)
    with pytest.warns(DataWarning) as told:
        found = read_splits(config)
    assert (len(found.train + found.validation), len(found.test), found.num_skipped) == (252, 109, 0)
    ours = [str(one.message) for one in told if one.category is DataWarning]
    assert "147 of 8,308 words (1.8 %) of train-clean-5" in ours[0]
    noise = [u.labels.count(found.labels.index("spn")) for u in found.train + found.validation]
    assert (sum(noise), sum(map(bool, noise))) == (147, 111)
    with pytest.warns(DataWarning, match=r"111 of 252 utterances \(44 %\) of train-clean-5 are left out"):
        fewer = read_splits(config.model_copy(update={"phones": "dictionary"}))
    kept = {u.identity for u, n in zip(found.train + found.validation, noise, strict=True) if not n}
    assert {u.identity for u in fewer.train + fewer.validation} == kept


def test_the_autoregressive_model_does_not_ask_how_words_become_phones(corpus: LibriSpeech):
    """Else hundreds of hours would be learnt from again where a task's labels change."""
    larger = Pretraining(data=LibriSpeech(train="large"))
    made = [
        AsrConfig(data=corpus.model_copy(update={"phones": phones}), ar=larger).pretraining
        for phones in ("dictionary", "dictionary_spn", "textgrid")
    ]
    assert made[0] == made[1] == made[2]


def test_too_little_audio_for_its_phones_is_a_counted_skip(corpus: LibriSpeech):
    for speaker in (1, 2, 3):
        write_utterance(corpus.root, "train", speaker, 2, "HELLO HELLO HELLO", seconds=0.2)
    examples = load_examples(corpus, Features())
    assert examples.num_skipped == 3
    assert (len(examples.train), len(examples.validation)) == (4, 2)


def test_a_choice_of_utterances_is_seeded(corpus: LibriSpeech):
    few = corpus.model_copy(update={"num_train_utterances": 2})
    assert [u.identity for u in read_splits(few).train] == [u.identity for u in read_splits(few).train]
    assert len(read_splits(few).train) == 2


def test_audio_needs_no_transcripts_and_leaves_nothing_out(corpus: LibriSpeech):
    write_utterance(corpus.root, "train", 1, 2, "XYZZYX CAT")
    labelled = read_splits(corpus.model_copy(update={"phones": "dictionary_spn"}))
    for path in corpus.root.rglob("*.trans.txt"):
        path.unlink()
    audio = read_audio_splits(corpus)
    for part in ("train", "validation"):
        assert [u.identity for u in getattr(audio, part)] == [u.identity for u in getattr(labelled, part)]
    assert {u.labels for u in everyone(audio)} == {()} and not audio.test
    assert len(load_audio(corpus, Features(num_mel_bins=20)).train) == len(audio.train)


def test_larger_audio_spares_the_tasks_validation_and_test_speakers(corpus: LibriSpeech):
    for speaker in (1, 2, 3, 7, 8, 9):
        write_utterance(corpus.root, "large", speaker, 5, "THE CAT")
    (tested,) = {u.speaker for u in read_splits(corpus).validation}
    config = AsrConfig(data=corpus, ar=Pretraining(data=LibriSpeech(train="large", num_validation_speakers=1)))
    audio = read_audio_splits(config.pretraining.data, config.pretraining.spared)
    assert {u.speaker for u in everyone(audio)} == {"1", "2", "3", "7", "8"} - {tested}
    same = AsrConfig(data=corpus, ar=Pretraining(data=CORPUS)).pretraining
    audio = read_audio_splits(same.data, same.spared)
    assert {u.speaker for u in everyone(audio)} == {"1", "2", "3"} - {tested}
    assert audio.train and audio.validation
    everything = corpus.model_copy(update={"num_validation_speakers": 2})
    with pytest.raises(InputError, match="must be below the 1 speakers"):
        read_audio_splits(everything, everything)
    own = AsrConfig(data=corpus).pretraining
    assert own.spared is None
    assert tested not in {u.speaker for u in read_audio_splits(own.data).train}


def test_several_subsets_are_one_training_set(corpus: LibriSpeech):
    write_utterance(corpus.root, "more", 5, 0, "THE CAT")
    found = read_splits(corpus.model_copy(update={"train": ("train", "more")}))
    assert {u.speaker for u in found.train + found.validation} == {"1", "2", "3", "5"}
    assert LibriSpeech(train="one") == LibriSpeech(train=("one",))


def test_fingerprint_follows_content_not_place(corpus: LibriSpeech, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere") / "corpus"
    corpus.root.rename(other)
    moved = corpus.model_copy(update={"root": other})
    before = data_fingerprint(moved)
    corpus.root.mkdir()
    for path in sorted(other.rglob("*.trans.txt")):
        path.write_text(path.read_text().replace("DOG", "DOGS"))
    assert before != data_fingerprint(moved)


@pytest.mark.parametrize("has_checksum", [True, False])
def test_fingerprints_follow_the_sound(corpus: LibriSpeech, has_checksum: bool):
    """Of a FLAC file by the checksum of samples that its header may have; compressed more it is the same sound."""
    found = []
    for loudness in (1.0, 1.0, 0.5):
        for path in sorted(corpus.root.rglob("*.flac")):
            noise = loudness * np.random.default_rng(len(path.name)).uniform(-0.1, 0.1, 16_000)
            soundfile.write(path, noise, 16_000, compression_level=float(has_checksum and len(found) == 1))
            if not has_checksum:
                content = bytearray(path.read_bytes())
                content[26:42] = bytes(16)
                path.write_bytes(content)
        found.append((data_fingerprint(corpus), audio_fingerprint(corpus)))
    assert found[0] == found[1] and all(a != b for a, b in zip(found[0], found[2], strict=True))


def test_a_folder_without_recordings_is_no_speaker(corpus: LibriSpeech):
    before = [[u.speaker for u in part] for part in (read_splits(corpus).train, read_splits(corpus).validation)]
    for subset in ("train", "test"):
        (corpus.root / subset / "0@eaDir").mkdir()
    assert [[u.speaker for u in part] for part in (read_splits(corpus).train, read_splits(corpus).validation)] == before


@pytest.mark.parametrize(
    "spoil", ["missing", "broken", "truncated", "rate", "empty", "root", "subset", "shared", "text", "speakers"]
)
def test_bad_data_is_one_line_that_names_the_file(corpus: LibriSpeech, spoil: str):
    audio = corpus.root / "train/2/7/2-7-0001.flac"
    config, said = corpus, str(audio)
    match spoil:
        case "missing":
            audio.unlink()
            said = "2-7.trans.txt has a line for 2-7-0001.flac, but that file is missing"
        case "broken":
            audio.write_bytes(b"fLaC but no more")
        case "truncated":
            audio.write_bytes(audio.read_bytes()[: audio.stat().st_size // 2])
        case "rate":
            soundfile.write(audio, np.zeros(8000), 8000)
            said = f"{audio} must be 16000 Hz with one channel, but is 8000 Hz"
        case "empty":
            for path in (corpus.root / "test").rglob("*.trans.txt"):
                path.unlink()
            said = "No usable utterance in"
        case "root":
            config, said = corpus.model_copy(update={"root": corpus.root / "no"}), "no does not exist; give `--set"
        case "subset":
            config, said = (
                corpus.model_copy(update={"train": ("dev",)}),
                "There is no folder 'dev' at or two folders below",
            )
        case "shared":
            config = corpus.model_copy(update={"test": ("train",)})
            said = "train and train must have no speaker in common, but share speaker 1"
        case "text":
            (corpus.root / "train/2/7/2-7.trans.txt").write_bytes(b"2-7-0000 CAF\xc9\n")
            said = "2-7.trans.txt must be UTF-8 text"
        case "speakers":
            config, said = corpus.model_copy(update={"num_validation_speakers": 3}), "must be below the 3 speakers"
    with pytest.raises(InputError) as raised:
        load_examples(config, Features(num_mel_bins=20))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_root_at_all_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PONDERAY_DATA", raising=False)
    with pytest.raises(InputError, match="set PONDERAY_DATA"):
        read_splits(CORPUS)


@pytest.mark.parametrize("num_samples", [0, 399, 400, 719, 720, 5000, 16_000])
@pytest.mark.parametrize(
    "config", [Features(), Features(hop_ms=10.05, window_ms=25.03, keep_every=1)], ids=["whole", "off grid"]
)
def test_num_frames_is_what_fbank_makes(num_samples: int, config: Features):
    made = len(fbank(torch.zeros(num_samples), config)) if num_samples >= 400 else 0
    assert num_frames(num_samples, config) == made


def test_a_tone_peaks_in_the_mel_bin_of_its_frequency():
    """Mel scale 1127 ln(1 + f / 700), 80 triangles between 20 and 8000 Hz."""
    tone_hz = 1000.0
    tone = torch.sin(2 * torch.pi * tone_hz * torch.arange(16_000) / 16_000)
    mel = 1127 * np.log1p(np.array([20.0, tone_hz, 8000.0]) / 700)
    expected = (mel[1] - mel[0]) / ((mel[2] - mel[0]) / 81) - 1
    assert abs(int(fbank(tone, Features())[20].argmax()) - expected) <= 1


def test_fbank_of_one_frame_by_the_definition():
    """Pre-emphasis .97, Hamming window, power spectrum of 400 samples, no offset removal, natural log."""
    samples = torch.from_numpy(np.random.default_rng(0).uniform(-0.5, 0.5, 400).astype(np.float32))
    x = samples.double().numpy()
    emphasised = np.concatenate([[x[0] * (1 - 0.97)], x[1:] - 0.97 * x[:-1]])
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 399)
    power = np.abs(np.fft.rfft(emphasised * window)) ** 2
    mel_of = lambda hz: 1127 * np.log1p(hz / 700)  # noqa: E731
    edges = np.linspace(mel_of(20), mel_of(8000), 82)
    mels = mel_of(np.arange(201) * 40.0)
    rising = (mels[None] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - mels[None]) / (edges[2:] - edges[1:-1])[:, None]
    triangles = np.clip(np.minimum(rising, falling), 0, None)
    triangles[:, 200] = 0  # Kaldi leaves the Nyquist bin out
    expected = np.log(np.maximum(triangles @ power, np.finfo(np.float32).eps))
    np.testing.assert_allclose(fbank(samples, Features())[0].numpy(), expected, atol=2e-3)


def test_synthetic_speech_is_the_same_every_time_and_in_range():
    config = Synthetic(num_train_utterances=4, num_validation_utterances=2, num_test_utterances=2)
    utterance = read_splits(config).train[0]
    first, second = (waveform(config, utterance.identity, utterance.speaker, utterance.labels) for _ in range(2))
    assert torch.equal(first, second)
    assert len(first) == utterance.num_samples
    assert float(first.abs().max()) <= 1
    assert float(first.std()) > 0.01
    assert data_fingerprint(config) == data_fingerprint(config.model_copy())
    assert data_fingerprint(config) != data_fingerprint(config.model_copy(update={"seed": 2}))


def test_a_synthetic_vowel_has_its_first_formant():
    config = Synthetic(noise=0.0)
    label = list(SOUNDS).index("aa")
    samples = waveform(config, "utterance", "speaker00", (label,) * 8).double().numpy()
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    frequencies = np.fft.rfftfreq(len(samples), 1 / 16_000)
    peak_hz = frequencies[spectrum.argmax()]
    assert 730 * 0.8 < peak_hz < 1090 * 1.2


def test_batches_cover_every_example_once_with_like_lengths():
    examples = [Example(str(n), torch.zeros(n, 2), (0,)) for n in range(1, 41)]
    batches = bucketed(examples, 8, torch.Generator().manual_seed(0))
    assert sorted(int(e.identity) for batch in batches for e in batch) == list(range(1, 41))
    assert max(len(max(b, key=lambda e: len(e.frames)).frames) - len(b[-1].frames) for b in batches) <= 14
    assert [len(batch[0].frames) for batch in bucketed(examples, 8)] == [40, 32, 24, 16, 8]
    other = bucketed(examples, 8, torch.Generator().manual_seed(1))
    assert [b[0].identity for b in other] != [b[0].identity for b in batches]


def test_collate_pads_with_zeros_at_the_end():
    batch = collate([Example("a", torch.ones(2, 3), (1,)), Example("b", torch.ones(4, 3), (2, 2))])
    assert batch.num_frames.tolist() == [2, 4]
    assert batch.frames.sum((1, 2)).tolist() == [6.0, 12.0]
    assert batch.frames[0, 2:].abs().sum() == 0
    assert batch.labels == ((1,), (2, 2))


@pytest.mark.data
def test_the_real_recordings_are_read(real_data: Path):
    found = read_splits(LibriSpeech(root=real_data))
    speakers = {path.name for path in (real_data / "librispeech/LibriSpeech/train-clean-5").iterdir()}
    assert len(speakers) == 28
    assert {u.speaker for u in found.train + found.validation} <= speakers
    assert {u.speaker for u in found.train} & {u.speaker for u in found.test} == set()
    assert len(everyone(found)) + found.num_skipped == 252 + 109
    spoken = {found.labels[label] for u in everyone(found) for label in u.labels}
    assert spoken == {*PHONES, "spn"}
