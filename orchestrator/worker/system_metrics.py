"""How busy the machine of a run is: processors, memory, disk, network and the GPU in use.

Names and units are those of MLflow's system metrics (`mlflow.system_metrics`), without their prefix `system/`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil  # type: ignore[import-untyped]
import torch

FIRST_S: Final = 1.0
"""From the start to the first sample: over less, a share of busy processors says nothing."""

INTERVAL_S: Final = 10.0
MEGABYTE: Final = 1e6


class SystemMetrics:
    """Samples of this machine since a run's start, now and then.

    Args:
        folder: the disk of which is meant.
        clock: seconds that only grow.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._due_s = clock() + FIRST_S
        self._first_network = 0, 0
        with suppress(Exception):
            psutil.cpu_percent()  # each call gives the share since the one before
            self._first_network = _network()

    def sample(self) -> Mapping[str, float]:
        """What is known of it now; nothing within INTERVAL_S of the last sample."""
        if self._clock() < self._due_s:
            return {}
        self._due_s = self._clock() + INTERVAL_S
        values: dict[str, float] = {}
        for measure in (_processors_and_memory, self._disk, self._traffic, _gpu_memory, _gpu_utilisation, _gpu_power):
            with suppress(Exception):  # whatever a machine cannot tell must not end the run
                values |= measure()
        return {name: round(value, 1) for name, value in values.items()}

    def _disk(self) -> dict[str, float]:
        disk = psutil.disk_usage(str(self._folder))
        return {
            "disk_usage_percentage": disk.percent,
            "disk_usage_megabytes": disk.used / MEGABYTE,
            "disk_available_megabytes": disk.free / MEGABYTE,
        }

    def _traffic(self) -> dict[str, float]:
        """Since the run's start."""
        (received, sent), (first_received, first_sent) = _network(), self._first_network
        return {
            "network_receive_megabytes": (received - first_received) / MEGABYTE,
            "network_transmit_megabytes": (sent - first_sent) / MEGABYTE,
        }


def _network() -> tuple[int, int]:
    """Bytes received and sent since the machine's start."""
    counters = psutil.net_io_counters()
    return counters.bytes_recv, counters.bytes_sent


def _processors_and_memory() -> dict[str, float]:
    memory = psutil.virtual_memory()
    return {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / MEGABYTE,
        "system_memory_usage_percentage": 100 * memory.used / memory.total,
    }


def _gpu_memory() -> dict[str, float]:
    """The memory of all processes on the GPU that this process uses; nothing where it uses none."""
    if not torch.cuda.is_initialized():
        return {}
    free, total = torch.cuda.mem_get_info()
    return {
        _gpu("memory_usage_megabytes"): (total - free) / MEGABYTE,
        _gpu("memory_usage_percentage"): 100 * (total - free) / total,
    }


def _gpu_utilisation() -> dict[str, float]:
    return {_gpu("utilization_percentage"): torch.cuda.utilization()} if torch.cuda.is_initialized() else {}


def _gpu_power() -> dict[str, float]:
    return {_gpu("power_usage_watts"): torch.cuda.power_draw() / 1000} if torch.cuda.is_initialized() else {}


def _gpu(name: str) -> str:
    return f"gpu_{torch.cuda.current_device()}_{name}"
