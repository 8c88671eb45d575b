"""What is said of results that stay, or are there already, when others are put away or brought back."""

import itertools

import pytest
from optuna.trial import create_trial
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.checks.sweep import before_ray
from orchestrator.cli.main import app
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.run import run
from orchestrator.scheduler import search_store, task_factory
from orchestrator.scheduler.outdated import make_room
from orchestrator.scheduler.put_away import archive, remove, rename, restore
from orchestrator.scheduler.search_store import dump_searches
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import load_study
from search_spaces.distributions import Real
from tests.door import PLAIN, ponderay, write
from tests.integration import tiny as tiny_trainable
from tests.integration import tiny_first
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts
from tests.orchestrator.made_searches import make_search
from trainables.errors import InputError


def test_others_of_other_code_are_named_and_an_archive_of_what_is_there_restores_nothing(workplace, monkeypatch):
    sweep = tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1, 2))
    run_quietly(sweep)
    settings = read_settings()
    file = archive("tiny.sweep", settings)
    assert restore(file, settings) == ("tiny.sweep", 0, 4)
    said = CliRunner().invoke(app, ["restore", str(file)]).stdout
    assert said == "Of tiny.sweep all 4 are there already; nothing to do.\n"

    with monkeypatch.context() as changed:
        changed.setattr(task_factory, "version_of", lambda *_: "another")
        factory = TaskFactory(tiny({"a": {}}, seeds=(1, 2)), settings, num_gpus=0)
        said = r"--again --condition a would leave b seed 1 and 1 more of other code.*: drop --condition, or add"
        with pytest.raises(RefusedError, match=said):
            make_room(factory, accept_code=False)
        assert make_room(factory, accept_code=True)[1] == 2
    assert restore(file, settings) == ("tiny.sweep", 2, 4), "what rm took away of it comes back, beside what stayed"
    assert len(run_quietly(sweep).replicates) == 4 and set(starts().values()) == {1}

    one = load_study("tiny.sweep", settings).of("b")[0]
    journal = ReplicateFolder(settings.replicates("tiny.sweep") / one.key, {})
    other = {"attempt": "before.1", "code_version": "another", "host": "lab", "device": "cpu"}
    journal.append({"kind": "started", **other})
    journal.append({"kind": "metrics", "step": 5, "metrics": {}})
    factory = TaskFactory(tiny({"b": {"x": 0.25}}, seeds=(1, 2)), settings, num_gpus=0)
    assert make_room(factory, accept_code=False)[1] == 1, "some of its steps are of other code"


def test_nothing_moves_where_a_prerequisite_of_other_code_would_stay(workplace, monkeypatch):
    sweep = tiny({"a": {}, "b": {"x": 0.25}})
    run_quietly(sweep)
    settings = read_settings()
    monkeypatch.setattr(task_factory, "version_of", lambda *_: "another")
    with pytest.raises(RefusedError, match=r"^prerequisite first was trained by version"):
        make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=False)
    assert len(load_study("tiny.sweep", settings).replicates) == 4
    assert make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=True)[1] == 4


def test_accepted_results_of_other_code_are_not_done_where_they_are_to_be_made_again(workplace, monkeypatch):
    sweep, asked = tiny({"a": {}}), []
    monkeypatch.setattr("orchestrator.run.finished_replicates", lambda _, accept_code: asked.append(accept_code))

    def stop():
        raise RefusedError("here")

    monkeypatch.setattr("orchestrator.run.refuse_silent", stop)
    for again in (False, True):
        with pytest.raises(RefusedError, match="here"):
            run(sweep, read_settings(), Console(quiet=True), accept_code=True, again=again)
    assert asked == [True, False]


def test_what_cannot_be_removed_is_not_forgotten(workplace, monkeypatch):
    """A folder of another user, or on a disk that cannot be written, would count as a result of the next run."""
    run_quietly(tiny({"a": {}}, seeds=(1,)))

    def refuse(path, target):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch, pytest.raises(RefusedError, match="must be writable: Permission"):
        patch.setattr("pathlib.Path.rename", refuse)
        remove("tiny.sweep", read_settings(), lambda one: True)
    assert len(load_study("tiny.sweep", read_settings()).replicates) == 1
    remove("tiny.sweep", read_settings(), lambda one: True)
    assert not list((workplace / "runs" / "replicates").rglob("journal.jsonl"))


def test_results_on_other_data_are_moved_where_they_are_to_be_made_again(workplace, monkeypatch):
    sweep, settings = tiny({"a": {}}, seeds=(1,), prerequisites=()), read_settings()
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: "old")
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: "new")
    (check,) = [one for one in before_ray(sweep, settings) if one.name == "data"]
    assert check.state == "failed" and "run --again" in check.remedy
    (check,) = [one for one in before_ray(sweep, settings, again=True) if one.name == "data"]
    assert check.state == "ok"
    assert make_room(TaskFactory(tiny({"a": {}}, seeds=(1,)), settings, num_gpus=0), accept_code=False)[1] == 1


def test_no_study_holds_results_on_old_and_on_new_data(workplace, monkeypatch):
    settings = read_settings()
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: "old")
    run_quietly(tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1,)))
    run_quietly(searched(2, seeds=(1,)))
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: "new")
    alone, whole = tiny({"a": {}}, seeds=(1,)), tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1,))
    with pytest.raises(
        RefusedError, match="--again --condition a would leave b seed 1 of other data: drop --condition"
    ):
        make_room(TaskFactory(alone, settings, num_gpus=0), accept_code=True)
    for sweep in (whole, searched(2, seeds=(1,))):
        assert make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=False)[1] == 2


def test_a_search_is_drawn_again_where_a_prerequisite_has_changed(workplace, monkeypatch):
    sweep, settings = searched(2, seeds=(1,)), read_settings()
    run_quietly(sweep)
    assert make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=False) is None
    monkeypatch.setattr(tiny_first, "fingerprint", lambda config: "new")
    with pytest.raises(RefusedError, match=r"under another trainable or prerequisite.*add --again"):
        run_quietly(sweep)
    assert make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=False)[1] == 2
    assert len(run_quietly(sweep).replicates) == 2


def test_a_search_whose_new_name_was_cut_off_has_all_its_trials_after_the_next_try(workplace, monkeypatch):
    run_quietly(searched(3, seeds=(1,)))
    settings = read_settings()
    (before,) = dump_searches("tiny.search", settings)
    make_search(lambda v: (v["x"], 1.0), 2, {"x": Real(0.1, 1.0)}, "tiny.other", int(before["name"][-16:], 16))
    with pytest.raises(RefusedError, match=r"has another search called tiny\.other; choose another name"):
        rename("tiny.search", "tiny.other", settings)
    calls = itertools.count()

    def cut_off(**trial):
        if next(calls):
            raise KeyboardInterrupt
        return create_trial(**trial)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(search_store, "create_trial", cut_off)
        rename("tiny.search", "tiny.renamed", settings)
    rename("tiny.search", "tiny.renamed", settings)
    (after,) = dump_searches("tiny.renamed", settings)
    assert after == {**before, "name": before["name"].replace("search", "renamed")}
    assert dump_searches("tiny.search", settings) == []
    assert len(load_study("tiny.renamed", settings).replicates) == 3


@pytest.mark.slow
def test_train_again_moves_its_own_replicate_once_also_when_it_is_cut_off(workplace):
    train = ("train", "toy.py:toy", "--condition", "width=4", "--again")
    write(workplace, PLAIN)
    assert all(ponderay(workplace, *train, "--seed", seed).returncode == 0 for seed in "12")
    write(
        workplace,
        PLAIN.replace("  # NOISE", " + 1; step == 4 and not found and exec('import os; os.kill(os.getpid(), 9)')"),
    )
    refused = ponderay(workplace, *train).stderr
    assert "would leave width=4 seed 2 of other code" in refused
    assert "--condition width=4 --seed 1" in refused and "type `ponderay run toy --again`, or add" in refused
    assert not list(workplace.glob("runs/archives/*"))
    cut_off = ponderay(workplace, *train, "--accept-code")
    assert "to be trained anew: 1." in cut_off.stdout and cut_off.returncode == -9
    done = ponderay(workplace, *train, "--accept-code")
    assert done.returncode == 0 and "Moved" not in done.stdout, done.stderr
    assert len(list(workplace.glob("runs/archives/*"))) == 1


def test_of_few_trials_importance_cannot_answer(workplace, monkeypatch):
    from orchestrator.cli import importance as command
    from tests.integration.sweeps import searched

    monkeypatch.setattr(command, "find_with", lambda *_: searched(2))
    with pytest.raises(InputError, match=r"holds no search|needs 20 complete trials"):
        command.importance("tiny.search")
