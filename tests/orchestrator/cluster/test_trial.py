"""What a machine that came after the sweep began must have."""

import json
import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.machine.shared_folder_check import ensure_mark
from orchestrator.worker.code_version import code_version
from orchestrator.worker.work import Work
from search_spaces.resources import Resources
from tests.orchestrator.worker.test_template import replicate
from tests.trainables.processes import in_one_and_two, process_group

TRAINABLE = "tests.integration.tiny"


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial is a process of a cluster; here Ray would start one, or refuse to, by what ran before in this process."""
    monkeypatch.setenv("RAY_ADDRESS", "")
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(gcs_address="127.0.0.1:1"))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(
        key="0123",
        label="a seed 1",
        trainable=TRAINABLE,
        config={},
        num_steps=4,
        folder=tmp_path / "replicates" / "sweep" / "0123",
        resources=Resources(num_workers=0).resolve(0),
        attempt="driver.1",
        code_version=code_version(TRAINABLE),
        host=socket.gethostname(),
        mark="the driver's",
    )


def test_the_folder_of_the_driver_must_be_there_unless_there_is_a_bucket(work):
    from orchestrator.cluster.trial import machine_fault

    assert "is not the folder that the driver writes" in machine_fault(work)
    assert machine_fault(work.model_copy(update={"shared": "s3://bucket/replicates/sweep/0123"})) == ""
    work.folder.parent.mkdir(parents=True)  # as Ray itself makes folders, on whatever disk
    assert "is not the folder that the driver writes" in machine_fault(work)
    mark = ensure_mark(work.folder.parent)
    assert machine_fault(work.model_copy(update={"mark": mark})) == ""
    assert "is not the folder that the driver writes" in machine_fault(work)


def test_that_work_has_started_is_told_at_once_and_what_comes_thick_and_fast_together():
    from orchestrator.cluster.trial import Records

    sent = []
    records = Records(lambda message: sent.append([one["kind"] for one in json.loads(message["records"])]), 3600.0)
    for kind in ("started", "metrics", "evaluation"):
        records.send({"kind": kind})
    assert sent == [["started"]]
    records.flush()
    assert sent == [["started"], ["metrics", "evaluation"]]


def test_the_end_of_what_all_processes_meet_in_is_not_what_a_replicate_failed_by(monkeypatch):
    """One process fails by the trainable; Ray Train kills the actor at which another one waits to report."""
    import ray

    from orchestrator.cluster import trial
    from trainables import distributed

    def killed(message):
        raise ray.exceptions.ActorDiedError

    monkeypatch.setattr(ray.train, "report", killed)
    with pytest.raises(distributed.PeerLostError) as lost:
        trial._report_in_step({"records": "[]"})
    assert distributed.is_peer_failure(lost.value)


def test_sources_of_another_machine_must_be_those_of_the_driver(work):
    from orchestrator.cluster.trial import machine_fault

    work = work.model_copy(update={"mark": ensure_mark(work.folder.parent)})
    elsewhere = work.model_copy(update={"host": "head"})
    assert machine_fault(elsewhere) == machine_fault(work) == ""
    assert "Install the same sources" in machine_fault(elsewhere.model_copy(update={"code_version": "other"}))


def test_a_secret_must_be_in_the_environment_of_the_machine(work, monkeypatch):
    from orchestrator.cluster.trial import machine_fault

    given = {"mark": ensure_mark(work.folder.parent), "config": {"inner": {"api_key": {"secret from": "API_KEY"}}}}
    work = work.model_copy(update=given)
    monkeypatch.delenv("API_KEY", raising=False)
    assert "`api_key` is a secret" in machine_fault(work) and "set the environment variable API_KEY" in machine_fault(
        work
    )
    monkeypatch.setenv("API_KEY", "hunter2")
    assert machine_fault(work) == ""


def test_sources_that_changed_under_a_sweep_are_not_run_as_those_it_began_with(work, tmp_path, monkeypatch):
    """A process that imported them before goes on with what it has."""
    from orchestrator.cluster import trial

    (tmp_path / "edited_model.py").write_text("RATE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    changes = {"mark": ensure_mark(work.folder.parent), "trainable": "edited_model", "root": str(tmp_path)}
    work = work.model_copy(update=changes | {"code_version": code_version("edited_model"), "config_type": ""})
    assert trial.machine_fault(work) == ""
    (tmp_path / "edited_model.py").write_text("RATE = 2\n")
    assert trial.machine_fault(work) == ""
    trial._version_here.cache_clear()  # as in a new process
    assert trial.machine_fault(work.model_copy(update={"trainable": "gone_model"})) == ""
    assert "They were changed while the sweep ran; run it again, with --accept-code" in trial.machine_fault(work)


class TrainSession:
    """What a worker sees of Ray Train; its reports go to a file of its rank."""

    def __init__(self, rank: int, folder: Path) -> None:
        self._rank, self._file = rank, folder / f"reports.{rank}"

    def get_context(self) -> SimpleNamespace:
        return SimpleNamespace(get_world_rank=lambda: self._rank)

    def report(self, message: dict[str, str]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(message["records"])


def last_machine_is_at_fault(rank: int, num_processes: int, folder: Path) -> None:
    from orchestrator.cluster import trial as worker

    work = Work.model_validate_json((folder.parent / "work.json").read_text())
    worker.machine_fault = lambda _work: "no mount." if rank == num_processes - 1 else ""
    worker.ray = SimpleNamespace(train=TrainSession(rank, folder))
    with process_group(rank, num_processes, folder):
        worker._run_in_worker({"work": work.model_dump_json()})


@pytest.mark.slow
def test_a_fault_of_one_machine_is_reported_by_all_workers_which_report_in_step(work, tmp_path_factory):
    tmp_path_factory.getbasetemp().joinpath("work.json").write_text(work.model_dump_json())
    for folder in in_one_and_two(last_machine_is_at_fault, tmp_path_factory):
        said = [json.loads(file.read_text()) for file in sorted(folder.glob("reports.*"))]
        assert [[(one["state"], one["error"], one["is_machine_fault"]) for one in records] for records in said] == [
            [("failed", "no mount.", True)]
        ] * len(said)
        assert len(said) == (2 if folder.name.startswith("two") else 1)


@pytest.mark.parametrize(
    ("changes", "states", "lost"),
    [("environment", ["complete"], []), ("SIGKILL", [], ["its process was ended by SIGKILL"])],
)
def test_a_trial_passes_on_what_a_process_of_its_own_reports_and_how_that_was_lost(
    tmp_path, monkeypatch, changes, states, lost
):
    """In a thread that ends with the trial, as Tune runs it."""
    from orchestrator.cluster import trial

    sent = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(trial.tune, "report", sent.append)
    monkeypatch.setattr(trial, "_place", lambda: {"node_id": "here"})
    work = replicate(tmp_path, changes)
    mark = ensure_mark(work.folder.parent)
    params = {"work": work.model_copy(update={"mark": mark}).model_dump_json()}
    thread = threading.Thread(target=trial.run_trial, args=(params,))
    thread.start()
    thread.join()
    records = [record for message in sent for record in json.loads(message.get("records", "[]"))]
    assert (records[0]["kind"], records[0]["node_id"]) == ("started", "here")
    assert records[0]["pid"] != os.getpid()
    assert [record["state"] for record in records if record["kind"] == "state"] == states
    assert [message["lost"] for message in sent if "lost" in message] == lost
