"""Checkpoint files of torch."""

import subprocess
import sys

SCRIPT = """
import sys, torch
from pathlib import Path
from trainables import checkpoint

def interrupted(*_): raise KeyboardInterrupt

torch.serialization._open_zipfile_writer_buffer.__exit__ = interrupted
try:
    checkpoint.save(Path(sys.argv[1]), {"a": torch.zeros(3)})
except KeyboardInterrupt:
    print("stopped")
"""


def test_an_interrupt_within_a_save_ends_no_process(tmp_path):
    """Where a file is closed that torch's archive has still to write to, C++ aborts."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "state.pt")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stdout) == (0, "stopped\n"), ended.stderr
