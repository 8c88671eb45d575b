"""A folder that is the driver's is told from one of the same name."""

import errno
import os
import threading

from orchestrator.machine.shared_folder_check import MARK, ensure_mark, read_mark


def test_a_folder_keeps_its_mark_and_no_other_has_it(tmp_path):
    mark = ensure_mark(tmp_path / "runs" / "sweep")
    assert (
        len(mark) == 16 and ensure_mark(tmp_path / "runs" / "sweep") == read_mark(tmp_path / "runs" / "sweep") == mark
    )
    assert ensure_mark(tmp_path / "disk" / "sweep") != mark
    assert (tmp_path / "runs" / "sweep" / MARK).stat().st_mode & 0o777 == 0o644  # workers may run as another user


def test_a_folder_without_a_mark_and_one_that_is_not_there_have_none(tmp_path):
    assert read_mark(tmp_path) == read_mark(tmp_path / "none") == ""


def test_drivers_that_make_it_at_once_agree_and_leave_nothing_else(tmp_path):
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_mark(tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(list(tmp_path.iterdir())) == 1


def test_a_disk_without_hard_links_can_be_marked_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert len(mark := ensure_mark(tmp_path)) == 16 and ensure_mark(tmp_path) == mark
    assert [file.name for file in tmp_path.iterdir()] == [MARK]
