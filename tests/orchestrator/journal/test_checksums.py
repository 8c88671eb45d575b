"""The checksum of a journal's lines: every flipped bit is seen, and lines of earlier versions are read as they are."""

import json
import zlib
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import parse
from tests.orchestrator.journal.samples import RECORDS

EARLIER = Path(__file__).with_name("without_checksums.jsonl")
"""`RECORDS` as the version before checksums wrote them."""


def written(folder: ReplicateFolder) -> bytes:
    for record in RECORDS:
        folder.append(record)
    return (folder.path / "journal.jsonl").read_bytes()


def texts(records) -> list[str]:
    """What can be compared where there are NaN."""
    return [json.dumps(record) for record in records]


def num_changed(content: bytes) -> int:
    """How many of all flips of a bit leave a journal that is read without a fault, and otherwise."""
    whole, num = texts(parse(content).records), 0
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        lines = parse(bytes(flipped))
        num += texts(lines.records) != (whole[: len(lines.records)] if lines.fault else whole)
    return num


def test_every_flipped_bit_is_seen_or_changes_no_record(workplace):
    content = written(ReplicateFolder(Path("replicate"), {}))
    lines = parse(content)
    assert len(lines.records) == len(RECORDS) and not lines.fault
    assert num_changed(content) == 0


def test_a_line_is_json_with_the_checksum_of_the_rest_in_front(workplace):
    content = written(ReplicateFolder(Path("replicate"), {}))
    for line, record in zip(content.splitlines(), RECORDS, strict=True):
        found = json.loads(line)
        assert next(iter(found)) == "crc32"
        rest = json.dumps({name: value for name, value in found.items() if name != "crc32"})
        assert f"{zlib.crc32(rest.encode()):08x}" == found["crc32"]
        assert texts([found | record]) == texts([found])


def test_a_journal_of_an_earlier_version_is_read_and_continued(workplace):
    folder = ReplicateFolder(Path("replicate"), {})
    folder.path.mkdir()
    content = EARLIER.read_bytes()
    (folder.path / "journal.jsonl").write_bytes(content)
    earlier = [json.loads(line) for line in content.splitlines()]
    assert texts(record | earlier[i] for i, record in enumerate(RECORDS)) == texts(
        earlier[i] | r for i, r in enumerate(RECORDS)
    )
    assert folder.begin("second") == "" and texts(folder.records()) == texts(earlier)
    folder.append({"kind": "trained"})
    assert (folder.path / "journal.jsonl").read_bytes().startswith(content)
    assert texts(folder.records()[:-1]) == texts(earlier) and folder.records()[-1]["kind"] == "trained"


@pytest.mark.parametrize(
    ("damage", "fault", "num_kept"),
    [
        (lambda content: content.replace(b"1e-300", b"2e-300"), "does not match its checksum", 3),
        (lambda content: content.replace(b'"crc32": "', b'"crc33": "', 1), "does not match its checksum", 0),
        (lambda content: content.replace(b'"lab"', b'"\nab"'), "is no JSON", 0),
        (lambda content: content[:-1] + b"\x0b", "has no line break at its end", len(RECORDS) - 1),
    ],
)
def test_what_is_wrong_is_named_and_the_lines_before_it_count(workplace, damage, fault, num_kept):
    lines = parse(damage(written(ReplicateFolder(Path("replicate"), {}))))
    assert (lines.fault, len(lines.records)) == (fault, num_kept)


def test_a_last_line_that_a_crash_tore_off_is_no_damage_wherever_it_is_torn(workplace):
    content = written(ReplicateFolder(Path("replicate"), {}))
    start = content.rfind(b"\n", 0, -1) + 1
    for end in range(start, len(content)):
        lines = parse(content[:end])
        assert (lines.fault, lines.num_bytes) == ("", start)
