"""The sweep goes on with the next cluster, and stops in order where there is none."""

from types import SimpleNamespace

import pytest

from orchestrator.cluster import recovery
from orchestrator.cluster.recovery import run_through_losses
from orchestrator.scheduler.stop_request import StoppedError, Stopping
from trainables.errors import InputError

LOST = "Ray on this machine has lost its process raylet"


class StandIn:
    """Connection, scheduler and watch in one, whose cluster is lost as often as the test says."""

    def __init__(self, monkeypatch, losses, reports=1, is_local=True):
        self.losses, self.reports, self.is_local = losses, reports, is_local
        self.is_ours, self.address, self.stopping, self.num_reports = True, "10.0.0.1:6379", Stopping(), 0
        self.did: list[str] = []
        self.faults: list[str] = []
        self.told: list[str] = []
        self.lost, self.silent_s = "", 0.0
        self.limits_s: list[float] = []
        monkeypatch.setattr(recovery, "ClusterWatch", self.watching)
        monkeypatch.setattr(recovery, "address_fault", lambda _: self.faults.pop(0) if self.faults else "")
        monkeypatch.setattr(recovery, "PAUSE_S", 0.0)
        monkeypatch.setattr(recovery, "gc", SimpleNamespace(collect=lambda: 0))  # over all that other tests left: 1 s

    def watching(self, connection, limit_s, local_s, *_):
        self.limits_s.append(local_s)
        return self

    def __enter__(self):
        self.lost = ""
        return self

    def __exit__(self, *_):
        return None

    def is_finished(self):
        return False

    def cause(self):
        return self.lost

    def lose_all(self, why):
        self.did.append(why)

    def end_processes(self):
        self.did.append("end")

    def close(self, limit_s):
        self.did.append("close")
        return True

    def renew(self):
        self.did.append("renew")
        if self.faults:
            raise InputError(self.faults.pop(0))

    def run(self, watch):
        self.did.append("run")
        if self.losses:
            self.losses, self.num_reports = self.losses - 1, self.num_reports + self.reports
            self.lost = LOST
            raise KeyboardInterrupt

    def go(self, wait_s=600.0):
        run_through_losses(self, self, wait_s, self.told.append, self.run)


def test_what_ran_is_given_back_only_when_no_process_of_it_is_left_and_runs_again(monkeypatch):
    standing = StandIn(monkeypatch, losses=1)
    standing.go()
    assert standing.did == ["run", "end", "the cluster that ran it was lost", "close", "renew", "run"]
    assert standing.told == [f"{LOST}; Ponderay starts Ray again, and the work goes on from its last checkpoints."]


def test_loss_after_loss_without_a_report_stops_the_sweep_and_with_reports_it_goes_on(monkeypatch):
    getting_on = StandIn(monkeypatch, losses=7)
    getting_on.go()
    assert getting_on.did.count("run") == 8
    assert getting_on.limits_s == [30, 60, 120, *[240] * 5]  # one that a busy machine starves is given more time
    idle = StandIn(monkeypatch, losses=7, reports=0)
    with pytest.raises(StoppedError, match=f"^{LOST}, 3 times in a row before anything was reported."):
        idle.go()
    assert idle.did.count("run") == 3


def test_a_ray_that_does_not_start_again_stops_the_sweep(monkeypatch):
    standing = StandIn(monkeypatch, losses=1)
    standing.faults = ["Ray did not start on this machine: no port."] * 3
    with pytest.raises(StoppedError, match=r"there is no other: Ray did not start on this machine: no port\.$"):
        standing.go()


def test_a_cluster_of_others_is_waited_for_and_joined_again(monkeypatch):
    standing = StandIn(monkeypatch, losses=1, is_local=False)
    standing.faults = ["Connection refused"] * 5
    standing.go()
    assert standing.did == ["run", "the cluster that ran it was lost", "close", "renew", "run"]
    assert standing.told == [f"{LOST}; the sweep waits for the cluster for up to 10.0 min."]
    late = StandIn(monkeypatch, losses=1, is_local=False)
    late.faults = ["Connection refused"] * 5
    with pytest.raises(StoppedError, match="Connection refused"):
        late.go(wait_s=-1.0)


@pytest.mark.parametrize("reason", ["", "Stopped at the limit of 1 device hours."])
def test_whoever_is_asked_to_stop_stops(monkeypatch, reason):
    standing = StandIn(monkeypatch, losses=1)
    standing.stopping.reason = reason

    def run(watch):
        watch.lost = LOST if reason else ""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_through_losses(standing, standing, 600.0, print, run)
    assert standing.did == []


def test_a_mistake_while_the_cluster_is_there_is_raised(monkeypatch):
    standing = StandIn(monkeypatch, losses=0)

    def run(watch):
        raise InputError("misspelt")

    with pytest.raises(InputError, match="misspelt"):
        run_through_losses(standing, standing, 600.0, print, run)


def test_a_ray_that_was_there_before_is_not_started_again(monkeypatch):
    standing = StandIn(monkeypatch, losses=1)
    standing.is_ours = False
    with pytest.raises(StoppedError, match=f"^{LOST}\\.$"):
        standing.go()
