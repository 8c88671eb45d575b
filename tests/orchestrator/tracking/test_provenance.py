"""What is read of where a study came from, how many queries that takes, and what is never shown."""

import itertools

import pytest
from mlflow.entities import Param

from orchestrator.results.study import Study
from orchestrator.tracking import provenance
from orchestrator.tracking.mlflow_runs import MlflowRuns
from orchestrator.tracking.provenance import read_provenance
from orchestrator.tracking.sqlite_runs import find_runs
from tests.orchestrator.recorded import Store, replicate

PACKAGES = "python==3 torch==2"


class Watched:
    """The store's client; counts queries and the runs that they gave."""

    def __init__(self, store):
        self._client, self.num_queries, self.num_runs = store.client, 0, 0

    def __getattr__(self, name):
        return getattr(self._client, name)

    def search_runs(self, *arguments, **options):
        page = self._client.search_runs(*arguments, **options)
        self.num_queries, self.num_runs = self.num_queries + 1, self.num_runs + len(page)
        return page


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlflow.db")


@pytest.fixture
def record(store):
    """Records a replicate in a run of its own, each started after the one before; returns it."""
    clock = itertools.count(1)

    def call(condition, seed, command="ponderay run asr.demo", commit="c0ffee", params=None):
        tags = {"command": command, "git_commit": commit, "packages": PACKAGES, "unheard": "of"}
        tags = {f"ponderay.{name}": value for name, value in tags.items()} | {"ponderay.kind": "replicate"}
        run_id = store.client.create_run(store.experiment_id, next(clock), tags, condition).info.run_id
        listed = [Param(path, value) for path, value in (params or {"seed": str(seed), "lr": "0.1"}).items()]
        store.client.log_batch(run_id, params=listed)
        facts = {"host": f"host{seed}", "device": "cpu", "data_fingerprint": "d1"}
        return replicate(condition, seed, run_id=run_id, **facts)

    return call


@pytest.fixture(params=["mlflow", "file"])
def runs(request, store):
    """The runs of the sweep, as MLflow gives them and as the store's file does."""
    return (
        MlflowRuns(store.client, store.experiment_id) if request.param == "mlflow" else find_runs(store.uri, "asr.demo")
    )


def test_distinct_values_come_in_the_order_first_seen_and_each_takes_one_query(store, record):
    made = [("later", "ponderay run asr.demo"), ("c0ffee", "ponderay train --set 'a b=1'"), ("c0ffee", "ponderay x")]
    replicates = [record(f"c{i}", 1, command, commit) for i, (commit, command) in enumerate(made)]
    replicates += [record(f"more{i}", 2) for i in range(20)]
    client = Watched(store)
    found = read_provenance(MlflowRuns(client, store.experiment_id), Study("asr.demo", tuple(replicates)))
    assert found.commits == ("later", "c0ffee")
    assert found.commands == tuple(command for _, command in made)
    assert found.packages == (PACKAGES,)
    assert (found.hosts, found.devices) == (("host1", "host2"), ("cpu",))
    assert (found.code_versions, found.fingerprints, found.seeds) == (("v1",), ("d1",), (1, 2))
    assert found.configs == {one.condition: {"lr": "0.1"} for one in replicates}
    assert found.diffs == {} and found.notes == ()
    # two commits, three commands and one set of packages, each found and then found to be all; configs; the sweep's run
    assert client.num_queries == (2 + 1) + (3 + 1) + (1 + 1) + 1 + 1
    assert client.num_runs == 2 + 3 + 1 + 23


def test_a_command_with_both_kinds_of_quotes_ends_mlflows_list_and_that_is_said(store, record):
    strange = """ponderay run asr.demo --set 'a="b"'"""
    study = Study("asr.demo", (record("a", 1, "first"), record("b", 1, strange), record("c", 1, "third")))
    found = read_provenance(MlflowRuns(store.client, store.experiment_id), study)
    assert found.commands == ("first", strange)
    assert found.notes == ("Of `ponderay.command` the first 2 distinct values are listed; there may be more.",)
    found = read_provenance(find_runs(store.uri, "asr.demo"), study)
    assert (found.commands, found.notes) == (("first", strange, "third"), ())


def test_the_stores_file_says_what_mlflow_says(store, record):
    made = [record(f"c{i}", 1, f"ponderay run {i % 3}", f"commit{i % 2}", {"lr": f"0.{i}", "u": "ü"}) for i in range(7)]
    gone = record("gone", 1, "ponderay run in.vain")
    store.client.delete_run(gone.run_id)
    study = Study("asr.demo", (*made, gone))
    by_mlflow, found = (
        read_provenance(runs, study)
        for runs in (MlflowRuns(store.client, store.experiment_id), find_runs(store.uri, "asr.demo"))
    )
    assert found == by_mlflow
    assert found.commands == tuple(f"ponderay run {i}" for i in range(3)) and len(found.configs) == 7


def test_of_many_conditions_the_wanted_ones_are_read_first(runs, record, monkeypatch):
    monkeypatch.setattr(provenance, "MOST_CONFIGS", 2)
    monkeypatch.setattr(provenance, "MOST_VALUES", 1)
    study = Study("asr.demo", tuple(record(name, 1, f"ponderay run {name}") for name in "abcd"))
    found = read_provenance(runs, study, conditions=["d"])
    assert list(found.configs) == ["d", "a"]
    assert "Configs of 2 of 4 conditions are listed." in found.notes
    assert "Of `ponderay.command` the first 1 distinct values are listed; there may be more." in found.notes


def test_each_diff_comes_once_by_the_name_of_a_session_and_very_large_ones_are_left_out(
    store, runs, record, monkeypatch
):
    monkeypatch.setattr(provenance, "MOST_DIFF_BYTES", 20)
    tags = {"ponderay.kind": "sweep"}
    run_id = store.client.create_run(store.experiment_id, 1, tags, "asr.demo").info.run_id
    store.client.log_text(run_id, "-old\n+new ü\n", "uncommitted/5e5510.diff")
    store.client.log_text(run_id, "-old\n+new ü\n", "uncommitted/7777.diff")
    store.client.log_text(run_id, "x" * 21, "uncommitted/large.diff")
    store.client.log_text(run_id, "x", "uncommitted/note.txt")
    store.client.log_text(run_id, "secret", "elsewhere/other.diff")
    found = read_provenance(runs, Study("asr.demo", (record("a", 1),)))
    assert found.diffs == {"5e5510": "-old\n+new ü\n"}
    assert found.notes == ("uncommitted/large.diff has 21 bytes and is not shown; MLflow has it.",)


def test_files_that_cannot_be_reached_are_noted(store, record, monkeypatch):
    store.client.create_run(store.experiment_id, 1, {"ponderay.kind": "sweep"}, "asr.demo")

    def fail(*_):
        raise OSError("no route to http://me:hunter2@lab\nfor the files")

    client = Watched(store)
    monkeypatch.setattr(client, "list_artifacts", fail, raising=False)
    found = read_provenance(MlflowRuns(client, store.experiment_id), Study("asr.demo", (record("a", 1),)))
    assert found.notes == ("Uncommitted changes could not be read: no route to http://me:***@lab",)


def test_a_study_without_an_experiment_has_what_its_replicates_say(store):
    found = read_provenance(MlflowRuns(store.client, ""), Study("asr.other", (replicate("a", 3, host="here"),)))
    assert (found.hosts, found.seeds, found.commits, found.configs, found.notes) == (("here",), (3,), (), {}, ())


def test_secrets_are_masked_in_configs(runs, record):
    params = {"data.url": "https://me:hunter2@host/x", "data.token": "hunter2", "tokens": "words"}
    found = read_provenance(runs, Study("asr.demo", (record("a", 1, params=params),)))
    assert found.configs["a"] == {"data.url": "https://me:***@host/x", "data.token": "***", "tokens": "words"}
