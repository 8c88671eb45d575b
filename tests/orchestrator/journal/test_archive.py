"""An archive gives back what went into it, and one that was changed gives nothing."""

import json
import stat
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import pytest

from orchestrator.journal.archive import ABOUT, opened_archive, write_archive
from trainables.errors import InputError

KEY = "0123456789abcdef"
CHECKPOINT = f"step_000001.{KEY}.pt"
CONTENTS = {"journal.jsonl": b"{}\n" * 99, CHECKPOINT: b"state " * 500_000, "artifacts/figure.svg": b"<svg/>"}


@pytest.fixture
def file(workplace) -> Path:
    file, checkpoint = Path("made/sweep.zip"), Path("checkpoint")
    checkpoint.write_bytes(CONTENTS[CHECKPOINT])
    entries = {f"replicates/{KEY}/{name}": content for name, content in CONTENTS.items()}
    entries |= {f"replicates/{KEY}/{CHECKPOINT}": checkpoint, "study.jsonl": b"lines"}
    write_archive(file, {"sweep": "s"}, entries.items())
    assert file.stat().st_size > len(CONTENTS[CHECKPOINT])
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    return file


def changed(file: Path, name: str, content: bytes, mode: int = 0) -> Path:
    """The archive with an entry put in the place of another, or added."""
    copy = file.with_name("changed.zip")
    with ZipFile(file) as source, ZipFile(copy, "w") as target:
        info = ZipInfo(name)
        info.external_attr = mode << 16
        for other in source.infolist():
            if other.filename != name:
                target.writestr(other, source.read(other))
        target.writestr(info, content)
    return copy


def test_what_was_written_is_read(file):
    with opened_archive(file) as archive:
        assert dict(archive.about) == {"format": 1, "sweep": "s"}
        assert {key: sorted(names) for key, names in archive.files.items()} == {KEY: sorted(CONTENTS)}
        assert (archive.read("study.jsonl"), archive.read("searches.json")) == (b"lines", b"")
        archive.write_to(Path("restored"), KEY)
        assert {name: Path("restored", name).read_bytes() for name in CONTENTS} == CONTENTS
        with pytest.raises(FileExistsError):
            archive.write_to(Path("restored"), KEY)


def test_a_file_that_an_earlier_version_wrote_twice_is_read(workplace):
    name, file = f"replicates/{KEY}/journal.jsonl", Path("sweep.zip")
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_archive(file, {}, [(name, b"{}"), (name, b"{}")])
    with opened_archive(file) as archive:
        assert {key: set(names) for key, names in archive.files.items()} == {KEY: {"journal.jsonl"}}
        archive.write_to(Path("restored"), KEY)
    assert Path("restored/journal.jsonl").read_bytes() == b"{}"


def test_what_fails_on_the_way_leaves_no_file(workplace):
    with pytest.raises(FileNotFoundError):
        write_archive(Path("sweep.zip"), {}, [("study.jsonl", Path("absent"))])
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("name", "content", "mode", "said"),
    [
        ("study.jsonl", b"other", 0, "study.jsonl is damaged"),
        ("study.jsonl", b"lines", stat.S_IFLNK, "leads elsewhere"),
        ("more", b"", 0, "not those that it lists"),
        (ABOUT, b"{", 0, "must be an archive"),
        (ABOUT, json.dumps({"format": 2}).encode(), 0, "format is 2, of a later version; this one reads 1"),
    ],
)
def test_a_changed_one_is_refused(file, name, content, mode, said):
    with pytest.raises(InputError, match=said), opened_archive(changed(file, name, content, mode)):
        pass


@pytest.mark.parametrize(
    "name", ["other", "../study.jsonl", f"replicates/{KEY}/../x", "replicates/short/journal.jsonl"]
)
def test_a_name_that_leads_elsewhere_is_refused(workplace, name):
    write_archive(Path("sweep.zip"), {}, [(name, b"")])
    with pytest.raises(InputError, match="leads elsewhere"), opened_archive(Path("sweep.zip")):
        pass
    with pytest.raises(InputError, match="There is no file"), opened_archive(Path("absent.zip")):
        pass
