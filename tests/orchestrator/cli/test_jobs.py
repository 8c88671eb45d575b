"""The commands of jobs as a user meets them, against a cluster that only pretends."""

import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer
import yaml
from click.testing import Result
from typer.testing import CliRunner

from orchestrator.cli import jobs as job_commands
from orchestrator.cluster import job_api
from orchestrator.cluster.jobs import Job
from orchestrator.cluster.submission import Submission
from orchestrator.console.errors import RefusedError
from tests.door import PLAIN, write
from trainables.errors import InputError


class Cluster:
    """Keeps jobs, newest first; one that is stopped has ended when it is looked at the third time."""

    def __init__(self) -> None:
        self.known: list[Job] = []
        self.sent: list[tuple[Submission, str, set[str]]] = []
        self.num_looks = 0
        self.stopping: list[str] = []

    def jobs(self) -> list[Job]:
        self.num_looks += 1
        if self.stopping and self.num_looks >= 3:
            self.known = [replace(job, state="STOPPED") if job.name in self.stopping else job for job in self.known]
        return self.known

    def submit(self, submission: Submission, name: str, package: Path) -> None:
        with zipfile.ZipFile(package) as opened:
            self.sent.append((submission, name, set(opened.namelist())))
        self.known.insert(0, Job(name, submission.sweep, "SUCCEEDED", submission.entrypoint, 0))

    def stop(self, name: str) -> None:
        self.stopping.append(name)

    def log(self, name: str) -> str:
        return f"log of {name}\n"

    def follow(self, name: str) -> Iterator[str]:
        yield f"log of {name}\n"
        if self.known[0].state == "RUNNING":
            raise KeyboardInterrupt


@pytest.fixture
def cluster(workplace, monkeypatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr(job_api, "usable", lambda address: address)
    monkeypatch.setattr(job_api, "connect", lambda address: found)
    monkeypatch.setattr(job_commands, "POLL_S", 0.0)
    return found


def call(*arguments: str) -> Result:
    """What `ponderay ARGUMENTS` does."""
    app = typer.Typer()
    for command in (job_commands.submit, job_commands.jobs, job_commands.logs, job_commands.stop):
        app.command()(command)
    return CliRunner().invoke(app, arguments)


def job(name: str, state: str, sweep: str = "asr.demo.smoke", ended_ms: int | None = None) -> Job:
    command = "python -m orchestrator run asr.demo --smoke --set 'a=b c'"
    return Job(name, sweep, state, command, 1_700_000_000_000, ended_ms, "why")


def test_submit_sends_the_sources_and_says_how_to_go_on(cluster):
    done = call("submit", "asr.demo", "--smoke", "--set", "training.num_epochs=2", "--env", "A=b", "--again")
    assert done.exit_code == 0
    ((submission, name, names),) = cluster.sent
    assert (submission.sweep, name) == ("asr.demo.smoke", "asr.demo.smoke-1")
    assert submission.entrypoint == (
        "python -m orchestrator run search_spaces.asr:SWEEPS.demo --smoke --set training.num_epochs=2 --again"
    )
    assert submission.variables == {"A": "b"}
    brought = {".ponderay/commit", ".ponderay/diff"}
    assert {"orchestrator/__main__.py", "trainables/rng.py", *brought} <= names
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Upload  {len(names - brought)} files, ") and " MB packed, from " in lines[0]
    assert lines[1:] == [
        "Job     asr.demo.smoke-1",
        "Follow  ponderay logs asr.demo.smoke-1 --follow",
        "Stop    ponderay stop asr.demo.smoke-1",
        "Status  ponderay status asr.demo --smoke",
    ]


def test_a_small_size_by_its_name_is_sent_as_it(cluster):
    assert call("submit", "asr.demo.smoke").stdout.splitlines()[-1] == "Status  ponderay status asr.demo --smoke"
    ((submission, _, _),) = cluster.sent
    assert submission.sweep == "asr.demo.smoke"
    assert submission.entrypoint == "python -m orchestrator run search_spaces.asr:SWEEPS.demo --smoke"


def test_what_confirms_a_choice_goes_by_the_name_of_its_study(cluster):
    cluster.known = [job("asr.demo-1", "RUNNING", "asr.demo")]
    assert call("submit", "asr.demo", "--confirm").stdout.splitlines()[1:] == [
        "Job     asr.demo.confirm-1",
        "Follow  ponderay logs asr.demo.confirm-1 --follow",
        "Stop    ponderay stop asr.demo.confirm-1",
        "Status  ponderay status asr.demo.confirm",
    ]
    assert call("submit", "asr.demo", "--confirm", "--slurm", "--dry-run").stdout.count("asr.demo.confirm") == 2


def test_commands_for_another_address_name_it(cluster):
    said = call("submit", "asr.demo", "--smoke", "--address", "http://head:1").stdout
    assert "ponderay stop asr.demo.smoke-1 --address http://head:1" in said
    assert "ponderay logs asr.demo.smoke-1 --follow --address http://head:1" in said


MANIFEST = ["asr.demo", "--kubernetes", "--dry-run", "--image", "lab/ponderay:1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["asr.nothing"], "There is no sweep 'asr.nothing'"),
        (["asr.demo", "--set", "network.depth=3"], "`network.depth` is not a config path"),
        (["asr.demo", "--env", "AWS_SECRET_ACCESS_KEY=x"], "looks like a secret"),
        (["asr.demo", "--kubernetes", "--image", "x"], "--dry-run --image IMAGE | kubectl apply -f -"),
        (["asr.demo", "--kubernetes", "--dry-run"], "--kubernetes needs --image IMAGE"),
        (["asr.demo", "--dry-run", "--image", "x"], "Ponderay only prints the manifest for Kubernetes"),
        (["asr.demo", "--dry-run"], "--dry-run prints what --slurm or --kubernetes would send; name one of them."),
        (["asr.demo", "--worker-gpus", "0"], "Ponderay only prints the manifest for Kubernetes"),
        (["asr.demo", "--dry-run", "--toleration", "spot"], "Ponderay only prints the manifest for Kubernetes"),
        ([*MANIFEST, "--follow"], "without --address and --follow"),
        ([*MANIFEST, "--address", "http://head:1"], "without --address and --follow"),
        (["asr.demo", "--nodes", "2"], "--nodes and --sbatch go with --slurm"),
        (["asr.demo", "--sbatch", "time=1"], "--nodes and --sbatch go with --slurm"),
        (["asr.demo", "--slurm", "--follow"], "--slurm goes with no option of another kind of cluster"),
        (["asr.demo", "--slurm", "--kubernetes"], "--slurm goes with no option of another kind of cluster"),
        (["asr.demo", "--slurm", "--worker-gpus", "0"], "--slurm goes with no option of another kind of cluster"),
        (["asr.demo", "--slurm", "--sbatch", "nodes=2"], "Give the number of nodes by --nodes"),
    ],
)
def test_a_mistake_is_found_before_anything_is_sent(cluster, arguments, said):
    error = call("submit", *arguments).exception
    assert isinstance(error, InputError) and said in str(error)
    assert not cluster.sent and not cluster.num_looks


def test_the_batch_file_for_slurm_is_printed(cluster):
    done = call("submit", "asr.demo", "--smoke", "--slurm", "--dry-run", "--nodes", "3", "--sbatch", "time=1:00:00")
    lines = done.stdout.splitlines()
    assert (done.exit_code, lines[0]) == (0, "#!/bin/bash")
    assert {"#SBATCH --nodes=3", "#SBATCH --time=1:00:00"} <= set(lines)
    assert lines[-1].endswith(" python -m orchestrator run asr.demo --smoke")
    assert "PONDERAY_RUNS must be a folder that all nodes share" in done.stderr  # those of tests are in /tmp
    assert not cluster.sent and not cluster.num_looks


@pytest.mark.parametrize(
    ("options", "answer", "log", "where"),
    [
        ([], "42", ["Follow  tail -F slurm-42.out"], ""),
        (["--sbatch", "output=logs/%x.out"], "42", [], ""),
        (["--sbatch", "clusters=far"], "42;far", ["Follow  tail -F slurm-42.out"], "-M far "),
    ],
)
def test_a_job_of_slurm_is_sent_and_its_number_said(cluster, workplace, monkeypatch, options, answer, log, where):
    sbatch = workplace / "sbatch"
    sbatch.write_text(f"#!/bin/sh\necho '{answer}'\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(workplace), prepend=os.pathsep)
    done = call("submit", "asr.demo", "--slurm", *options)
    assert done.stdout.splitlines() == [
        "Job     42", *log, f"Stop    scancel {where}--batch --signal=TERM 42", "Status  ponderay status asr.demo",
    ]  # fmt: skip
    assert not cluster.sent and not cluster.num_looks


def test_a_sweep_that_runs_is_not_sent_again(cluster):
    cluster.known = [job("asr.demo.smoke-4", "PENDING")]
    error = call("submit", "asr.demo", "--smoke").exception
    assert isinstance(error, RefusedError) and "ponderay stop asr.demo.smoke-4" in str(error)
    assert not cluster.sent
    assert call("submit", "asr.demo").exit_code == 0


def test_submit_follows_when_asked_to(cluster):
    done = call("submit", "asr.demo", "--smoke", "--follow")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "log of asr.demo.smoke-1")


def test_jobs_lists_ponderays_only(cluster):
    assert "This cluster has no sweep yet" in call("jobs").stdout
    cluster.known = [job("asr.demo.smoke-2", "STOPPED", ended_ms=1_700_000_090_400), job("raysubmit_x", "RUNNING", "")]
    assert json.loads(call("jobs", "--format", "json").stdout) == [
        {
            "job": "asr.demo.smoke-2", "sweep": "asr.demo.smoke", "state": "STOPPED", "started": "2023-11-14T22:13:20Z",
            "duration_s": 90, "message": "why",
        }
    ]  # fmt: skip
    said = call("jobs").stdout
    assert "│ asr.demo.smoke-2 │ asr.demo.smoke │ STOPPED │" in said and "raysubmit_x" not in said
    assert said.splitlines()[-1] == "Other jobs of this cluster, not from Ponderay: 1"


@pytest.mark.parametrize(("state", "code"), [("RUNNING", 0), ("SUCCEEDED", 0), ("FAILED", 1), ("STOPPED", 1)])
def test_logs_says_how_the_job_ended(cluster, state, code):
    cluster.known = [job("asr.demo.smoke-2", state), job("asr.demo.smoke-1", "SUCCEEDED")]
    done = call("logs", "asr.demo.smoke")
    assert (done.exit_code, done.stdout) == (code, "log of asr.demo.smoke-2\n")
    assert ("has ended" in done.stderr) == bool(code)
    if state != "RUNNING":
        followed = call("logs", "asr.demo.smoke-2", "--follow")
        assert (followed.exit_code, followed.stdout) == (code, "log of asr.demo.smoke-2\n")


def test_who_stops_following_leaves_the_job_running(cluster):
    cluster.known = [job("asr.demo.smoke-2", "RUNNING")]
    done = call("logs", "asr.demo.smoke", "--follow")
    assert done.exit_code == 0
    assert (
        "asr.demo.smoke-2 is still running; `ponderay logs asr.demo.smoke-2 --follow` follows it again" in done.stderr
    )
    assert not cluster.stopping


def test_stop_waits_for_the_end_and_says_how_to_go_on(cluster):
    cluster.known = [job("asr.demo.smoke-2", "RUNNING")]
    done = call("stop", "asr.demo.smoke")
    assert (done.exit_code, cluster.stopping) == (0, ["asr.demo.smoke-2"])
    assert "has ended: STOPPED. Finished work is kept" in done.stdout
    assert "`ponderay submit asr.demo --smoke --set 'a=b c'` continues from there" in done.stdout
    again = call("stop", "asr.demo.smoke")
    assert (again.exit_code, again.stdout) == (0, "asr.demo.smoke-2 has ended already: STOPPED.\n")
    assert cluster.stopping == ["asr.demo.smoke-2"]


def test_a_file_is_not_on_the_pods_of_kubernetes(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, PLAIN, "on_no_pod.py")
    stays = ["--env", "PONDERAY_STORAGE=s3://lab/x", "--env", "PONDERAY_TRACKING_URI=https://lab:5000"]
    error = call("submit", "on_no_pod.py:toy", *MANIFEST[1:], *stays).exception
    assert isinstance(error, InputError) and "so they do not have on_no_pod.py:toy; install" in str(error)


def test_a_file_is_named_as_it_was_typed_though_a_job_has_it_elsewhere(cluster):
    known = replace(job("toy-2", "RUNNING"), sweep="toy", entrypoint="python -m orchestrator run toy.py:toy --smoke")
    cluster.known = [replace(known, typed_name="models/toy.py:toy")]
    assert "`ponderay submit models/toy.py:toy --smoke` continues from there" in call("stop", "toy").stdout


def test_to_go_on_takes_the_same_cluster_and_variables(cluster):
    cluster.known = [replace(job("asr.demo.smoke-2", "RUNNING"), variables={"A": "b $C", "D": ""})]
    said = call("stop", "asr.demo.smoke", "--address", "http://127.0.0.1:1").stdout
    again = "ponderay submit asr.demo --smoke --set 'a=b c' --env 'A=b $C' --env D= --address http://127.0.0.1:1"
    assert f"`{again}` continues from there" in said


def test_a_job_that_does_not_end_is_said(cluster, monkeypatch):
    monkeypatch.setattr(job_commands, "MORE_STOP_S", -60.0)
    cluster.known, cluster.num_looks = [job("asr.demo.smoke-2", "RUNNING")], -10
    error = call("stop", "asr.demo.smoke").exception
    assert isinstance(error, InputError) and "is still RUNNING" in str(error)


def test_a_manifest_is_printed_and_nothing_is_sent(cluster):
    arguments = [*MANIFEST[1:], "--env", "PONDERAY_STORAGE=s3://lab/runs"]
    arguments += ["--env", "PONDERAY_TRACKING_URI=http://lab:5000"]
    done = call("submit", "asr.demo", "--smoke", *arguments, "--workers", "3", "--worker-gpus", "1")
    assert done.exit_code == 0
    (group,) = yaml.safe_load(done.stdout)["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert group["replicas"] == 3
    assert not cluster.sent and not cluster.num_looks
