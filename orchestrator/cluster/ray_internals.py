"""Every part of Ray that Ray calls its own: no other file touches one. Read in Ray 2.60.0.

`tests/orchestrator/cluster/test_ray_internals.py` fails where a later Ray has moved one, and names it.
"""

from typing import Any

from ray.util.placement_group import PlacementGroup

STREAM_HANDLER = "ray_print_logs"
"""Under this name Ray's driver prints what raylet and workers say."""


def read_mode_again() -> None:
    """Has Ray read its variables again; else it goes by the RAY_AUTH_MODE of the moment when it was imported."""
    from ray._raylet import Config  # type: ignore[attr-defined]

    Config.initialize("")


def propagated_variables() -> set[str]:
    """The names of variables that Tune sends with each trial; what is removed from this set stays here."""
    from ray.tune.execution import class_cache

    names: set[str] = class_cache.ENV_VARS_TO_PROPAGATE
    return names


def quieten_raylet() -> None:
    """Prints no more of what the raylet says: `log_to_driver` does not reach it."""
    from ray._private.ray_logging import global_worker_stdstream_dispatcher

    global_worker_stdstream_dispatcher.remove_handler(STREAM_HANDLER)


def placement_group_of(name: str) -> PlacementGroup:
    """The placement group whose id `placement_group_table` gives as `name`, in hexadecimal digits."""
    from ray._raylet import PlacementGroupID

    return PlacementGroup(PlacementGroupID(bytes.fromhex(name)))


def autoscaling_coordinator() -> Any:
    """The actor by which elastic training learns what it may use; made on this node where there is none."""
    from ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator import (
        get_or_create_autoscaling_coordinator,
    )

    return get_or_create_autoscaling_coordinator()  # type: ignore[no-untyped-call]
