"""What is written to MLflow, in how many requests, and what is told of a store that cannot be opened."""

from pathlib import Path
from urllib.parse import urlparse

import pytest
from mlflow.exceptions import MlflowException

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.tracking import names
from orchestrator.tracking.client import Tracking
from tests.orchestrator.recorded import replicate
from trainables.errors import DataWarning, InputError


def records(num_steps: int, num_metrics: int) -> list[dict]:
    def metrics(step: int) -> dict[str, float]:
        return {f"m{i}": float(i + step) for i in range(num_metrics)}

    return [{"kind": "metrics", "step": n, "time_ms": 1_000 + n, "metrics": metrics(n)} for n in range(num_steps)]


@pytest.mark.every_store
def test_metrics_go_in_batches_and_twice_is_as_good_as_once(tracking, monkeypatch):
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    client, sizes = tracking._client, []
    log_batch = client.log_batch

    def counting(run_id, metrics=(), params=(), tags=(), **options):
        sizes.append(len(metrics))
        log_batch(run_id, metrics, params, tags, **options)

    monkeypatch.setattr(client, "log_batch", counting)
    for _ in range(2):
        tracking.log(run_id, records(250, 8), tags={"a": "b"}, params={"x": 1})
    assert sum(sizes) == 2 * 2000
    assert len(sizes) == 2 * 3
    history = client.get_metric_history(run_id, "m3")
    assert [(metric.step, metric.value) for metric in history] == [(step, 3.0 + step) for step in range(250)]


def test_revisions_rise_also_over_drivers_and_when_the_clock_goes_back(tracking, monkeypatch):
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "condition", "0123", "a", {})
    found = []
    for now_ms in (5_000, 5_000, 1_000):
        monkeypatch.setattr("orchestrator.tracking.client.now_ms", lambda now_ms=now_ms: now_ms)
        driver = Tracking(read_settings())
        driver.write_replicates(experiment, run_id, {"x": "y"})
        found.append(driver._client.get_run(run_id).data.metrics["ponderay.updated"])
    assert found == sorted(set(found))


@pytest.mark.every_store
def test_a_condition_that_a_search_stopped_is_finished_once_it_is_written_whole(tracking):
    experiment, tags = tracking.open_experiment("sweep"), {names.CONDITION: "a"}
    for state, unfinished in (("failed", {"a"}), ("pruned", set())):
        run_id = tracking.open_run(experiment, "condition", "0123", "a", tags)
        assert tracking.unfinished_conditions(experiment) == {"a"}
        tracking.end_condition(run_id, [replicate("a", 1, state=state)], [], {})
        assert tracking.unfinished_conditions(experiment) == unfinished
    tracking.open_run(experiment, "condition", "0123", "a", tags)
    assert tracking.unfinished_conditions(experiment) == {"a"}


def test_the_load_of_the_machine_is_logged_under_mlflows_names(tracking):
    run_id = tracking.open_run(tracking.open_experiment("sweep"), "replicate", "0123", "a seed 1", {})
    load = {"kind": "system", "step": 7, "time_ms": 5_000, "values": {"cpu_utilization_percentage": 12.5}}
    tracking.log(run_id, [load, {"kind": "started", "time_ms": 1}])
    (found,) = tracking._client.get_metric_history(run_id, "system/cpu_utilization_percentage")
    assert (found.value, found.step, found.timestamp) == (12.5, 7, 5_000)
    assert set(tracking._client.get_run(run_id).data.metrics) == {"system/cpu_utilization_percentage"}


def test_fronts_and_reports_are_stored_on_the_sweeps_own_run(tracking, workplace):
    figure, report = workplace / "front.html", workplace / "report.html"
    figure.write_text("front")
    report.write_text("report")
    tracking.store_front("sweep", [figure], {"hypervolume@e": 0.25}, {"ponderay.reference_point": "1, 2"})
    tracking.store_front("sweep", [figure], {"hypervolume@e": 0.5}, {})
    tracking.store_report("sweep", [report])
    (run,) = tracking._client.search_runs([tracking.open_experiment("sweep")])
    assert (run.info.run_name, run.info.status, run.data.tags["ponderay.kind"]) == ("sweep", "FINISHED", "sweep")
    assert run.data.metrics == {"hypervolume/e": 0.5}
    assert run.data.tags["ponderay.reference_point"] == "1, 2"
    files = [
        file.path for place in ("figures", "report") for file in tracking._client.list_artifacts(run.info.run_id, place)
    ]
    assert files == ["figures/front.html", "report/report.html"]


def test_an_experiments_tags_are_written_where_they_differ(tracking, monkeypatch):
    experiment, written = tracking.open_experiment("sweep"), []
    set_tag = tracking._client.set_experiment_tag
    monkeypatch.setattr(
        tracking._client, "set_experiment_tag", lambda e, name, value: written.append(name) or set_tag(e, name, value)
    )
    tracking.describe(experiment, {"a": "1", "b": "2"})
    tracking.describe(experiment, {"a": "1", "b": "3"})
    assert written == ["a", "b", "b"]
    assert tracking._client.get_experiment(experiment).tags["b"] == "3"


def test_sweeps_are_the_experiments_with_a_conditions_run(tracking):
    for name in ("z", "a", "prerequisites"):
        experiment = tracking.open_experiment(name)
        kind = "prerequisite" if name == "prerequisites" else "condition"
        tracking.open_run(experiment, kind, "0123", "x", {})
    tracking.open_experiment("empty")
    tracking.describe(tracking.open_experiment("z"), {"tag": "value"})
    found = tracking.sweeps()
    assert [sweep.name for sweep in found] == ["a", "z"]
    assert found[1].experiment_id == tracking.open_experiment("z")
    assert found[1].tags["tag"] == "value"


@pytest.mark.every_store
def test_what_no_database_takes_is_written_with_other_characters_and_long_names_are_cut(tracking):
    """PostgreSQL knows no zero, and names of 250 characters; no store knows half a pair."""
    strange, name = "a\0b\udc80c", "x" * 300
    run_id = tracking.open_run(tracking.open_experiment("sweep"), "replicate", "0123", name, {"note": strange})
    tracking.log(run_id, tags={"tag": strange}, params={"path": strange})
    tracking.finish(run_id, "failed", traceback=strange)
    run = tracking._client.get_run(run_id)
    assert run.info.run_name == name[:250]
    assert run.data.tags["note"] == run.data.tags["tag"] == run.data.params["path"] == "a\N{REPLACEMENT CHARACTER}b?c"
    assert [file.path for file in tracking._client.list_artifacts(run_id)] == ["traceback.txt"]


def test_a_run_whose_files_have_no_place_has_its_numbers_and_its_end(tracking, tmp_path):
    """As where the runs were moved and a file lies where they were: nothing waits for what does not come back."""
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    tracking.log(run_id, [{"kind": "metrics", "step": 1, "metrics": {"error": 0.5}, "time_ms": 1}])
    location = Path(urlparse(tracking._client.get_run(run_id).info.artifact_uri).path)
    location.parent.parent.mkdir(parents=True, exist_ok=True)
    location.parent.write_text("no folder")
    with pytest.warns(DataWarning, match="cannot be stored in MLflow .* They stay in the replicate's folder"):
        tracking.finish(run_id, "failed", traceback="Traceback")
    run = tracking._client.get_run(run_id)
    assert (run.info.status, run.data.metrics["error"]) == ("FAILED", 0.5)


def test_of_a_link_among_a_replicates_files_nothing_is_stored(tracking, tmp_path):
    """It may lead to a key of this user's, and the server shows to many what it stores."""
    files, run_id = tmp_path / "files", tracking.open_run(tracking.open_experiment("sweep"), "replicate", "0", "a", {})
    files.mkdir()
    (tmp_path / "key").write_text("sesame")
    (files / "figure").write_text("drawn")
    (files / "link").symlink_to(tmp_path / "key")
    tracking.finish(run_id, "complete", artifacts=files)
    assert [file.path for file in tracking._client.list_artifacts(run_id)] == ["figure"]


def test_a_password_is_not_told(workplace):
    uri = "postgresql://user:sesame@127.0.0.1:1/db"
    with pytest.raises(InputError) as raised:
        Tracking(Settings(workplace / "runs", uri))
    assert "sesame" not in str(raised.value)


@pytest.mark.every_store
def test_a_store_that_lets_one_only_read_says_so_in_a_sentence(tracking, workplace, monkeypatch):
    def refused(*_, **__):
        raise MlflowException("Permission denied")

    (workplace / "report.html").write_text("report")
    monkeypatch.setattr(tracking._client, "log_artifact", refused)
    with pytest.raises(InputError, match="Permission denied"):
        tracking.store_report("sweep", [workplace / "report.html"])
