"""Which job is meant, what the next is called, that a sweep has one at a time, and a log over broken connections."""

from collections.abc import Iterator

import pytest

from orchestrator.cluster import jobs
from orchestrator.cluster.jobs import ClusterAwayError, Job, find_job, next_name
from orchestrator.console.errors import RefusedError
from trainables.errors import InputError


def job(name: str, state: str = "SUCCEEDED", sweep: str | None = None) -> Job:
    """One whose sweep is its name without the number, if it is not said."""
    return Job(name, name.rpartition("-")[0] if sweep is None else sweep, state, "python -m orchestrator run x", 0)


def test_jobs_of_a_sweep_are_numbered_whatever_else_the_cluster_has():
    assert next_name([], "asr.demo") == "asr.demo-1"
    known = [job("asr.demo-10"), job("asr.demo-9", "FAILED"), job("asr.demo.smoke-77"), job("asr.demo-x", sweep="")]
    assert next_name(known, "asr.demo") == "asr.demo-11"
    assert next_name([job("asr.demo-3", sweep="")], "asr.demo") == "asr.demo-4"
    assert next_name([], "my sweep/of:two") == "my_sweep_of_two-1"


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_sweep_with_a_job_gets_no_other(state):
    known = [job("asr.demo-2", state), job("asr.demo-1")]
    with pytest.raises(
        RefusedError, match=r"already run by the job asr\.demo-2; .*logs asr\.demo-2 --follow.*stop asr"
    ):
        next_name(known, "asr.demo")
    assert next_name(known, "asr.budget") == "asr.budget-1"


def test_a_job_is_found_by_its_name_or_as_the_newest_of_its_sweep():
    known = [job("a-3"), job("b-1"), job("a-2"), job("other", sweep="")]
    assert find_job(known, "a") is known[0]
    assert find_job(known, "a-2") is known[2]
    with pytest.raises(InputError, match="no job and no sweep 'other'; there are a-3, b-1, a-2"):
        find_job(known, "other")
    with pytest.raises(InputError, match="there is none"):
        find_job([], "a")


class Source:
    """Says, connection by connection, what it is told to; the job ends with the last."""

    def __init__(self, *connections: list[str | ClusterAwayError]) -> None:
        self.connections = list(connections)

    def jobs(self) -> list[Job]:
        return [Job("a-1", "a", "RUNNING" if self.connections else "FAILED", "", 0)]

    def log(self, name: str) -> str:
        raise NotImplementedError

    def follow(self, name: str) -> Iterator[str]:
        for piece in self.connections.pop(0):
            if isinstance(piece, ClusterAwayError):
                raise piece
            yield piece


@pytest.fixture
def quick(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "AGAIN_S", 0.0)


def test_nothing_is_said_twice_or_left_out_however_the_pieces_fall(quick):
    source = Source(
        ["one\n", "two\n", ClusterAwayError("gone")],
        ["one\ntw", ClusterAwayError("gone")],
        ["one\n"],
        ["one\ntwo\nthree", "\n"],
        ["one\ntwo\nthree\nfour\n"],
    )
    written: list[str] = []
    assert jobs.follow_log(source, "a-1", written.append).state == "FAILED"
    assert "".join(written) == "one\ntwo\nthree\nfour\n"


def test_a_cluster_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.05)
    monkeypatch.setattr(jobs, "AGAIN_S", 0.02)
    source = Source(*([[ClusterAwayError("gone")]] * 100))
    with pytest.raises(ClusterAwayError, match="gone"):
        jobs.follow_log(source, "a-1", str)
    assert 90 < len(source.connections) < 100


def test_patience_counts_from_the_last_answer_and_not_from_the_start(quick, monkeypatch):
    clock = iter(range(1, 1000))
    monkeypatch.setattr(jobs.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(jobs, "PATIENCE_S", 5.0)
    source = Source(*([[ClusterAwayError("gone")], ["line\n"]] * 20))
    written: list[str] = []
    jobs.follow_log(source, "a-1", written.append)
    assert written == ["line\n"]
