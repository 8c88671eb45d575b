"""Recordings whose headers lie or whose samples are no numbers: read right, or named."""

import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from trainables.asr.data import audio
from trainables.errors import InputError

NOISE = np.random.default_rng(1).uniform(-0.1, 0.1, 24_000).astype(np.float32)


def written(path: Path, kind: str, samples=NOISE, subtype: str = "PCM_16") -> bytearray:
    soundfile.write(path, samples, 16_000, format=kind, subtype=subtype)
    return bytearray(path.read_bytes())


def of_a_stream(flac: bytearray) -> bytearray:
    """As an encoder writes it that cannot go back: 0 samples in all, and no checksum of them."""
    flac[21] &= 0xF0
    flac[22:26], flac[26:42] = bytes(4), bytes(16)
    return flac


def test_a_stream_of_unknown_length_is_read_to_its_end(tmp_path):
    path = tmp_path / "a.flac"
    whole = written(path, "FLAC")
    expected = audio.read_waveform(path)
    path.write_bytes(of_a_stream(whole))
    assert audio.num_samples(path) == 24_000
    assert audio.read_waveform(path).equal(expected)


def test_a_stream_that_breaks_off_is_named(tmp_path):
    path = tmp_path / "a.flac"
    path.write_bytes(of_a_stream(written(path, "FLAC"))[:20_000])
    for read in (audio.num_samples, audio.read_waveform):
        with pytest.raises(InputError, match=r"a\.flac cannot be read as audio"):
            read(path)


def test_a_flac_header_that_promises_more_than_any_memory_is_named(tmp_path):
    path = tmp_path / "a.flac"
    flac = written(path, "FLAC")
    flac[21] |= 0x0F
    flac[22:26] = b"\xff" * 4  # 2^36 - 1 samples
    path.write_bytes(flac)
    with pytest.raises(
        InputError, match=r"a\.flac is broken: its header promises 68719476735 samples, but it holds 24000"
    ):
        audio.read_waveform(path)


@pytest.mark.parametrize(("kind", "end"), [("WAV", 44 + 48_000), ("NIST", 1024 + 48_000)])
def test_a_file_that_is_cut_off_is_named(tmp_path, kind, end):
    path = tmp_path / "a.wav"
    whole = written(path, kind)
    assert audio.num_samples(path) == 24_000
    path.write_bytes(whole[:-2])
    with pytest.raises(InputError, match=rf"a\.wav is broken: .* up to byte {end:,}, but it has {end - 2:,} bytes"):
        audio.num_samples(path)


def test_a_riff_header_that_promises_two_gigabytes_is_named(tmp_path):
    path = tmp_path / "a.wav"
    wav = written(path, "WAV", NOISE[:50])
    wav[4:8] = wav[40:44] = struct.pack("<I", 2**31 - 1000)
    path.write_bytes(wav)
    with pytest.raises(InputError, match=r"a\.wav is broken: its header promises sound up to byte 2,147,482,692"):
        audio.num_samples(path)


def test_chunks_around_the_samples_are_no_samples(tmp_path):
    """An odd one before, with its byte of padding, and one behind."""
    path = tmp_path / "a.wav"
    wav = written(path, "WAV")
    path.write_bytes(
        wav[:36] + b"note" + struct.pack("<I", 3) + b"abc\0" + wav[36:] + b"LIST" + struct.pack("<I", 2) + b"ab"
    )
    assert audio.num_samples(path) == 24_000


def test_a_header_that_promises_nothing_is_named(tmp_path):
    path = tmp_path / "a.wav"
    wav = written(path, "WAV")
    wav[40:44] = bytes(4)
    path.write_bytes(wav)
    with pytest.raises(InputError, match=r"a\.wav must hold sound, but has no sample"):
        audio.num_samples(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e6])
def test_a_sample_that_is_no_number_or_too_large_is_named(tmp_path, value):
    path = tmp_path / "a.wav"
    samples = NOISE.copy()
    samples[1234] = value
    written(path, "WAV", samples, subtype="FLOAT")
    with pytest.raises(InputError, match=rf"a\.wav must have samples between .*, but sample 1,234 is {value}"):
        audio.read_waveform(path)
