"""The check of a sweep's data, made to pass and to fail."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.checks import sweep as preflight
from orchestrator.checks.check import Check
from orchestrator.cli.check import check
from orchestrator.run import run_here
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.distributions import Real
from search_spaces.sweep import Search
from tests.integration import tiny as tiny_trainable
from tests.orchestrator.checks.test_sweep import on_data, study_of, tiny
from trainables.errors import InputError


def test_data_are_as_before_or_not():
    sweep = tiny({"a": {}, "b": {"x": 0.25}})
    now = {"a": "new", "b": "new"}
    assert preflight.check_fingerprints(sweep, now, None).state == "ok"
    assert preflight.check_fingerprints(sweep, now, study_of(on_data("a", "new"), on_data("c", "old"))).state == "ok"
    check = preflight.check_fingerprints(sweep, now, study_of(on_data("a", "new"), on_data("b", "old")))
    assert check.state == "failed"
    assert all(word in check.found for word in ("'b'", "old", "new"))


def test_a_search_on_other_data_is_a_warning_for_it_starts_anew():
    sweep = tiny({}, search=Search({"x": Real(0.1, 1.0)}, 3))
    study = study_of(on_data("0000 x=0.5", "old"))
    assert preflight.check_fingerprints(sweep, {"": "old"}, study).state == "ok"
    assert preflight.check_fingerprints(sweep, {"": "new"}, study).state == "warning"


def test_broken_data_fail_the_check_with_their_own_words():
    check = preflight.check_fingerprints(tiny({"a": {}}), InputError("tiny.flac is broken."), None)
    assert check == Check(
        "data", "failed", "tiny.flac is broken.", "Correct the data, or name other data with `--set`."
    )


def stopped(*_):
    raise KeyboardInterrupt


def test_files_that_no_fingerprint_tells_from_others_are_a_warning(workplace, settings, monkeypatch, capsys):
    sweep = tiny({"a": {}, "b": {"x": 0.25, "fault_file": workplace / "text.txt"}})
    none = {"a": "", "b": ""}
    (workplace / "text.txt").touch()
    assert preflight.check_fingerprints(sweep, {"a": "its digest", "b": ""}, None).state == "ok", "it has a fingerprint"
    monkeypatch.delattr(tiny_trainable, "fingerprint")
    warned = preflight.check_fingerprints(sweep, none, None)
    assert warned.state == "warning" and "`fault_file`" in warned.found and "fingerprint(config)" in warned.remedy
    said = Console(file=io.StringIO(), width=400)
    assert run_here(sweep.only("b", 1), settings, said).num_failed == 0
    assert f"Warning: {warned.line()}\n" in said.file.getvalue()
    monkeypatch.setattr("orchestrator.cli.check.find", lambda *_: sweep)
    monkeypatch.setattr("orchestrator.checks.resumption.try_out", stopped)
    with pytest.raises(KeyboardInterrupt):
        check("tiny.sweep")
    assert f"Warning: {warned.line()}\n" in capsys.readouterr().out
    (workplace / "text.txt").unlink()
    assert preflight.check_fingerprints(sweep, none, None) == Check("data", "ok", "no fingerprint")


@pytest.mark.parametrize(
    ("path", "value", "holds"),
    [
        ("data.root", "a/b", True), ("data.root", "gone/b", False), ("text", "b.txt", True), ("name", ".", False),
        ("cache_dir", "a/b", False), ("output.folder", "a/b", True), ("data.log_dir", Path("a"), False),
        ("root", Path("a"), True), ("name", "a", False),
    ],
)  # fmt: skip
def test_what_may_be_data_is_a_path_that_is_there_and_is_not_called_as_what_is_written(workplace, path, value, holds):
    (workplace / "a" / "b").mkdir(parents=True)
    (workplace / "b.txt").touch()
    assert preflight._holds_data(path, value) is holds


def test_each_fingerprint_is_computed_once_and_kept(settings, monkeypatch):
    asked = []
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: asked.append(config) or "tiny")
    factory = TaskFactory(tiny({"a": {}, "b": {"x": 0.25}}, prerequisites=()), settings, 0)
    assert preflight.read_fingerprints(factory) == {"a": "tiny", "b": "tiny"}
    preflight.before_ray(factory.sweep, settings, factory)
    assert [config.x for config in asked] == [0.5, 0.25], "once for each config, whatever the seed"


def test_what_decides_the_fingerprint_may_be_said_and_is_asked_once(settings, monkeypatch):
    asked = []
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: asked.append(config) or "tiny")
    monkeypatch.setattr(tiny_trainable, "reads", lambda config: config.num_epochs, raising=False)
    factory = TaskFactory(tiny({"a": {}, "b": {"x": 0.25}, "c": {"num_epochs": 9}}, prerequisites=()), settings, 0)
    assert preflight.read_fingerprints(factory) == {"a": "tiny", "b": "tiny", "c": "tiny"}
    assert [config.num_epochs for config in asked] == [asked[0].num_epochs, 9]


def test_broken_data_are_a_users_mistake_before_a_run(settings, monkeypatch):
    def broken(config):
        raise InputError("tiny.flac is broken.")

    monkeypatch.setattr(tiny_trainable, "fingerprint", broken)
    with pytest.raises(InputError, match=r"^tiny.flac is broken.$"):
        preflight.before_ray(tiny({"a": {}}), settings)
    assert not settings.runs.exists()
