"""What a replicate says of the place where it works."""

import platform
from pathlib import Path

import pytest
import torch

from orchestrator.worker import execute


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (
            "processor\t: 0\nmodel name\t: Made-up 9 CPU\nflags\t\t: fpu\n\nmodel name\t: Made-up 9 CPU\n",
            "Made-up 9 CPU",
        ),
        ("processor\t: 0\nCPU part\t: 0xd0c\n", platform.machine()),
    ],
)
def test_without_a_gpu_the_device_is_the_processor_that_rounds_its_sums(monkeypatch, cpuinfo, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(Path, "read_text", lambda path: cpuinfo)
    assert execute._place()["device"] == f"{name} ({torch.backends.cpu.get_cpu_capability()})"
