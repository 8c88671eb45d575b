"""Bundles that are as they should be, changed ones, and archives made to do harm."""

import csv
import hashlib
import io
import json
import stat
import struct
import zipfile

import pytest

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle import read
from orchestrator.report.bundle.verify import verify
from orchestrator.report.bundle.write import write_bundle
from orchestrator.results.study import Study
from search_spaces.claim import NumberClaim, Place, Published, Setting, Source, StatementClaim
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.bundle.changed import changed
from tests.orchestrator.report.studies import PROVENANCE, question, small_study
from trainables.errors import InputError

CONDITIONS = "tables/asr.demo.conditions.csv"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    file = tmp_path_factory.mktemp("whole") / "it.zip"
    answers = answer(small_study(), question())
    write_bundle(file, answers, tables(answers), PROVENANCE, "<html></html>")
    return file


@pytest.fixture
def rewritten(whole, tmp_path):
    """The bundle with its members changed by a function; with a manifest that agrees, or the old one."""

    def call(change, agree=False):
        with zipfile.ZipFile(whole) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        if agree:
            about = json.loads(members["MANIFEST.json"])
            others = {name: content for name, content in members.items() if name != "MANIFEST.json"}
            about["members"] = {n: {"sha256": hashlib.sha256(x).hexdigest(), "size": len(x)} for n, x in others.items()}
            members["MANIFEST.json"] = json.dumps(about).encode()
        file = tmp_path / "changed.zip"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return file

    return call


def edited(members, name, row, column, change):
    """Changes one cell of a table; returns it before and after."""
    rows = list(csv.reader(io.StringIO(members[name].decode())))
    place = rows[0].index(column)
    before = rows[row][place]
    rows[row][place] = change(before)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    members[name] = text.getvalue().encode()
    return before, rows[row][place]


def test_a_bundle_as_it_was_written_has_no_differences(whole):
    found = verify(whole)
    assert found.differences == () and found.other_versions == {}
    assert (found.sweep, found.num_replicates, found.num_members, found.num_tables) == ("asr.demo", 9, 14, 8)
    with zipfile.ZipFile(whole) as archive:
        listed = [name for name in archive.namelist() if name.startswith("tables/")]
        cells = [list(csv.reader(io.StringIO(archive.read(name).decode()))) for name in listed]
    assert found.num_cells == sum(len(rows[0]) * (len(rows) - 1) for rows in cells)


@pytest.mark.parametrize("agree", [False, True])
def test_a_changed_cell_is_named_with_both_values(rewritten, agree):
    pair = []

    def change(members):
        pair.extend(edited(members, CONDITIONS, 2, "per_mean", lambda cell: repr(float(cell) * (1 + 1e-6))))

    found = verify(rewritten(change, agree)).differences
    (cell,) = [one for one in found if one.column]
    assert (cell.member, cell.column, cell.written, cell.found) == (CONDITIONS, "per_mean", pair[1], pair[0])
    assert cell.row.startswith("2 (")
    assert [one.member for one in found if not one.column] == ([] if agree else [CONDITIONS])


def test_numbers_count_as_equal_up_to_a_billionth_and_text_only_if_the_same(rewritten):
    def change(members):
        edited(members, CONDITIONS, 1, "per_mean", lambda cell: repr(float(cell) * (1 + 1e-11)))
        edited(members, CONDITIONS, 2, "standing", lambda cell: cell + " ")
        edited(members, "tables/asr.demo.replicates.csv", 1, "seed", lambda cell: cell + ".0")
        edited(members, "tables/asr.demo.replicates.csv", 2, "key", lambda cell: cell.upper())

    found = verify(rewritten(change, agree=True)).differences
    assert [one.column for one in found] == ["standing", "seed", "key"]  # raw whole numbers are exact


def test_a_changed_raw_value_shows_in_the_tables_that_it_goes_into(rewritten):
    def change(members):
        content = json.loads(members["study.json"])
        content["replicates"][0]["metrics"]["per@greedy"] += 0.01
        members["study.json"] = json.dumps(content).encode()

    found = verify(rewritten(change, agree=True)).differences
    places = {(one.member.split(".")[2], one.column) for one in found}
    assert {("replicates", "per@greedy"), ("metrics", "mean"), ("conditions", "per_mean")} <= places
    assert ("comparisons", "difference") in places
    assert all(one.row.partition("(")[2].startswith(("random", "surprisal", "always_big")) for one in found)


def test_a_changed_page_is_noticed_by_the_manifest(rewritten):
    def change(members):
        members["report.html"] = b"<html>all is well</html>"

    (found,) = verify(rewritten(change)).differences
    assert found.member == "report.html" and found.found.startswith("24 bytes, sha256 ")


def test_a_changed_manifest_is_noticed(rewritten):
    def change(members):
        about = json.loads(members["MANIFEST.json"])
        about["members"]["README.txt"]["sha256"] = "0" * 64
        about["written_by"]["numpy"] = "1.0"
        members["MANIFEST.json"] = json.dumps(about).encode()

    found = verify(rewritten(change))
    assert [one.member for one in found.differences] == ["README.txt"]
    assert list(found.other_versions) == ["numpy"] and found.other_versions["numpy"][0] == "1.0"


def test_rows_columns_and_tables_that_are_missing_or_too_many_are_differences(rewritten):
    def change(members):
        members[CONDITIONS] = b"\n".join(members[CONDITIONS].splitlines()[:-1])
        members["tables/asr.demo.claims.csv"] = b"other,columns\n"
        members["tables/asr.demo.replicates.csv"] = b""
        del members["tables/asr.demo.metrics.csv"]
        members["tables/more.csv"] = b"a\n1\n"

    found = {one.member: one for one in verify(rewritten(change, agree=True)).differences}
    assert found[CONDITIONS].written.endswith("rows") and found[CONDITIONS].written != found[CONDITIONS].found
    assert found["tables/asr.demo.claims.csv"].written == "other, columns"
    assert found["tables/asr.demo.replicates.csv"].written == "no table"
    assert found["tables/asr.demo.metrics.csv"].written == "no such table"
    assert found["tables/more.csv"].found == "no such table"
    assert len(found) == 5


def remove(name):
    return lambda members: members.pop(name)


def put(name, content):
    return lambda members: members.__setitem__(name, content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (remove("study.json"), r"has no study\.json"),
        (remove("MANIFEST.json"), r"has no MANIFEST\.json"),
        (remove(CONDITIONS), r"has no 'tables/asr\.demo\.conditions\.csv', which its manifest lists"),
        (put("tables/extra.csv", b""), r"has a member tables/extra\.csv that its manifest does not list"),
        (put("note.txt", b""), "'note.txt', which is no name in a bundle"),
        (put("/etc/passwd", b""), "no name in a bundle"),
        (put("../up.txt", b""), "no name in a bundle"),
        (put("tables/../../up.csv", b""), "no name in a bundle"),
        (put("tables/..csv", b""), "no name in a bundle"),
        (put("tables\\up.csv", b""), "no name in a bundle"),
        (put("diffs/", b""), "no name in a bundle"),
        (put("tables/a.csv\n", b""), "no name in a bundle"),
        (put("MANIFEST.json", b"{"), r"MANIFEST\.json must be JSON"),
        (put("MANIFEST.json", b"{}"), r"MANIFEST\.json must hold what a report writes, but `format`"),
        (
            put("MANIFEST.json", b'{"format": 0, "sweep": "s", "written_by": {}, "members": {}}'),
            "has format 0, which no",
        ),
        (put("MANIFEST.json", b'{"format": 9}'), "has format 9: a newer Ponderay wrote it"),
    ],
)
def test_members_that_are_missing_too_many_or_elsewhere_are_refused(rewritten, change, reason):
    with pytest.raises(InputError, match=reason):
        verify(rewritten(change))


def test_values_that_are_none_are_refused(rewritten):
    with pytest.raises(InputError, match=r"question\.json must hold what a report writes, but `test`"):
        verify(rewritten(lambda members: change_question(members, "test", "astrology"), agree=True))
    names = "'asr.demo', 'asr.other' and 'asr.demo'"
    with pytest.raises(InputError, match=f"about one sweep, but its members name {names}"):
        verify(rewritten(lambda members: change_question(members, "sweep", "asr.other"), agree=True))
    with pytest.raises(InputError, match=r"No complete replicate of asr\.demo has the metric 'nothing'"):
        objectives = [{"metric": "nothing", "direction": "minimize"}, {"metric": "macs_per_frame"}]
        verify(rewritten(lambda members: change_question(members, "objectives", objectives), agree=True))


def test_names_that_would_do_things_to_a_terminal_are_refused(rewritten):
    with pytest.raises(InputError, match=r"names that can be printed, but has 'r\\x1b\[2J'"):
        verify(rewritten(lambda members: change_question(members, "reference", "r\x1b[2J"), agree=True))


def change_question(members, name, value):
    members["question.json"] = json.dumps(json.loads(members["question.json"]) | {name: value}).encode()


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"not a zip", b"\x80\x04cos\nsystem\n"])
def test_a_file_that_is_no_archive_is_refused(tmp_path, content):
    file = tmp_path / "it.zip"
    file.write_bytes(content)
    with pytest.raises(InputError, match="is no bundle"):
        verify(file)


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere.zip"):
        with pytest.raises(InputError, match="but is no file"):
            verify(place)


def test_a_bundle_cut_short_or_with_a_flipped_byte_is_refused(whole, tmp_path):
    content = whole.read_bytes()
    file = tmp_path / "it.zip"
    for broken in (content[:-100], content[: len(content) // 2], content[100:]):
        file.write_bytes(broken)
        with pytest.raises(InputError, match="is no bundle"):
            verify(file)
    with zipfile.ZipFile(whole) as archive:
        entry = archive.getinfo("study.json")
    place = entry.header_offset + 30 + len("study.json") + entry.compress_size // 2
    file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
    with pytest.raises(InputError, match="cannot be read as a zip archive"):
        verify(file)


def test_a_bomb_is_refused_before_it_is_unpacked(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(read, "size_limit", lambda _: 1_000_000)
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("study.json", b"0" * 1_000_001)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("was unpacked"))
    with pytest.raises(InputError, match=r"has 1,000,001 bytes of study\.json, more than 1,000,000"):
        verify(file)


def test_a_bomb_of_many_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "TOTAL_LIMIT", 1000)
    monkeypatch.setattr(read, "MOST_MEMBERS", 20)
    file = tmp_path / "bomb.zip"
    for number, reason in ((21, "has 21 members, more than 20"), (11, "has 1,100 bytes, more than 1,000")):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(number):
                archive.writestr(f"tables/t{i}.csv", b"0" * 100)
        with pytest.raises(InputError, match=reason):
            verify(file)


def test_a_member_larger_than_the_archive_says_is_refused(tmp_path, whole):
    """The directory at the end of the archive is made to say that a member is one byte long."""
    content = bytearray(whole.read_bytes())
    with zipfile.ZipFile(whole) as archive:
        names = archive.namelist()
        start = archive.start_dir
    for name in names:
        if name == "report.html":
            struct.pack_into("<I", content, start + 24, 1)
        start += 46 + len(name)
    file = tmp_path / "it.zip"
    file.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a zip archive"):
        verify(file)


def entry(name, mode=0o100644):
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    return made


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_links_duplicates_and_other_compression_are_refused(tmp_path):
    file = tmp_path / "it.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry("study.json", stat.S_IFLNK | 0o777), "/etc/passwd")
    with pytest.raises(InputError, match=r"has a member study\.json that is a link"):
        verify(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry("study.json"), "{}")
        archive.writestr(entry("study.json"), "{}")
    with pytest.raises(InputError, match=r"has 2 members named study\.json"):
        verify(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("study.json", "{}")
    with pytest.raises(InputError, match="encrypted or compressed in another way"):
        verify(file)


def test_a_name_with_a_hidden_end_is_refused(tmp_path):
    """A zip's name may go on after a zero byte, where Python's reader stops."""
    file = tmp_path / "it.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("study.jsonX.exe", "{}")
    file.write_bytes(file.read_bytes().replace(b"study.jsonX.exe", b"study.json\0.exe"))
    with pytest.raises(InputError, match="no name in a bundle"):
        verify(file)


CLAIM = StatementClaim(
    "mine", ("asr.demo",), "It errs less.", Place("surprisal", "per", "greedy"), "below", 0.5, Source("p", "t"),
    Setting("here"),
)  # fmt: skip

NUMBER = NumberClaim(
    "n", ("asr.demo",), Place("random", "per", "greedy", over=Place("surprisal", "per", "greedy")),
    Published(1.1, 0.1, 3), 0.2, "a fifth", Source("p", "t"), Setting("here", {"controller.kind": "random"}),
)  # fmt: skip


def with_claims(folder, claims, beside=()):
    """With `beside` None with a family for comparisons and one for claims, as before format 6."""
    file = folder / "claims.zip"
    answers = answer(small_study(), question(claims=claims), beside)
    write_bundle(file, answers, tables(answers), PROVENANCE, "<html></html>")
    return file


def test_a_bundle_holds_the_claims_so_that_their_verdicts_are_made_again_anywhere(tmp_path):
    file = with_claims(tmp_path, (NUMBER, CLAIM))
    found = verify(file)
    assert found.differences == () and found.num_reworded == 0
    with zipfile.ZipFile(file) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("tables/asr.demo.claims.csv").decode())))
    assert [row["id"] for row in rows] == ["n", "mine"]

    def change(members):
        content = json.loads(members["question.json"])
        content["claims"][1]["right"] = 0.01
        members["question.json"] = json.dumps(content).encode()

    columns = {(one.member, one.column) for one in verify(changed(file, change)).differences}
    assert ("tables/asr.demo.claims.csv", "finding") in columns


def test_a_bundle_of_format_1_has_no_claims_and_its_table_of_them_is_not_made_again(tmp_path):
    def change(members):
        content = json.loads(members["question.json"])
        del content["claims"]
        members["question.json"] = json.dumps(content).encode()
        return 1

    found = verify(changed(with_claims(tmp_path, (CLAIM,), None), change))
    assert found.differences == () and found.num_tables == 4


def test_a_bundle_of_format_3_has_no_table_at_equal_cost(tmp_path):
    def change(members, version):
        for table in ("equal_cost", "training", "over_items"):
            del members[f"tables/asr.demo.{table}.csv"]
        return version

    file = with_claims(tmp_path, (CLAIM,), None)
    found = verify(changed(file, lambda members: change(members, 3)))
    assert found.differences == () and (found.num_tables, found.unmade) == (5, ())
    untold = verify(changed(with_claims(tmp_path, (CLAIM,), None), lambda members: 3))
    assert untold.unmade == tuple(
        f"tables/asr.demo.{table}.csv" for table in ("equal_cost", "training", "over_items")
    )  # they may be anything
    lacking = verify(changed(with_claims(tmp_path, (CLAIM,), None), lambda members: change(members, 4)))
    assert [one.member for one in lacking.differences] == ["tables/asr.demo.equal_cost.csv"]


@pytest.mark.parametrize("name", ["warnings", "note", "reason"])
def test_a_metric_that_is_called_as_a_column_of_sentences_is_no_sentence(tmp_path, name):
    replicates = [replicate("random", seed, metrics={"per": 0.3, "macs_per_frame": 1.0, name: 1.0}) for seed in (1, 2)]
    answers = answer(Study("asr.demo", tuple(replicates)), question())
    file = tmp_path / "it.zip"
    write_bundle(file, answers, tables(answers), PROVENANCE, "<html></html>")
    assert not verify(file).differences
    replicates_csv = "tables/asr.demo.replicates.csv"
    found = verify(changed(file, lambda members: edited(members, replicates_csv, 1, name, lambda _: "999.0") and None))
    assert [(one.member, one.column, one.written) for one in found.differences] == [(replicates_csv, name, "999.0")]


@pytest.mark.parametrize(("field", "value"), [("margin", "NaN"), ("margin", -1.0)])
def test_claims_of_impossible_numbers_are_refused(tmp_path, field, value):
    def change(members):
        content = json.loads(members["question.json"])
        content["claims"][0][field] = value
        members["question.json"] = json.dumps(content).encode()

    with pytest.raises(
        InputError, match=r"question\.json must hold what a report writes, but `claims\.0.* from 0, but"
    ):
        verify(changed(with_claims(tmp_path, (NUMBER,)), change))
