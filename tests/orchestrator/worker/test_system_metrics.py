"""Samples of the machine: MLflow's own names, now and then, and never a reason to fail."""

import math
from pathlib import Path

import pytest
import torch

from orchestrator.worker.system_metrics import FIRST_S, INTERVAL_S, SystemMetrics


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def mlflow_names() -> set[str]:
    """What MLflow's own monitors measure here."""
    from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
    from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
    from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

    names = set()
    for monitor in (CPUMonitor(), DiskMonitor(), NetworkMonitor()):
        monitor.collect_metrics()
        names |= set(monitor.aggregate_metrics())
    return names


def test_names_are_those_of_mlflow_and_values_are_possible(tmp_path, clock):
    load = SystemMetrics(tmp_path, clock)
    clock.now_s += FIRST_S
    values = load.sample()
    assert set(values) == mlflow_names()
    assert all(math.isfinite(value) and value >= 0 for value in values.values())
    assert all(value <= 100 for name, value in values.items() if name.endswith("_percentage"))
    lines = Path("/proc/meminfo").read_text().splitlines()
    total_bytes = 1024 * int(next(line for line in lines if line.startswith("MemTotal")).split()[1])
    share = 100 * 1e6 * values["system_memory_usage_megabytes"] / total_bytes
    assert share == pytest.approx(values["system_memory_usage_percentage"], abs=0.1)


def test_at_most_one_sample_in_an_interval(tmp_path, clock):
    load, times = SystemMetrics(tmp_path, clock), []
    for tick in range(400):
        clock.now_s = 100.0 + 0.1 * tick
        if load.sample():
            times.append(round(clock.now_s - 100.0, 1))
    assert times == [FIRST_S, FIRST_S + INTERVAL_S, FIRST_S + 2 * INTERVAL_S, FIRST_S + 3 * INTERVAL_S]


def test_what_cannot_be_measured_is_left_out(tmp_path, clock, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such sensor")

    load = SystemMetrics(tmp_path / "nothing here", clock)
    clock.now_s += FIRST_S
    monkeypatch.setattr("psutil.virtual_memory", fail)
    monkeypatch.setattr("psutil.net_io_counters", lambda: None)
    assert load.sample() == {}


def test_the_gpu_in_use_is_named_as_mlflow_does(tmp_path, clock, monkeypatch):
    for name, value in {
        "is_initialized": True,
        "current_device": 1,
        "mem_get_info": (60_000_000, 80_000_000),
        "utilization": 37,
        "power_draw": 250_000,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    load = SystemMetrics(tmp_path, clock)
    clock.now_s += FIRST_S
    of_gpu = {name: value for name, value in load.sample().items() if name.startswith("gpu_")}
    assert of_gpu == {
        "gpu_1_memory_usage_megabytes": 20.0,
        "gpu_1_memory_usage_percentage": 25.0,
        "gpu_1_utilization_percentage": 37.0,
        "gpu_1_power_usage_watts": 250.0,
    }


def test_a_gpu_that_is_not_used_is_not_touched(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: pytest.fail("makes a context"))
    load = SystemMetrics(tmp_path, clock)
    clock.now_s += FIRST_S
    assert not [name for name in load.sample() if name.startswith("gpu_")]
