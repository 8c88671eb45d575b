"""Waiting for the nodes of a job, against a cluster that only pretends, behind a real port."""

import socket
from collections.abc import Iterator

import pytest

from orchestrator.cluster import gathering, ray_internals


@pytest.fixture
def address() -> Iterator[str]:
    """One at which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def living(monkeypatch) -> list[list[str]]:
    """The nodes that live at each look; at the last one for ever."""
    looks: list[list[str]] = []
    monkeypatch.setattr(
        ray_internals, "living_hosts", lambda address, answer_s: looks.pop(0) if len(looks) > 1 else looks[0]
    )
    monkeypatch.setattr(gathering, "PAUSE_S", 0.0)
    return looks


def test_it_waits_until_all_are_there(address, living):
    living += [[], ["n1"], ["n1.lab", "other-name"]]
    assert gathering.gather(address, 60, ["n1", "n2"]) == ""
    assert living == [["n1.lab", "other-name"]]


def test_missing_nodes_are_named(address, living):
    living += [["N1.lab"]]
    assert gathering.gather(address, 0, ["n1", "n2.lab", "n3"]) == (
        f"Of 3 nodes 1 belong to the Ray cluster at {address} after 0 s; missing: n2.lab, n3."
    )


def test_a_head_that_does_not_answer_is_missing(living):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(SystemExit, match=r"^ponderay: Of 1 nodes 0 belong to .*; missing: n1\.$"):
        gathering.main([address, "0", "n1"])


def test_nodes_with_other_names_than_their_own_are_all_named(address, living):
    living += [["n1", "n2"]]
    assert gathering.gather(address, 0, ["n1", "n2", "n2"]).endswith("missing: n1, n2, n2.")
