"""What is in a bundle, that no digit is lost, and that equal content gives equal bytes."""

import hashlib
import json
import math
import zipfile
from dataclasses import replace

import pytest

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle import write as bundle
from orchestrator.report.bundle.records import read_question, read_study, study_json
from orchestrator.report.bundle.write import safe_name, write_bundle
from orchestrator.report.table import Table
from orchestrator.results.study import Study
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError


@pytest.fixture(scope="module")
def answers():
    return answer(small_study(), question())


def write(folder, answers, provenance=PROVENANCE, name="it.zip"):
    file = folder / name
    write_bundle(file, answers, tables(answers), provenance, "<html>ü</html>")
    return file


def members(file):
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_holds_values_question_origin_tables_page_and_a_manifest_of_them(tmp_path, answers):
    found = members(write(tmp_path, answers))
    kinds = ("claims", "comparisons", "conditions", "equal_cost", "metrics", "over_items", "replicates", "training")
    expected = {"MANIFEST.json", "README.txt", "diffs/5e5510.diff", "provenance.json", "question.json", "report.html"}
    assert set(found) == expected | {"study.json"} | {f"tables/asr.demo.{kind}.csv" for kind in kinds}
    manifest = json.loads(found.pop("MANIFEST.json"))
    digests = {name: {"sha256": hashlib.sha256(x).hexdigest(), "size": len(x)} for name, x in found.items()}
    assert manifest["members"] == digests
    assert (manifest["format"], manifest["sweep"], manifest["written_by"]["ponderay"]) == (8, "asr.demo", "0.1.0")
    assert {"python", "commit", "numpy", "scipy", "moocore"} < set(manifest["written_by"])
    assert found["diffs/5e5510.diff"] == b"-old\n+new\n"
    assert found["report.html"].decode() == "<html>ü</html>"
    assert json.loads(found["provenance.json"])["commits"] == ["c0ffee+"] and b"+new" not in found["provenance.json"]


def test_study_and_question_come_back_as_they_were(tmp_path, answers):
    found = members(write(tmp_path, answers))
    assert read_question(found["question.json"]) == answers.question
    study = read_study(found["study.json"])
    assert repr(study.replicates) == repr(answers.study.replicates)  # NaN is not equal to itself


def test_no_digit_is_lost_and_what_is_no_number_in_json_is_text():
    values = {"sum": 0.1 + 0.2, "tiny": 5e-324, "huge": 1.7976931348623157e308, "zero": -0.0, "plus": math.inf}
    values |= {"minus": -math.inf, "none": math.nan, "third": 1 / 3}
    content = study_json(Study("s", (replicate("<a>", 1, metrics=values, duration_s=math.inf, error="\ud800 \x00"),)))

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    plain = json.loads(content, parse_constant=refuse)["replicates"][0]["metrics"]
    assert (plain["none"], plain["plus"], plain["minus"]) == ("NaN", "Infinity", "-Infinity")
    (found,) = read_study(content).replicates
    assert {name: value.hex() for name, value in found.metrics.items()} == {n: v.hex() for n, v in values.items()}
    assert found.duration_s == math.inf and found.error == "\ud800 \x00" and found.condition == "<a>"


@pytest.mark.parametrize(
    ("lengths", "errors"),
    [([0.0, 0.0], [1, 2]), ([-1.0, 2.0], [1, 2]), (["NaN", 1.0], [1, 2]), ([1.0, 1.0], [1, 1e300])],
)
def test_made_up_errors_by_item_are_refused(lengths, errors):
    """Such lengths and errors come to no rate that could be computed."""
    items = {"test_sets": [[[name, "g", length] for name, length in zip("ab", lengths, strict=True)]]}
    items["errors"] = [{"condition": "a", "seed": 1, "metric": "per@t", "test_set": 0, "errors": errors}]
    content = {"sweep": "s", "replicates": [], "items": items}
    with pytest.raises(InputError, match=r"^study\.json must have (lengths of items from 0|an error of each item)"):
        read_study(json.dumps(content).encode())
    items["test_sets"], items["errors"][0]["errors"] = [[["a", "g", 0.0], ["b", "g", 1.0]]], [1, 2]
    assert read_study(json.dumps(content).encode()).items.errors[0].errors == (1, 2)


def test_equal_content_gives_equal_bytes_and_other_content_does_not(tmp_path, answers):
    first, second = write(tmp_path, answers, name="1.zip"), write(tmp_path, answers, name="2.zip")
    assert first.read_bytes() == second.read_bytes()
    other = replace(PROVENANCE, hosts=("elsewhere",))
    assert write(tmp_path, answers, other, "3.zip").read_bytes() != first.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.zip", "2.zip", "3.zip"]


def test_members_are_plain_files_in_order_without_a_time_of_day(tmp_path, answers):
    with zipfile.ZipFile(write(tmp_path, answers)) as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("asr.demo.conditions", "asr.demo.conditions"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\x", "C_x"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("", "_"),
        ("ü" * 3, "_"),
        ("a" * 200, "a" * 160),
    ],
)
def test_names_of_members_are_names_of_files_anywhere(name, safe):
    assert safe_name(name) == safe


def test_every_table_of_the_longest_name_has_a_file():
    names = {bundle.table_member(f"{'x' * 100}.{kind}") for kind in ("front", "conditions", "comparisons")}
    assert len(names) == 3 and all(bundle.NAME.fullmatch(name) for name in names)


def test_diffs_whose_safe_names_meet_are_all_kept(tmp_path, answers):
    provenance = replace(PROVENANCE, diffs={"a/b": "1", "a:b": "2", "a_b": "3"})
    found = members(write(tmp_path, answers, provenance))
    assert sorted(content for name, content in found.items() if name.startswith("diffs/")) == [b"1", b"2", b"3"]


def test_what_verify_would_not_read_is_not_written(tmp_path, answers, monkeypatch):
    monkeypatch.setitem(bundle.LIMITS, "study.json", 100)
    with pytest.raises(
        InputError, match=r"study\.json must have at most 100 bytes, but has [\d,]+; the report without"
    ):
        write(tmp_path, answers)
    monkeypatch.setitem(bundle.LIMITS, "study.json", 10**6)
    monkeypatch.setattr(bundle, "MOST_METRICS", 2)
    with pytest.raises(InputError, match=r"at most, but this one would have \d; the report without --bundle"):
        write(tmp_path, answers)
    monkeypatch.setattr(bundle, "MOST_METRICS", 10_000)
    monkeypatch.setattr(bundle, "MOST_MEMBERS", 5)
    with pytest.raises(InputError, match=r"at most 5 members .*, but this one would have 15 and"):
        write(tmp_path, answers)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_the_bundle_as_it_was(tmp_path, answers, monkeypatch):
    before = write(tmp_path, answers).read_bytes()

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, answers, replace(PROVENANCE, hosts=("elsewhere",)))
    assert [path.name for path in tmp_path.iterdir()] == ["it.zip"]
    assert (tmp_path / "it.zip").read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"sweep": 1, "replicates": []}',
        b'{"sweep": "s", "replicates": [{"condition": "a"}]}',
        b'{"sweep": "s", "replicates": [{"condition": "a", "seed": 1, "key": "k", "state": "odd"}]}',
        b'{"sweep": "s", "replicates": [{"condition": "a", "seed": 1, "key": "k", "state": "failed", "metrics": [1]}]}',
    ],
)
def test_what_is_no_study_is_refused_in_one_line(content):
    with pytest.raises(InputError, match=r"^study\.json must") as refused:
        read_study(content)
    assert "\n" not in str(refused.value)


def test_a_table_with_a_strange_name_is_a_member_like_others(tmp_path, answers):
    file = tmp_path / "it.zip"
    write_bundle(file, answers, [Table("../<x>", "", ("a",), (("1",),))], PROVENANCE, "")
    assert members(file)["tables/_x_.csv"] == b"a\n1\n"
