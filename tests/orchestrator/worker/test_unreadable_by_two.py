"""A checkpoint that several processes cannot read: all start again, as Ray Train makes them, from an earlier one.

The processes and their group are real; Ray Train's part, to start all again with the same work, is played here.
"""

import functools
import json
from pathlib import Path

import numpy as np
import torch
from torch import distributed, multiprocessing

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.machine.waiting import wait_until
from orchestrator.worker.execute import execute
from orchestrator.worker.work import Work
from tests.orchestrator.worker.cut_off import SOURCE, cut_off, reported, undisturbed
from tests.orchestrator.worker.test_unreadable import replace
from tests.waiting import LIMIT_S

CHANGES = {
    "import ponderay\n": "import ponderay\nimport time\nfrom trainables import distributed\n",
    "    if found := trial.restore():\n": (
        "    found = trial.restore()\n    distributed.sum_over_processes(0.0)\n    if found:\n"
    ),
    "        state = torch.load(": (
        "        while distributed.rank() and 'late' in str(found) and found.exists():\n"
        "            time.sleep(0.01)\n"
        "        state = torch.load("
    ),
    "        total +=": "        distributed.sum_over_processes(1.0)\n        total +=",
}
TOY = functools.reduce(lambda text, change: text.replace(*change), CHANGES.items(), SOURCE)
"""In step; in a folder that is called late the second process begins to read what the first one has set aside."""

NUM_SESSIONS = 4
"""One, and as many as Ray Train adds."""


def train_by_two(rank: int, works: list[str], place: str) -> None:
    """One of two processes; notes of each work how its sessions ended and what it sent."""
    torch.set_num_threads(1)
    noted = [sessions(rank, Work.model_validate_json(work), Path(place, f"store{i}")) for i, work in enumerate(works)]
    Path(place, f"{rank}.json").write_text(json.dumps(noted))


def sessions(rank: int, work: Work, store: Path) -> tuple[list[str], list[Record]]:
    """After one that ends in an error another one begins."""
    ends, sent = [], []
    for session in range(NUM_SESSIONS):
        found = distributed.FileStore(f"{store}.{session}", 2)
        distributed.init_process_group("gloo", store=found, rank=rank, world_size=2)
        try:
            execute(work, sent.append, is_writer=rank == 0)
            ends.append("")
        except Exception as error:
            ends.append(f"{type(error).__name__}: {error}")
        distributed.destroy_process_group()
        if not ends[-1]:
            break
    return ends, sent


def said(records: list[Record]) -> list[str]:
    """What was set aside."""
    return [record["said"] for record in records if record["kind"] == "set_aside"]


def test_all_start_again_from_an_earlier_one_or_anew_say_so_and_come_to_the_same_digits(work, tmp_path):
    """Some seconds, for each process loads torch."""
    whole, contents = undisturbed(work), (b"garbage of no format", {"total": np.float64(1.0)})
    works, bad = [], []
    for num_bad, name in ((1, "at once"), (2, "late")):
        works.append(work.model_copy(update={"folder": work.folder.with_name(name), "attempt": "first"}))
        cut_off(works[-1], after=4)
        newest = list(ReplicateFolder(works[-1].folder, {}).checkpoints().values())[::-1][:num_bad]
        bad.append([replace(one, content) for one, content in zip(newest, contents, strict=False)])
    given = [one.model_copy(update={"attempt": "second"}).model_dump_json() for one in works]
    processes = multiprocessing.spawn(train_by_two, (given, str(tmp_path)), nprocs=2, join=False)
    try:
        assert wait_until(lambda: processes.join(timeout=1), LIMIT_S), "they wait for each other"
    finally:
        for process in processes.processes:
            process.kill()
    writer, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    for one, files, (ends, sent), (others_ends, others_sent) in zip(works, bad, writer, other, strict=True):
        folder = ReplicateFolder(one.folder, {})
        assert ends[-1] == others_ends[-1] == "" and len(ends) == len(others_ends) == 1 + len(files)
        assert [record["kind"] for record in sent] == [record["kind"] for record in others_sent], "they are in step"
        assert said(sent) == said(others_sent) == said(folder.records())
        whence = ["goes on after step 3.", "starts anew."][: len(files)]
        for file, sentence, end in zip(files, said(sent), whence, strict=True):
            assert sentence.startswith(f"{file} cannot be read (") and sentence.endswith(end)
            assert (one.folder / f"unreadable.{file.name}").is_file()
        assert sent[-1]["state"] == folder.state()["state"] == "complete"
        assert reported(one) == whole
        assert "weights_only" not in json.dumps([folder.records(), sent, ends, others_ends])
