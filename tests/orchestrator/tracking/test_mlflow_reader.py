"""Reading through MLflow's client: what is read, and what is asked for."""

import json
import math

import pytest

from orchestrator.tracking.mlflow_reader import read_study
from tests.orchestrator.recorded import Store, replicate


class Watched:
    """The store's client; notes the filter and the number of runs of each answer."""

    def __init__(self, store):
        self._client = store.client
        self.answers = []

    def __getattr__(self, name):
        return getattr(self._client, name)

    def search_runs(self, experiment_ids, filter_string, *arguments, **options):
        page = self._client.search_runs(experiment_ids, filter_string, *arguments, **options)
        self.answers.append((filter_string, len(page)))
        return page


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "mlflow.db")


def read(store, cache, client=None):
    return read_study(client or store.client, "asr.demo", store.experiment_id, cache)


def test_conditions_come_in_the_order_of_their_start_and_seeds_in_order(store, tmp_path):
    late = store.write([replicate("late", 10), replicate("late", 9)], revision=1, start_ms=50)
    early = store.write([replicate("early", 1, metrics={"a": math.inf})], revision=2, start_ms=40)
    store.client.create_run(store.experiment_id, 1, {"ponderay.kind": "replicate"}, "late seed 9")
    study = read(store, tmp_path / "cache")
    assert study.sweep == "asr.demo"
    assert study.replicates == (*early, late[1], late[0])
    assert study.updated_ms == {"early": 2, "late": 1}
    assert read(store, tmp_path / "cache") == study
    assert read(store, None) == study


def test_only_what_changed_is_asked_for(store, tmp_path):
    cache = tmp_path / "cache"
    for i in range(6):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    client = Watched(store)
    read(store, cache, client)
    assert max(number for _, number in client.answers) == 6
    client.answers.clear()
    (changed,) = store.write([replicate("c2", 1, state="failed", error="late")], revision=7)
    study = read(store, cache, client)
    assert study.of("c2") == (changed,)
    assert len(study.replicates) == 6
    assert client.answers[-1] == ("metrics.`ponderay.updated` > 6 and tags.\"ponderay.kind\" = 'condition'", 1)
    client.answers.clear()
    assert read(store, cache, client) == study
    assert [number for _, number in client.answers] == [0, 1]  # none deleted; the last revision


def test_pages_are_put_together(store, tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.mlflow_reader.PAGE", 2)
    for i in range(5):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    assert read(store, tmp_path).conditions == ("c0", "c1", "c2", "c3", "c4")


def test_what_is_written_while_it_is_read_is_found_the_next_time(store, tmp_path):
    """A change between the question for the last revision and the reading is read, and may be read again."""
    store.write([replicate("a", 1)], revision=1, start_ms=1)
    store.write([replicate("b", 1)], revision=2, start_ms=2)
    client, written = Watched(store), []

    class Busy(Watched):
        def search_runs(self, *arguments, **options):
            page = super().search_runs(*arguments, **options)
            if "order_by" in options and not written:
                written.extend(store.write([replicate("a", 2)], revision=3))
            return page

    read(store, tmp_path, Busy(store))
    assert written
    assert [r.seed for r in read(store, tmp_path, client).of("a")] == [1, 2]


@pytest.mark.parametrize("damage", ["cut", "flipped", "format", "empty", "folder"])
def test_a_damaged_cache_is_rebuilt(store, tmp_path, damage):
    cache = tmp_path / "cache"
    store.write([replicate("a", seed, metrics={"per@e": 0.125}) for seed in (1, 2)], revision=1)
    study = read(store, cache)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    about, _, body = whole.partition(b"\n")
    match damage:
        case "cut":
            file.write_bytes(whole[:-10])
        case "flipped":
            file.write_bytes(whole.replace(b"0.125", b"0.875"))
        case "format":
            file.write_bytes(json.dumps(json.loads(about) | {"format": 0}).encode() + b"\n" + body)
        case "empty":
            file.write_bytes(b"")
        case "folder":
            file.unlink()
            file.mkdir()
    assert read(store, cache) == study
    if damage != "folder":
        assert file.read_bytes() == whole


def test_conditions_deleted_in_mlflow_are_gone_until_they_are_restored(store, tmp_path):
    for i in range(3):
        store.write([replicate(f"c{i}", 1)], revision=i + 1, start_ms=i + 1)
    assert len(read(store, tmp_path).conditions) == 3
    store.client.delete_run(store.run_ids["c1"])
    assert read(store, tmp_path).conditions == ("c0", "c2")
    store.client.restore_run(store.run_ids["c1"])
    assert read(store, tmp_path).conditions == ("c0", "c1", "c2")


def test_a_store_made_anew_in_the_same_place_is_another(tmp_path):
    first = Store(tmp_path / "mlflow.db")
    first.write([replicate("a", 1)], revision=10)
    read(first, tmp_path / "cache")
    second = Store(tmp_path / "mlflow.db")
    written = second.write([replicate("b", 1)], revision=10)
    assert second.experiment_id == first.experiment_id
    assert read(second, tmp_path / "cache").replicates == tuple(written)


def test_nothing_recorded_is_an_empty_study(store, tmp_path):
    assert read(store, tmp_path).replicates == ()
    assert read(store, tmp_path).conditions == ()
