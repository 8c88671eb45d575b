"""TIMIT in small: trees and flat folders, any case, both containers, the fold and the standard speakers."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.trainables.asr.data.test_examples import everyone
from trainables.asr.data.config import Features, HeldOutSpeakers, Timit
from trainables.asr.data.examples import labels_by_times, load_examples
from trainables.asr.data.phones import TIMIT_61, TIMIT_PHONES, class_of, fold_timit
from trainables.asr.data.splits import read_audio_splits, read_splits
from trainables.asr.data.timit import CORE_TEST_SPEAKERS, DEVELOPMENT_SPEAKERS, locate
from trainables.errors import DataWarning, InputError

PHN = "0 1600 h#\n1600 4800 sh\n4800 8000 ix\n8000 8800 q\n8800 12000 dcl\n12000 15000 d\n"
FOLDED = ["sil", "sh", "ih", "sil", "d"]


def write_speaker(folder: Path, sentences=("sa1", "sx1", "si2"), upper=False, sphere=False) -> None:
    folder.mkdir(parents=True)
    for number, sentence in enumerate(sentences):
        name = sentence.upper() if upper else sentence
        audio = folder / (name + (".WAV" if upper else ".wav"))
        noise = np.random.default_rng(number).uniform(-0.1, 0.1, 16_000)
        soundfile.write(audio, noise, 16_000, format="NIST" if sphere else "WAV", subtype="PCM_16")
        (folder / (name + (".PHN" if upper else ".phn"))).write_text(PHN)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "somewhere" / "TIMIT"
    for speaker, portion in (
        ("FCJF0", "TRAIN"),
        ("MDPK0", "TRAIN"),
        ("FAKS0", "TEST"),
        ("MDAB0", "TEST"),
        ("FZZZ0", "TEST"),
    ):
        write_speaker(root / portion / "DR1" / speaker, upper=True, sphere=True)
    return root


def test_61_phones_fold_to_39():
    assert len(TIMIT_61) == 61 == len(set(TIMIT_61))
    assert len(TIMIT_PHONES) == 39
    assert {fold_timit(phone) for phone in TIMIT_61} == {*TIMIT_PHONES, None}
    assert all(class_of(phone) for phone in TIMIT_PHONES)
    assert (class_of("AH0"), class_of("dx"), class_of("spn")) == ("vowel", "stop", None)
    assert (class_of("b1"), class_of("B")) == (None, "stop")  # a label of the control with onsets
    with pytest.raises(KeyError):
        fold_timit("xx")


def test_standard_lists_have_their_sizes_and_share_no_speaker():
    assert (len(DEVELOPMENT_SPEAKERS), len(CORE_TEST_SPEAKERS)) == (50, 24)
    assert not DEVELOPMENT_SPEAKERS & CORE_TEST_SPEAKERS


@pytest.mark.data
def test_fold_and_lists_are_kaldis(real_data: Path):
    conf = real_data / "timit_conf"
    assert set((conf / "dev_spk.list").read_text().split()) == DEVELOPMENT_SPEAKERS
    assert set((conf / "test_spk.list").read_text().split()) == CORE_TEST_SPEAKERS
    rows = [line.split() for line in (conf / "phones.60-48-39.map").read_text().splitlines()]
    same = {row[0]: (row[2] if len(row) == 3 else None) for row in rows}
    assert same == {phone: fold_timit(phone) for phone in same}
    assert len(same) == 61 - ("ax-h" not in same)


@pytest.mark.parametrize("name", ["TIMIT", "train", "Test"])
def test_a_tree_in_capitals_with_sphere_files_has_the_standard_split_whatever_its_folder_is_called(
    tree: Path, name: str
):
    tree = tree.rename(tree.with_name(name))
    with pytest.warns(DataWarning, match=r"has \(4, 2, 2\) utterances where TIMIT has \(3696, 400, 192\)"):
        found = read_splits(Timit(root=tree.parent.parent))
    assert [{u.speaker for u in part} for part in (found.train, found.validation, found.test)] == [
        {"fcjf0", "mdpk0"}, {"faks0"}, {"mdab0"}
    ]  # fmt: skip
    utterance = found.train[0]
    assert utterance.identity == "fcjf0_si2"
    assert [found.labels[label] for label in utterance.labels] == FOLDED
    assert utterance.times_s[1] == (0.1, 0.3)
    assert not [u for u in everyone(found) if "_sa" in u.identity]


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    for number in range(6):
        write_speaker(tmp_path / f"dr{number + 1}-faaa{number}")
    return tmp_path


def test_a_flat_excerpt_holds_speakers_out(flat: Path):
    config = Timit(root=flat, split=HeldOutSpeakers(num_validation_speakers=1, num_test_speakers=2))
    found = read_splits(config)
    speakers = [{u.speaker for u in part} for part in (found.train, found.validation, found.test)]
    assert [len(some) for some in speakers] == [3, 1, 2]
    assert len(set.union(*speakers)) == 6
    assert found.train == read_splits(config).train
    other = Timit(root=flat, split=HeldOutSpeakers(num_validation_speakers=1, num_test_speakers=2, seed=2))
    assert {u.speaker for u in read_splits(other).test} != speakers[2]
    audio = read_audio_splits(config)
    assert [u.identity for u in audio.train] == [u.identity for u in found.train]
    assert not audio.train[0].labels


def test_frames_know_the_phone_at_their_middle(flat: Path):
    config = Timit(root=flat, split=HeldOutSpeakers(num_validation_speakers=1, num_test_speakers=2))
    example = load_examples(config, Features()).train[0]
    spoken = labels_by_times(example, Features())
    names = ["-" if label < 0 else TIMIT_PHONES[label] for label in spoken.tolist()]
    assert (names[0], names[5], names[15], names[25], names[30], names[40]) == ("sil", "sh", "ih", "-", "sil", "d")
    assert names[-1] == "-"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("phone", r"sx1.phn, line 2: 'xx' is not a phone of TIMIT"),
        ("line", r"sx1.phn, line 1 must be START END PHONE, but is '0 many h#'"),
        ("empty", "sx1.phn has no phones"),
        ("audio", "sx1.phn has no .wav beside it"),
        ("broken", "sx1.wav cannot be read as audio"),
        ("standard", "standard split needs its TRAIN and TEST folders, but .*held_out_speakers"),
        ("speakers", "must hold out fewer than the 6 speakers"),
        ("nothing", "There is no TIMIT at or two folders below"),
    ],
)
def test_bad_data_is_one_line_that_names_the_file(flat: Path, spoil: str, said: str):
    label_file = flat / "dr1-faaa0/sx1.phn"
    config = Timit(root=flat, split=HeldOutSpeakers(num_validation_speakers=1, num_test_speakers=2))
    match spoil:
        case "phone":
            label_file.write_text("0 100 h#\n100 200 xx\n")
        case "line":
            label_file.write_text("0 many h#\n")
        case "empty":
            label_file.write_text("0 100 q\n")
        case "audio":
            label_file.with_suffix(".wav").unlink()
        case "broken":
            label_file.with_suffix(".wav").write_bytes(b"RIFF and no more")
        case "standard":
            config = Timit(root=flat)
        case "speakers":
            config = Timit(root=flat, split=HeldOutSpeakers(num_test_speakers=5))
        case "nothing":
            config = Timit(root=flat / "dr1-faaa0")
    with pytest.raises(InputError, match=said) as raised:
        read_splits(config)
    assert "\n" not in str(raised.value)


@pytest.mark.data
def test_the_real_sample_is_read_with_its_sphere_file(real_data: Path):
    found = read_splits(Timit(root=real_data, split=HeldOutSpeakers()))
    assert len(everyone(found)) == 128
    assert len({u.speaker for u in everyone(found)}) == 16
    assert not {u.speaker for u in everyone(found)} & (DEVELOPMENT_SPEAKERS | CORE_TEST_SPEAKERS)
    (sphere,) = [u for u in everyone(found) if u.identity == "fvmh0_si836"]
    assert sphere.audio.read_bytes().startswith(b"NIST")
    assert locate(real_data).name == "timit_sample"
    assert {label for u in everyone(found) for label in u.labels} == set(range(39))
