import json
import shutil
from dataclasses import replace

import pytest

from tests.orchestrator.cli.test_main import call
from tests.trainables.asr.data.test_corpus_check import corpus  # noqa: F401
from tests.trainables.asr.data.test_download import ARCHIVE, server  # noqa: F401
from trainables.asr.data import download


def test_check_prints_every_set_and_its_unknown_words(monkeypatch, capsys, corpus):  # noqa: F811
    assert call(monkeypatch, "data", "check", str(corpus)) == 0
    shown = capsys.readouterr().out
    assert (
        "train: 2 of 3 utterances (67 %) have words that the dictionary lacks; each such word is the label spn" in shown
    )
    assert "is left out: BLICKET (3), WUG (1)\n" in shown
    assert call(monkeypatch, "data", "check", str(corpus), "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["num_utterances"]) for row in rows] == [("train", 3), ("timit", 2)]
    assert rows[0]["unknown_words"] == {"BLICKET": 3, "WUG": 1} and len(rows[0]["fingerprint"]) == 16


def test_check_of_a_broken_corpus_names_the_file_and_ends_with_2(monkeypatch, capsys, corpus):  # noqa: F811
    (corpus / "LibriSpeech/train/1/7/1-7-0001.flac").write_bytes(b"")
    assert call(monkeypatch, "data", "check", str(corpus)) == 2
    assert "1-7-0001.flac cannot be read as audio" in capsys.readouterr().err


def test_of_many_problems_a_few_are_shown_with_a_count(monkeypatch, capsys, corpus):  # noqa: F811
    for number in range(10, 1300):
        (corpus / "LibriSpeech/train/2/7" / f"2-7-{number:04}.flac").touch()
    assert call(monkeypatch, "data", "check", str(corpus)) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 11 and "2-7-0019.flac has no line in a transcript" in said[9]
    assert said[10] == "train: 1,280 more problems; --format json lists all"
    assert call(monkeypatch, "data", "check", str(corpus), "--format", "json") == 2
    assert len(json.loads(capsys.readouterr().out)[0]["problems"]) == 1290


def test_check_of_no_corpus_is_one_line(monkeypatch, capsys, tmp_path):
    assert call(monkeypatch, "data", "check", str(tmp_path)) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_check_of_a_name_that_is_too_long_is_told_with_its_beginning_and_not_with_another_setting(monkeypatch, capsys):
    assert call(monkeypatch, "data", "check", "x/" * 3000) == 2
    said = capsys.readouterr().err
    assert said.startswith("ponderay: PATH must be a folder that is or holds a corpus, but '") and len(said) < 400
    assert "File name too long" in said and "PONDERAY_RUNS" not in said


@pytest.mark.parametrize("setting", ["--to", "PONDERAY_DATA"])
def test_get_downloads_unpacks_and_does_nothing_twice(monkeypatch, capsys, server, tmp_path, setting):  # noqa: F811
    monkeypatch.setattr(download, "CORPORA", {"tiny": (ARCHIVE,)})
    source = ["--source", f"http://127.0.0.1:{server.server_port}"]
    target = tmp_path / "data"
    if setting == "--to":
        source += ["--to", str(target)]
    else:
        monkeypatch.setenv("PONDERAY_DATA", str(target))
    assert call(monkeypatch, "data", "get", "tiny", *source) == 0
    assert f"PONDERAY_DATA={target}" in capsys.readouterr().out
    assert call(monkeypatch, "data", "get", "tiny", *source) == 0
    assert "tiny is there already" in capsys.readouterr().out
    assert len(server.ranges) == 1
    shutil.rmtree(target)
    monkeypatch.setattr(download, "CORPORA", {"tiny": (replace(ARCHIVE, checksum="0"),)})
    assert call(monkeypatch, "data", "get", "tiny", *source) == 2
    assert "must have the sha256 checksum 0" in capsys.readouterr().err
