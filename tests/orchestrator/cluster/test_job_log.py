"""A log that is followed over connections that break."""

from collections.abc import Iterator

import pytest

from orchestrator.cluster import job_log
from orchestrator.cluster.jobs import ClusterAwayError, Job


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


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    monkeypatch.setattr(job_log, "AGAIN_S", 0.0)


def test_nothing_is_said_twice_or_left_out_however_the_pieces_fall():
    source = Source(
        ["one\n", "two\n", ClusterAwayError("gone")],
        ["one\ntw", ClusterAwayError("gone")],
        ["one\n"],
        ["one\ntwo\nthree", "\n"],
        ["one\ntwo\nthree\nfour\n"],
    )
    written: list[str] = []
    assert job_log.follow_log(source, "a-1", written.append).state == "FAILED"
    assert "".join(written) == "one\ntwo\nthree\nfour\n"


def test_a_cluster_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(job_log, "PATIENCE_S", 0.05)
    monkeypatch.setattr(job_log, "AGAIN_S", 0.02)
    source = Source(*([[ClusterAwayError("gone")]] * 100))
    with pytest.raises(ClusterAwayError, match="gone"):
        job_log.follow_log(source, "a-1", str)
    assert 90 < len(source.connections) < 100


def test_patience_counts_from_the_last_answer_and_not_from_the_start(monkeypatch):
    clock = iter(range(1, 1000))
    monkeypatch.setattr(job_log.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(job_log, "PATIENCE_S", 5.0)
    source = Source(*([[ClusterAwayError("gone")], ["line\n"]] * 20))
    written: list[str] = []
    job_log.follow_log(source, "a-1", written.append)
    assert written == ["line\n"]
