"""What may start beside what runs, so that Ray Train inside Ray Tune can never wait for itself."""

import random
from types import SimpleNamespace

import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.scheduler.capacity import Capacity, check_capacity, fits, leaves_room
from search_spaces.resources import ResolvedResources, Resources

TWO_CPUS = Capacity(2, 0)


def needs(num_workers=0, cpus=1, gpus=0.0) -> ResolvedResources:
    return Resources(num_workers, cpus, gpus).resolve(num_gpus=8)


@pytest.mark.parametrize(
    ("asked", "live", "capacity", "is_fitting"),
    [
        (needs(), [], TWO_CPUS, True),
        (needs(), [needs()] * 2, TWO_CPUS, True),  # one may queue, so that Tune reuses its actor
        (needs(), [needs()] * 3, TWO_CPUS, False),
        (needs(num_workers=1), [needs()] * 2, TWO_CPUS, False),
        (needs(num_workers=1), [needs()], TWO_CPUS, True),
        (needs(), [needs(num_workers=2)], TWO_CPUS, False),
        (needs(num_workers=3), [], TWO_CPUS, False),
        (needs(num_workers=(1, 3)), [], TWO_CPUS, True),  # elastic, and nothing else runs
        (needs(num_workers=(1, 3)), [needs()], TWO_CPUS, False),
        (needs(1, gpus=0.25), [needs(1, gpus=0.25)] * 3, Capacity(8, 1), True),
        (needs(1, gpus=0.25), [needs(1, gpus=0.25)] * 4, Capacity(8, 1), False),
        (needs(1, gpus=1.0), [needs(1, gpus=0.25)], Capacity(8, 1), False),
    ],
)
def test_what_fits(asked, live, capacity, is_fitting):
    assert fits(asked, live, capacity) is is_fitting


def test_what_queues_beside_a_full_machine_has_no_room_until_its_turn_comes():
    assert leaves_room(needs(), [needs()], TWO_CPUS) and not leaves_room(needs(), [needs()] * 2, TWO_CPUS)
    assert leaves_room(needs(num_workers=(1, 3)), [needs()], TWO_CPUS), "elastic work starts with the least it takes"
    assert not leaves_room(needs(1, gpus=0.5), [needs(1, gpus=0.75)], Capacity(8, 1))


def test_workers_are_never_promised_more_than_there_is():
    """Whatever came before: what is live never asks for more than the cluster has, once workers are among it."""
    generator = random.Random(1)
    for _ in range(200):
        capacity, live = Capacity(generator.randint(1, 8), generator.randint(0, 2)), []
        for _ in range(30):
            asked = needs(generator.choice([0, 1, 2, 3]), generator.randint(1, 2), generator.choice([0.0, 0.25, 1.0]))
            if fits(asked, live, capacity):
                live.append(asked)
            elif live and generator.random() < 0.3:
                live.pop(generator.randrange(len(live)))
            if any(one.num_workers for one in live):
                assert sum(one.num_cpus for one in live) <= capacity.num_cpus
            assert sum(one.num_gpus for one in live) <= capacity.num_gpus


@pytest.mark.parametrize(
    ("asked", "nodes", "num_places"),
    [
        (needs(num_workers=3, cpus=4), ((6, 0), (6, 0)), 2),
        (needs(num_workers=2, cpus=4), ((6, 0), (6, 0)), None),
        (needs(num_workers=3, gpus=0.6), ((8, 2),), 2),  # a share is of one card
        (needs(num_workers=4, gpus=0.5), ((8, 2),), None),
        (needs(num_workers=3, gpus=0.3), ((8, 1),), None),
        (needs(num_workers=2, gpus=2.0), ((8, 3), (8, 1)), 1),
        (needs(num_workers=(2, 4), cpus=4), ((6, 0), (6, 0)), None),
        (needs(num_workers=2), (), None),  # of a cluster that grows they are not known
    ],
)
def test_what_no_nodes_have_place_for_is_refused_though_their_sums_suffice(asked, nodes, num_places):
    task = SimpleNamespace(work=SimpleNamespace(label="a seed 1", resources=asked))
    capacity = Capacity(12, 4, 8, 4, nodes)
    if num_places is None:
        check_capacity(task, capacity)
        return
    with pytest.raises(RefusedError, match=rf"but the {len(nodes)} nodes have room for {num_places}; lower its"):
        check_capacity(task, capacity)
