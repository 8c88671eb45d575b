"""The study file: the last line of a key counts, a crash tears one line at most, and one driver writes it."""

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.journal import study_file
from orchestrator.journal.lines import line_of
from orchestrator.journal.study_file import STUDY_FILE, DeposedError, StudyFile, name_of, read_study_file, to_record
from orchestrator.results.study import Replicate

REPLICATE = b'"kind": "replicate"'
NAN = float("nan")
FIRST = Replicate("k1", "a", 1, "complete", {"loss": NAN, "x": 0.1}, evaluations=frozenset({"test.0"}), host="h")
SECOND = Replicate("k2", "a", 2, "failed", {"loss": math.inf}, error="no\nmemory", is_lost=True)
THIRD = Replicate("k3", "b", 1, "running")


def put(file: StudyFile, *replicates: Replicate) -> None:
    file.put("sweep", "s", {"lease": "l"})
    for one in replicates:
        file.put("condition", one.condition, {"settings": {"x": "1"} if one.condition == "b" else {}})
        file.put("replicate", name_of(one), {"condition": one.condition, "seed": one.seed} | to_record(one))


def study(folder: Path):
    return read_study_file(folder).study("s")


def test_what_was_put_is_read_by_condition_and_seed(tmp_path):
    file = StudyFile(tmp_path / "new" / "s", "l")
    put(file, THIRD, SECOND, FIRST)
    file.close()
    found = study(tmp_path / "new" / "s")
    assert repr(found.replicates) == repr((THIRD, FIRST, SECOND))  # NaN is not equal to itself
    assert found.settings == {"a": {}, "b": {"x": "1"}}
    assert list(found.updated_ms) == ["b", "a"] and min(found.updated_ms.values()) > 1.7e12


def test_an_end_that_mlflow_does_not_have_is_named_and_a_part_names_no_others(tmp_path):
    put(StudyFile(tmp_path, "l"), THIRD, SECOND, FIRST)
    content = read_study_file(tmp_path)
    content = replace(content, mirrors={"a": {"1": study_file.standing(FIRST), "run": "r"}, "": {"run": "s"}})
    assert content.study("s").unmirrored == (("a", 2),)  # the third runs
    of_second = study_file.part_of(content, {name_of(SECOND)}, is_all=True)
    assert of_second.mirrors == {"a": {"run": "r"}, "": {"run": "s"}}
    assert study_file.part_of(content, {name_of(FIRST)}, is_all=True).mirrors == content.mirrors


def test_a_line_is_added_only_for_what_is_new_and_the_last_one_counts(tmp_path):
    file = StudyFile(tmp_path, "l")
    put(file, THIRD, FIRST)
    size = (tmp_path / STUDY_FILE).stat().st_size
    put(file, THIRD, FIRST)
    assert (tmp_path / STUDY_FILE).stat().st_size == size
    file.put("replicate", "b seed 1", {"state": "complete", "metrics": {"loss": 2.0}})
    file.close()
    assert [(one.seed, one.state, dict(one.metrics)) for one in study(tmp_path).of("b")] == [
        (1, "complete", {"loss": 2.0})
    ]


def test_whoever_takes_it_over_keeps_one_line_of_each_key_and_the_one_before_writes_no_more(tmp_path):
    first = StudyFile(tmp_path, "l")
    put(first, THIRD, FIRST)
    first.put("replicate", "b seed 1", {"state": "stopped"})
    before = read_study_file(tmp_path)
    second = StudyFile(tmp_path, "l")
    assert repr(second.content) == repr(before)
    assert (tmp_path / STUDY_FILE).read_bytes().count(b"\n") == 1 + 1 + 2 + 2
    after = read_study_file(tmp_path)
    assert (after.study_id, after.generation) == (before.study_id, 2)
    assert repr(after.study("s")) == repr(before.study("s"))
    with pytest.raises(DeposedError, match="was taken over by another driver"):
        put(first, SECOND)
    first.close()
    put(second, SECOND)
    second.close()
    assert study(tmp_path).conditions == ("b", "a")
    assert [one.key for one in study(tmp_path).of("a")] == ["k1", "k2"]


def test_of_a_file_cut_off_at_any_byte_the_lines_before_count_and_the_next_driver_goes_on(tmp_path):
    file = StudyFile(tmp_path / "whole", "l")
    put(file, THIRD, FIRST, SECOND)
    file.close()
    content = (tmp_path / "whole" / STUDY_FILE).read_bytes()
    header = content.index(b"\n") + 1
    cut = tmp_path / "cut"
    cut.mkdir()
    for length in [*range(header, len(content), 7), len(content) - 1]:
        (cut / STUDY_FILE).write_bytes(content[:length])
        is_torn = content[:length].rfind(b"\n") < content[:length].rfind(REPLICATE)
        num_whole = content[:length].count(REPLICATE) - is_torn
        assert len(study(cut).replicates) == num_whole
        again = StudyFile(cut, "l")
        put(again, THIRD, FIRST, SECOND)
        again.close()
        assert repr(study(cut).replicates) == repr(study(tmp_path / "whole").replicates)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b'"seed": 1', b'"seed": 3', 1),
        lambda content: b"garbage\n" + content,
        lambda content: b"",
        lambda content: content.replace(b"\n", b"", 1),
        lambda _: line_of({"kind": "study", "format": 3, "study": "x", "generation": 7, "time_ms": 1}),
    ],
    ids=["flipped", "garbage", "empty", "joined", "later format"],
)
def test_one_that_is_damaged_or_unknown_says_nothing_and_is_made_anew(tmp_path, damage):
    file = StudyFile(tmp_path, "l")
    put(file, FIRST, THIRD)
    file.close()
    (tmp_path / STUDY_FILE).write_bytes(damage((tmp_path / STUDY_FILE).read_bytes()))
    assert read_study_file(tmp_path) is None
    again = StudyFile(tmp_path, "l")
    assert again.content.replicates == {}
    put(again, THIRD)
    again.close()
    assert study(tmp_path).replicates == (THIRD,)


def test_what_a_later_version_says_beside_it_is_passed_over(tmp_path):
    file = StudyFile(tmp_path, "l")
    put(file, THIRD)
    file.put("replicate", "b seed 1", {"colour": "blue"})
    file.put("curves", "k3", {"loss": [1, 2]})
    file.close()
    assert study(tmp_path).replicates == (THIRD,)


def test_one_that_was_deleted_stays_away_until_the_next_driver(tmp_path):
    file = StudyFile(tmp_path, "l")
    (tmp_path / STUDY_FILE).unlink()
    put(file, FIRST)
    file.close()
    assert read_study_file(tmp_path) is None


def test_a_line_that_finds_no_room_empties_the_file_rather_than_hide_what_follows(tmp_path, monkeypatch):
    file = StudyFile(tmp_path, "l")
    put(file, FIRST)
    write = os.write
    monkeypatch.setattr(study_file.os, "write", lambda handle, line: write(handle, line[:10]))
    put(file, THIRD)
    monkeypatch.undo()
    assert file.fault == f"{tmp_path / STUDY_FILE} cannot be written: No space left on device"
    put(file, SECOND)
    file.close()
    assert read_study_file(tmp_path) is None


def test_what_a_file_of_another_lease_says_is_passed_over(tmp_path):
    """A driver with another runs folder, or another store, went on meanwhile."""
    file = StudyFile(tmp_path, "l")
    put(file, FIRST, THIRD)
    file.close()
    again = StudyFile(tmp_path, "that of another driver")
    assert again.content.replicates == {} and study(tmp_path).replicates == ()
    put(again, THIRD)
    again.close()
    assert study(tmp_path).replicates == (THIRD,)
    assert read_study_file(tmp_path).generation == 2


def test_conditions_are_in_the_order_in_which_they_began_whether_or_not_anything_is_said_of_them(tmp_path):
    file = StudyFile(tmp_path, "l")
    for name, settings in (("z", {}), ("y", {"settings": {"x": "1"}}), ("a", {})):
        file.put("condition", name, settings)
    put(file, FIRST, replace(FIRST, condition="y"), replace(FIRST, condition="z"))
    file.close()
    assert study(tmp_path).conditions == ("z", "y", "a")


def test_conditions_that_drew_the_same_values_have_a_line_each(tmp_path):
    file = StudyFile(tmp_path, "l")
    put(file, FIRST, replace(FIRST, condition="again"))
    file.close()
    assert study(tmp_path).conditions == ("a", "again")


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path):
    (tmp_path / "file").write_text("")
    file = StudyFile(tmp_path / "file" / "s", "l")
    put(file, FIRST)
    file.close()
    assert file.fault.endswith("cannot be written: File exists")


def test_what_is_put_after_the_end_is_lost(tmp_path):
    """A thread that writes into MLflow may still be at work then; the number of the file is soon another one's."""
    file = StudyFile(tmp_path, "l")
    put(file, FIRST)
    file.close()
    with (tmp_path / "other").open("w"):
        put(file, THIRD)
        file.close()
    assert study(tmp_path).replicates[0].key == "k1" and len(study(tmp_path).replicates) == 1
    assert (tmp_path / "other").read_text() == ""


def test_an_earlier_file_that_was_put_in_its_place_is_left_alone(tmp_path):
    """Its lease is that of an earlier driver, so nobody believes it."""
    earlier = StudyFile(tmp_path, "l")
    put(earlier, FIRST)
    content = (tmp_path / STUDY_FILE).read_bytes()
    file = StudyFile(tmp_path, "l")
    (tmp_path / "restored").write_bytes(content)
    (tmp_path / "restored").replace(tmp_path / STUDY_FILE)
    put(file, THIRD)
    file.close()
    assert (tmp_path / STUDY_FILE).read_bytes() == content
    assert file.fault


def test_a_copy_of_the_file_itself_in_its_place_goes(tmp_path):
    """It has the lease of the driver that lives, and nothing that comes behind."""
    file = StudyFile(tmp_path, "l")
    put(file, FIRST)
    (tmp_path / "copied").write_bytes((tmp_path / STUDY_FILE).read_bytes())
    (tmp_path / "copied").replace(tmp_path / STUDY_FILE)
    put(file, THIRD)
    file.close()
    assert not (tmp_path / STUDY_FILE).exists()
    assert file.fault


@pytest.mark.parametrize(("lease", "following"), [("l", "mine"), ("that of another driver", None)])
def test_a_file_that_goes_on_has_the_lease_of_its_driver_from_the_first_moment(tmp_path, lease, following):
    put(StudyFile(tmp_path, ""), FIRST)
    content = StudyFile(tmp_path, lease, "mine").content
    assert content.sweep.get("lease") == read_study_file(tmp_path).sweep.get("lease") == following


def test_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "theirs").write_text("mine\n")
    (tmp_path / STUDY_FILE).symlink_to(tmp_path / "theirs")
    StudyFile(tmp_path, "l").close()
    assert (tmp_path / "theirs").read_text() == "mine\n"
    assert not (tmp_path / STUDY_FILE).is_symlink()
