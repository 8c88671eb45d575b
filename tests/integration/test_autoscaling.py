"""A cluster that grows: what waits is reserved in Ray, and given back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from orchestrator.scheduler.capacity import Capacity
from search_spaces.resources import ResolvedResources, Resources
from tests.waiting import until


def cpus(number: int) -> ResolvedResources:
    return Resources(num_workers=0, cpus_per_worker=number).resolve(0)


ONE_CPU = cpus(1)


@dataclass
class Waiting:
    """A scheduler with nothing but tasks that wait."""

    waiting: dict[str, SimpleNamespace]
    live: dict[str, SimpleNamespace] = field(default_factory=dict)

    @property
    def tasks(self) -> "Waiting":
        return self

    def is_open(self, _task: SimpleNamespace) -> bool:
        return True


def waiting(*resources: ResolvedResources) -> dict[str, SimpleNamespace]:
    return {
        str(i): SimpleNamespace(prerequisites=(), work=SimpleNamespace(resources=one))
        for i, one in enumerate(resources)
    }


def groups() -> list[tuple[str, float]]:
    """Reservations that there are: how each stands, and its CPUs."""
    from ray.util.placement_group import placement_group_table

    found = [group for group in placement_group_table().values() if group["state"] != "REMOVED"]
    return sorted((group["state"], group["bundles"][0]["CPU"]) for group in found)


@pytest.mark.slow
def test_what_waits_is_reserved_until_it_has_its_place_and_nothing_is_left(ray_instance):
    from orchestrator.cluster.autoscaling import Demand

    scheduler, told, seen = Waiting(waiting(ONE_CPU, cpus(64))), [], set()
    before = groups()

    def see(wanted: Callable[[], bool]) -> None:
        until(lambda: wanted() or seen.update(groups()))

    with Demand(scheduler, lambda: Capacity(0, 0, 0, 0, most=Capacity(100, 0, 64, 0)), told.append, lambda: True):
        see(lambda: {("CREATED", 1.0), ("PENDING", 64.0)} <= seen)
        scheduler.waiting = waiting(cpus(63))
        see(lambda: groups() == [*before, ("PENDING", 63.0)])
        scheduler.waiting = {}
        see(lambda: groups() == before)
        scheduler.waiting = waiting(cpus(62))
        see(lambda: ("PENDING", 62.0) in groups())
    see(lambda: groups() == before)
    assert told[0] == "Ponderay asks the cluster for machines: 2 replicates wait for resources."
