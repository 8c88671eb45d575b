"""Reading a local store without MLflow gives what MLflow's client gives, after everything that can happen to it."""

import math
import sqlite3
import subprocess
import sys

import pytest

from orchestrator.tracking import mlflow_reader, sqlite_reader
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlflow.db")


def both(store, cache):
    """The study as both read it."""
    found = sqlite_reader.read_study(store.uri, "asr.demo", cache)
    assert found is not None
    through_mlflow = mlflow_reader.read_study(store.client, "asr.demo", store.experiment_id, None)
    assert repr(found) == repr(through_mlflow)
    return found


@pytest.mark.parametrize("is_cached", [True, False])
def test_it_reads_what_mlflow_reads(store, tmp_path, is_cached):
    cache = tmp_path / "cache" if is_cached else None
    assert both(store, cache).replicates == ()
    store.write([replicate("b", 2, metrics={"x": math.nan}), replicate("b", 1)], revision=5, start_ms=9)
    store.write([replicate("a", 1, error="e" * 20_000)], revision=6, start_ms=10)
    assert both(store, cache).conditions == ("b", "a")
    store.write([replicate("b", 1, state="failed")], revision=7)
    assert both(store, cache).of("b")[0].state == "failed"
    store.client.delete_run(store.run_ids["b"])
    assert both(store, cache).conditions == ("a",)
    store.client.restore_run(store.run_ids["b"])
    assert both(store, cache).conditions == ("b", "a")


def test_both_go_on_from_one_cache(store, tmp_path):
    store.write([replicate("a", 1)], revision=1)
    sqlite_reader.read_study(store.uri, "asr.demo", tmp_path)
    store.write([replicate("b", 1)], revision=2, start_ms=2)
    expected = mlflow_reader.read_study(store.client, "asr.demo", store.experiment_id, tmp_path)
    store.write([replicate("b", 2)], revision=3)
    assert [(r.condition, r.seed) for r in sqlite_reader.read_study(store.uri, "asr.demo", tmp_path).replicates] == [
        *((r.condition, r.seed) for r in expected.replicates),
        ("b", 2),
    ]


def test_unchanged_conditions_are_not_read_again(store, tmp_path):
    """A tag changed behind its back, without a revision, is not seen: so it was not read."""
    store.write([replicate("a", 1)], revision=1)
    store.write([replicate("b", 1)], revision=2)
    before = sqlite_reader.read_study(store.uri, "asr.demo", tmp_path / "cache")
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        database.execute("UPDATE tags SET value = 'nonsense' WHERE key LIKE 'ponderay.replicate.%'")
    assert sqlite_reader.read_study(store.uri, "asr.demo", tmp_path / "cache") == before
    with pytest.raises(ValueError, match="it cannot be read"):
        sqlite_reader.read_study(store.uri, "asr.demo", None)


def test_other_stores_and_sweeps_are_left_to_mlflow(store, tmp_path):
    assert sqlite_reader.read_study("http://localhost:5000", "asr.demo", None) is None
    assert sqlite_reader.read_study(f"sqlite:///{tmp_path}/none.db", "asr.demo", None) is None
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(InputError, match=r"other\.db is damaged \(file is not a database\)\."):
        sqlite_reader.read_study(f"sqlite:///{tmp_path}/other.db", "asr.demo", None)
    assert sqlite_reader.read_study(store.uri, "asr.nothing", None) is None


def test_loading_a_study_imports_neither_mlflow_nor_ray(store, tmp_path):
    store.write([replicate("a", 1)], revision=1)
    code = (
        "import sys; from orchestrator.environment.settings import Settings; "
        "from orchestrator.tracking.load import load_study; "
        "from pathlib import Path; study = load_study('asr.demo', Settings(Path('.'), sys.argv[1])); "
        "assert len(study.replicates) == 1; print(*{'mlflow', 'ray', 'torch', 'pandas', 'scipy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, store.uri]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == []
