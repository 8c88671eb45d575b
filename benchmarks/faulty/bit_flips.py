"""Every single flipped bit of a journal: seen as damage, without effect, or read as another record."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faulty.sweeps import sweep
from orchestrator.environment.settings import Settings
from orchestrator.journal.file_names import JOURNAL
from orchestrator.journal.lines import parse
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute


@dataclass
class Flips:
    """How the flips of all bits of a journal are read.

    Attributes:
        num_seen: a line is damaged, and all records before it are as they were written.
        num_changed: a record is another one, or is missing, without a word.
    """

    num: int = 0
    num_seen: int = 0
    num_changed: int = 0


def flips(content: bytes) -> Flips:
    """Those of every bit of `content`, one at a time."""
    found, whole = Flips(), [json.dumps(record) for record in parse(content).records]
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        lines = parse(bytes(flipped))
        records = [json.dumps(record) for record in lines.records]
        is_changed = records != (whole[: len(records)] if lines.fault else whole)
        found.num += 1
        found.num_changed += is_changed
        found.num_seen += bool(lines.fault) and not is_changed
    return found


def journal_of_a_replicate() -> bytes:
    """What the first replicate of the listed sweep writes, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        listed = sweep("listed")
        factory = TaskFactory(listed, Settings(Path(folder), ""), num_gpus=0)
        needed = factory.prerequisites(listed.conditions[0], 1)
        work = factory.replicate(listed.conditions[0], 1, needed).work
        for one in [*(task.work for task in needed.values()), work]:
            execute(one, lambda record: None)
        return (work.folder / JOURNAL).read_bytes()


def show() -> int:
    """Prints the table; returns how many flips of today's lines change a record."""
    content = journal_of_a_replicate()
    earlier = b"".join(json.dumps(record).encode() + b"\n" for record in parse(content).records)
    print(f"\n{'every bit of a journal':26}{'flips':>9}{'seen':>8}{'changed records':>18}")
    for name, lines in (("without checksums", earlier), ("with checksums", content)):
        found = flips(lines)
        print(f"{name:26}{found.num:9,}{found.num_seen:8,}{found.num_changed:18,}", flush=True)
    return found.num_changed
