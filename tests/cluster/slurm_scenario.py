"""What `test_slurm.py` has done to jobs of a made-up Slurm with two nodes; run by `hosts.sh`, as the login machine.

    python -m tests.cluster.slurm_scenario FOLDER

Prints a line for each thing that was seen to hold, and ends with an AssertionError at the first that does not.
"""

import os
import re
import sys
from pathlib import Path
from typing import Final

from tests.cluster.scenario import OURS, SIZE, STUDY, SWEEP, Scenario, learn_alone, say, wait

HOSTS: Final = ("h1", "h2")
PROGRAMS: Final = ("sbatch", "srun", "scontrol", "scancel")
END_S: Final = 600


class Slurm:
    """The nodes, and a login machine whose runs folder they share."""

    def __init__(self, folder: Path) -> None:
        self.at = Scenario(folder)
        self._others = self._temporary()
        os.environ["PONDERAY_RUNS"] = str(self.at.shared)
        programs = folder / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            (programs / name).symlink_to(Path(__file__).with_name("slurm_stub.sh"))
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"

    def submit(self, num_nodes: int = 2) -> str:
        """The job's number."""
        where = ["--slurm", "--nodes", str(num_nodes), "--sbatch", f"output={self.at.folder}/slurm-%j.out"]
        said = self.at.run("ponderay", "submit", SWEEP, *SIZE, *where)
        (job,) = re.findall(r"^Job +(\d+)$", said, re.MULTILINE)
        assert f"scancel --batch --signal=TERM {job}" in said, said
        return str(job)

    def log(self, job: str) -> str:
        """What the job has printed so far."""
        return (self.at.folder / f"slurm-{job}.out").read_text(encoding="utf-8")

    def code(self, job: str) -> int:
        """How the job ended; nothing of it is left."""
        file = self.at.folder / "slurm" / job / "code"
        wait(END_S, f"job {job} ends", file.exists)
        wait(END_S, "its code is written", lambda: file.read_text().strip())
        left = [line for host in HOSTS for line in self.processes(host)]
        assert not left, (left, self.log(job))
        assert not list(self.at.shared.glob(".slurm-*")) and self._temporary() <= self._others
        return int(file.read_text())

    def _temporary(self) -> set[Path]:
        """The folders that Ray has on a node for a job; those of another that was killed may lie in the same /tmp."""
        return set(Path("/tmp").glob("ray-[0-9]*-??????"))

    def processes(self, host: str) -> list[str]:
        """Command lines of Ray and Ponderay there."""
        found = self.at.run("ssh", host, "ps -eo pid,args", wanted=None).splitlines()
        return [line for line in found if any(one in line for one in (*OURS, "orchestrator", "srun"))]

    def num_steps(self) -> int:
        """Reports in all journals, each of which is whole."""
        return sum(record["kind"] == "metrics" for records in self.at.journals().values() for record in records)


def ends_where_ray_does_not_start(slurm: Slurm) -> None:
    """On a node that does not see the token."""
    mark = slurm.at.folder / "no-token-on-h2"
    mark.touch()
    job = slurm.submit()
    assert slurm.code(job) != 0
    assert "ponderay: Ray has ended on h2, or never started." in slurm.log(job), slurm.log(job)
    mark.unlink()
    assert not slurm.at.journals()
    say(f"`ray start` fails on another node: code {slurm.code(job)}, and a sentence")


def token_is_kept(slurm: Slurm) -> str:
    """The token of the job that runs; nobody else may read it, and no command line has it."""
    (file,) = slurm.at.shared.glob(".slurm-*/auth_token")
    token = file.read_text().strip()
    assert len(token) == 64 and file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    assert not [
        line for host in HOSTS for line in slurm.at.run("ssh", host, "ps -eo args").splitlines() if token in line
    ]
    return token


def stops_in_order(slurm: Slurm) -> str:
    """On the signal that Slurm sends before a job's time ends, here a job of one node; the job's token."""
    before, job = slurm.num_steps(), slurm.submit(num_nodes=1)
    ended = slurm.at.folder / f"slurm/{job}/code"
    wait(END_S, "the sweep is at work", lambda: slurm.num_steps() > before + 2 or ended.exists())
    token = token_is_kept(slurm)
    slurm.at.run("scancel", "--batch", "--signal=TERM", job)
    code, log = slurm.code(job), slurm.log(job)
    assert code == 1 and "ponderay: Slurm asks the job to stop." in log, (code, log)
    assert "ponderay: Stopped. Finished work is kept" in log, log
    for file in (slurm.at.shared / "replicates" / STUDY).glob("*/journal.jsonl"):
        assert file.read_bytes().endswith(b"\n")
    say("SIGTERM: the driver ends in order, then Ray; code 1, journals are whole, nothing is left running")
    return token


def ends_where_a_node_dies(slurm: Slurm) -> None:
    """The raylet of the second node is killed."""
    before, job = slurm.num_steps(), slurm.submit()
    wait(END_S, "the sweep is at work", lambda: slurm.num_steps() > before + 2)
    (raylet,) = [line.split()[0] for line in slurm.processes("h2") if re.match(r" *\d+ \S*/raylet/raylet ", line)]
    slurm.at.run("ssh", "h2", f"kill -KILL {raylet}")
    code, log = slurm.code(job), slurm.log(job)
    assert code != 0 and "ponderay: Ray has ended on h2, or never started." in log, (code, log)
    say(f"Ray dies on a node: code {code}, and a sentence; nothing is left running")


def main() -> None:
    """All of it, in order."""
    slurm = Slurm(Path(sys.argv[1]))
    expected = learn_alone(slurm.at)
    ends_where_ray_does_not_start(slurm)
    ends_where_a_node_dies(slurm)
    token = stops_in_order(slurm)
    job = slurm.submit()
    assert slurm.code(job) == 0, slurm.log(job)
    assert slurm.at.digits(STUDY) == expected
    hosts = {r["host"] for rs in slurm.at.journals().values() for r in rs if r["kind"] == "started"}
    assert hosts == set(HOSTS), hosts
    say("sent again, the sweep is complete, on both nodes; its metrics equal those of one machine, digit for digit")
    files = [path for path in slurm.at.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [file for file in files if token.encode() in file.read_bytes()]
    say("the token is in no file once the job has ended")


if __name__ == "__main__":
    main()
