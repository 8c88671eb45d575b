"""The batch file for Slurm: what sbatch and bash read from it, and no secret."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.cluster.slurm import batch_file, send, slurm_options
from orchestrator.cluster.submission import STOP_S, Submission, entrypoint
from orchestrator.environment.settings import read_settings
from trainables.errors import InputError

HOSTILE = 'it\'s "a" $(touch stolen) `touch stolen` \\ {{ x }} {# y #} $1 ${HOME\n#SBATCH --wrap=x'


def made(
    sweep: str = "asr.demo.smoke",
    options: list[str] | None = None,
    variables: dict[str, str] | None = None,
    num_nodes: int = 2,
    given: list[str] | None = None,
) -> str:
    submission = Submission(sweep, entrypoint("asr.demo", options or ["--smoke"]), variables or {})
    return batch_file(submission, read_settings(), num_nodes, slurm_options(given))


def directives(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/bash\n{text}\n")
    file.chmod(0o755)


def run_job(text: str, workplace: Path, srun: str, python: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a batch file where these bash lines are `srun` and `python`; every folder is one of the test's own."""
    programs = workplace / "programs"
    programs.mkdir()
    program(programs, "srun", srun)
    program(programs, "scontrol", "echo one; echo two")
    program(programs, "sleep", '[ "$1" = 1 ] && set 0.05\nexec /bin/sleep "$@"')  # between two looks
    program(programs, "python", f"case $1 in -c) echo 10.0.0.1; exit;; esac\n{python}")
    here = [line for line in text.splitlines() if not line.startswith("export PATH=")]
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "x", "SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "one"}
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run(
        ["/bin/bash", "-s"], input="\n".join(here), capture_output=True, text=True, check=False,
        env=os.environ | job | path | environment,
    )  # fmt: skip


def test_sbatch_reads_the_nodes_and_the_options_that_were_given(workplace):
    assert directives(made(given=["time=08:00:00", "partition=gpu", "requeue", "comment=two words"])) == [
        "job-name=asr.demo.smoke", "nodes=2", "ntasks-per-node=1", "exclusive", "signal=B:TERM@120", "mem=0",
        "output=slurm-%j.out", "time=08:00:00", "partition=gpu", "requeue", 'comment="two words"',
    ]  # fmt: skip


def test_the_driver_has_its_time_and_ray_some_more_before_the_job_is_killed(workplace):
    text = made()
    assert f"-gt {STOP_S} ]" in text and f"signal=B:TERM@{2 * STOP_S}" in directives(text)


@pytest.mark.parametrize("name", ["mem", "mem-per-cpu", "mem-per-gpu"])
def test_memory_is_named_once(workplace, name):
    assert [one for one in directives(made(given=[f"{name}=4G"])) if one.startswith("mem")] == [f"{name}=4G"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("-t 5", r"must be NAME=VALUE or NAME, .* such as time=08:00:00, but got '-t 5'\."),
        ("--time=5", "no dashes before it"),
        ("nodes=3", r"`--sbatch nodes` cannot be set, .* Give the number of nodes by --nodes\."),
        ("array=1-3", r"depends on its own\. Leave it out\."),
        ("signal=USR1", r"depends on its own\. Leave it out\."),
        ("tiem=5", r"sbatch has no option 'tiem'; there are time, .* the nearest is 'time'\. One of a plugin"),
        ("wrap=x", "sbatch has no option 'wrap'"),
        ("comment=a\nscancel", "must be one line without quotes"),
        ('comment="a', "must be one line without quotes"),
    ],
)
def test_options_that_would_break_the_file_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        slurm_options([given])


def test_any_text_comes_through_to_the_driver_as_it_is(workplace):
    text = made(f"asr.{HOSTILE}", ["--set", f"a={HOSTILE}"], {"PONDERAY_DATA": HOSTILE})
    assert not [one for one in directives(text) if one.startswith("wrap") and text.index(one) < text.index("set -euo")]
    driver = 'case $2 in orchestrator) printf "%s\\0" "$PONDERAY_DATA" "${@:4}" > got;; esac'
    done = run_job(text, workplace, "exec sleep 60", driver)
    assert done.returncode == 0, done.stderr
    assert (workplace / "got").read_text().split("\0")[:-1] == [HOSTILE, "asr.demo", "--set", f"a={HOSTILE}"]
    assert not (workplace / "stolen").exists()


def test_names_of_variables_are_read_where_the_job_runs(workplace):
    text = made(variables={"PONDERAY_CACHE": "$SCRATCH/a b/${SCRATCH}/$$"})
    driver = 'case $2 in orchestrator) printf %s "$PONDERAY_CACHE" > got;; esac'
    assert run_job(text, workplace, "exec sleep 60", driver, SCRATCH="/x *").returncode == 0
    assert (workplace / "got").read_text() == "/x */a b//x */$$"


@pytest.mark.parametrize("code", [0, 130])
def test_the_job_ends_with_the_code_of_the_driver_and_leaves_no_token(workplace, code):
    driver = f"""case $2 in orchestrator) ls -l runs/.slurm-7-*/auth_token; echo "$RAY_ADDRESS"; exit {code};; esac"""
    done = run_job(made(), workplace, "exec sleep 60", driver, RAY_AUTH_TOKEN="another", RAY_ADDRESS="elsewhere:1")
    assert done.returncode == code, done.stderr
    rights, address = done.stdout.splitlines()
    assert rights.startswith("-rw-------") and address == "10.0.0.1:6379"
    assert not list(workplace.glob("runs/.slurm*"))


def test_a_job_whose_ray_does_not_start_says_so_in_a_sentence(workplace):
    done = run_job(made(), workplace, "exit 4", "exec sleep 60")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("ponderay: Ray has ended on one, or never started. Finished work")


def test_settings_of_this_shell_go_into_the_file_and_secrets_do_not(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://ponderay:pass-word-1@lab:5000")
    monkeypatch.setenv("PONDERAY_SEARCH_URI", "sqlite:////x y/optuna.db")
    monkeypatch.setenv("PONDERAY_RUNS", "shared")
    text = made()
    assert "pass-word-1" not in text
    assert f"export PONDERAY_RUNS={workplace}/shared\n" in text
    assert "export PONDERAY_SEARCH_URI='sqlite:////x y/optuna.db'\n" in text
    monkeypatch.delenv("PONDERAY_TRACKING_URI")
    done = run_job(text, workplace, "exec sleep 60", "exit 0")
    assert done.returncode != 0 and "PONDERAY_TRACKING_URI: holds a secret, so this file does not" in done.stderr


def test_an_address_of_this_machine_alone_is_refused(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://127.0.0.1:5000")
    said = r"PONDERAY_TRACKING_URI must be an address that a node of the job reaches, but http.* is loopback"
    with pytest.raises(InputError, match=said):
        made()
    assert "http://head:5000" in made(variables={"PONDERAY_TRACKING_URI": "http://head:5000"})


def test_a_named_variable_comes_before_that_of_the_shell(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "http://ponderay:pass-word-1@lab:5000")
    text = made(variables={"PONDERAY_TRACKING_URI": "http://lab:5000", "PONDERAY_RUNS": "/r"})
    named = ("PONDERAY_TRACKING_URI", "export PONDERAY_RUNS")
    assert [line for line in text.splitlines() if any(one in line for one in named)] == [
        "export PONDERAY_RUNS=/r", "export PONDERAY_TRACKING_URI=http://lab:5000",
    ]  # fmt: skip


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
@pytest.mark.parametrize("secret", ["", "http://a:pass-word-1@lab"])
def test_shellcheck_finds_nothing(workplace, monkeypatch, secret):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", secret)
    text = made("asr.demo", ["--set", "a=it's b"], {"PONDERAY_CACHE": "$TMPDIR/a b"}, given=["time=1", "comment=a b"])
    done = subprocess.run(["shellcheck", "-"], input=text, capture_output=True, text=True, check=False)
    assert not done.stdout and done.returncode == 0


@pytest.fixture
def programs(workplace, monkeypatch) -> Path:
    """The only folder in which programs are looked for."""
    folder = workplace / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_sbatch_gets_the_file_and_names_the_job(programs, workplace):
    program(programs, "sbatch", 'echo "$@" > got; while read -r line; do echo "$line" >> got; done; echo "42;lab"')
    assert send("one\ntwo\n") == ("42", "lab")
    assert (workplace / "got").read_text() == "--parsable\none\ntwo\n"


def test_without_sbatch_the_remedy_is_named(programs):
    with pytest.raises(InputError, match=r"this machine has none\. Add `--dry-run > job\.sh` .* `sbatch job\.sh`"):
        send("")


def test_why_sbatch_refuses_is_said(programs):
    program(programs, "sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    with pytest.raises(InputError, match=r"^sbatch refused the job: sbatch: error: invalid partition specified: x$"):
        send("")
