"""Replicates that are forked from a template: none sees another, and none takes another along."""

import contextlib
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.checks.resumption import TIMED
from orchestrator.environment.settings import Settings
from orchestrator.machine.processes import is_gone
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.scheduler.watchdog import end_process
from orchestrator.worker.template import Template
from orchestrator.worker.work import Work
from search_spaces.find import find_sweep
from search_spaces.sweep import Condition, Objective, Sweep
from tests.orchestrator.worker.leaking import CHANGES, Leaking
from tests.waiting import until

TRAINABLE = "tests.orchestrator.worker.leaking"


def replicate(folder: Path, changes: str = "", trainable: str = TRAINABLE, attempt: str = "first") -> Work:
    """The work of one that makes these changes."""
    conditions = (Condition("one", {"changes": changes}),)
    sweep = Sweep("leaks", "For tests.", trainable, Leaking(), (Objective("loss"),), conditions=conditions, seeds=(1,))
    factory = TaskFactory(sweep, Settings(folder / "runs", "sqlite:///x.db"), num_gpus=0)
    work = factory.replicate(conditions[0], 1, {}).work
    return work.model_copy(update={"attempt": attempt})


def run(template: Template, work: Work) -> tuple[str, list[dict]]:
    """How it was lost, and its records."""
    records = []
    return template.run(work, records.append, {"node_id": "here"}), records


def digits(records: list[dict]) -> dict[tuple[str, int], dict[str, float]]:
    """All that it reported but times and memory."""
    kept = [record for record in records if record["kind"] in ("metrics", "evaluation")]
    return {
        (record["kind"], record["step"]): {
            name: value
            for name, value in record["metrics"].items()
            if not TIMED.search(name) and not name.startswith("peak_memory")
        }
        for record in kept
    }


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    with contextlib.closing(Template()) as found:
        yield found


@pytest.mark.slow
def test_a_replicate_has_the_digits_it_has_alone_whatever_others_did_to_their_processes(template, tmp_path):
    """Each tells what it sees before it changes something; the last one's training has to bear what all have done."""
    with contextlib.closing(Template()) as unused:
        alone = digits(run(unused, replicate(tmp_path / "alone"))[1])
    before, pids = "nothing", set()
    for changes in (*CHANGES, ""):
        lost, records = run(template, replicate(tmp_path / changes, changes))
        assert (lost, records[-1]["state"]) == ("", "complete")
        found = digits(records)
        if changes:
            found["metrics", 1]["loss"] = alone["metrics", 1]["loss"]
        assert found == alone, f"behind {before}"
        before = changes
        pids.add(records[0]["pid"])
    assert len(pids) == len(CHANGES) + 1


@pytest.mark.parametrize(
    ("end", "lost", "error"),
    [
        ("segmentation fault", "its process was ended by SIGSEGV", ""),
        ("SIGKILL", "its process was ended by SIGKILL", ""),
        ("SIGTERM to a library", "its process was ended by SIGTERM", ""),
        ("os._exit(0)", "its process left with exit code 0 before the replicate had ended", ""),
        ("os._exit(3)", "its process left with exit code 3 before the replicate had ended", ""),
        ("sys.exit", "", "RuntimeError: The trainable called sys.exit(4); it must return or raise."),
        ("KeyboardInterrupt", "KeyboardInterrupt (leaking.py, line ", ""),
    ],
)
def test_a_replicate_whose_process_ends_is_lost_with_a_sentence_and_the_next_runs(template, tmp_path, end, lost, error):
    said, records = run(template, replicate(tmp_path, end))
    assert said.startswith(lost) and bool(said) == bool(lost)
    assert records[-1].get("error", "") == error
    said, records = run(template, replicate(tmp_path))
    assert (said, records[-1]["state"]) == ("", "complete")


def test_a_replicate_that_hangs_says_where_and_is_ended_alone(template, tmp_path):
    said = []

    def send(record):
        if record["kind"] == "started":
            time.sleep(1.0)  # it has begun to hang, or it is still ended
            said.append(end_process(record))

    assert template.run(replicate(tmp_path, "hangs"), send, {}) == "its process was ended by SIGKILL"
    assert "leaking.py" in said[0].splitlines()[1]
    assert run(template, replicate(tmp_path))[0] == ""


def test_draws_without_a_seed_differ_between_replicates_as_between_processes(template, tmp_path):
    def draws(folder):
        (metrics,) = digits(run(template, replicate(tmp_path / folder, "draws"))[1]).values()
        return {name: value for name, value in metrics.items() if name.startswith("drawn_")}

    first, second = draws("first"), draws("second")
    assert len(first) == 3 and not set(first.values()) & set(second.values())


def test_a_replicate_prints_where_its_user_does_and_ends_with_the_process_that_uses_its_template(tmp_path):
    """Nothing that it has printed waits in a buffer, which a crash would take along."""
    (tmp_path / "work.json").write_text(replicate(tmp_path, "hangs").model_dump_json())
    program = (  # the replicate prints to the same pipe, so a line is written at once
        "import os, sys; from pathlib import Path; from orchestrator.worker.template import Template, Work; "
        "said = lambda record: os.write(1, '\\nstarted {pid} {process_started}\\n'.format(**record).encode()); "
        "Template().run(Work.model_validate_json(Path(sys.argv[1]).read_text()), said, {})"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "work.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as user:  # noqa: S603
        lines = iter(user.stdout.readline, "")
        said = sorted(itertools.islice((line for line in lines if line.startswith(("changes ", "started "))), 2))
        assert said[0] == "changes 'hangs'\n"
        _, pid, started = said[1].split()
        user.send_signal(signal.SIGKILL)
        until(lambda: is_gone(int(pid), started))


def test_what_cannot_be_sent_on_ends_the_replicate_and_the_next_runs(template, tmp_path):
    pids = []

    def send(record):
        pids.append((record["pid"], record["process_started"]))
        raise ConnectionError("nobody listens")

    with pytest.raises(ConnectionError):
        template.run(replicate(tmp_path, "hangs"), send, {})
    until(lambda: is_gone(*pids[0]))
    said, records = run(template, replicate(tmp_path))
    assert (said, records[-1]["state"]) == ("", "complete")


def test_a_module_that_changes_while_the_template_lives_is_not_taken_for_what_it_was(template, tmp_path, monkeypatch):
    """Not where a function imports it, which each replicate does anew; what was imported before stays as it was."""
    (tmp_path / "imports_late.py").write_text(
        "from tests.orchestrator.worker.leaking import Leaking\n\n"
        "def train(config: Leaking, trial):\n    import late\n    trial.report({'loss': late.LOSS}, step=1)\n"
    )
    (tmp_path / "late.py").write_text("LOSS = 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    works = [replicate(tmp_path / name, "", "imports_late") for name in "abc"]
    assert run(template, works[0])[1][-1]["state"] == "complete"
    (tmp_path / "late.py").write_text("LOSS = 2.0\n")
    final = run(template, works[1])[1][-1]
    assert (final["state"], final["is_input_error"]) == ("failed", True)
    assert final["error"].startswith(f"{tmp_path / 'late.py'} was changed while the sweep ran; run it again")
    (tmp_path / "late.py").write_text("LOSS = 1.0\n")
    (tmp_path / "imports_late.py").write_text("nonsense")
    assert run(template, works[2])[1][-1]["state"] == "complete"


def test_a_replicate_works_where_its_user_does_unless_the_import_goes_elsewhere(template, tmp_path, monkeypatch):
    for name, line in (("stays", ""), ("goes", "import os; os.chdir('/')\n")):
        (tmp_path / f"{name}.py").write_text(f"{line}from tests.orchestrator.worker.leaking import Leaking, train\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)  # before the import, so that the folder of other tests comes back
    works = [replicate(tmp_path / str(i), "", name) for i, name in enumerate(("stays", "goes", "stays"))]
    monkeypatch.chdir(tmp_path)
    seen = [digits(run(template, work)[1])["metrics", 1]["seen_folder"] for work in works]
    monkeypatch.chdir("/")
    assert [*seen, digits(run(template, replicate(tmp_path / "3", "", "stays"))[1])["metrics", 1]["seen_folder"]] == [
        0, 1, 0, 1
    ]  # fmt: skip


@pytest.mark.slow
def test_a_trainable_whose_import_starts_threads_is_imported_anew_for_each_replicate(template, tmp_path, monkeypatch):
    """A fork would lack the threads."""
    source = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    (tmp_path / "with_threads.py").write_text(f"{source}from tests.orchestrator.worker.leaking import *\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = [run(template, replicate(tmp_path / name, "module's state", "with_threads")) for name in "ab"]
    assert [(said, records[-1]["state"]) for said, records in found] == [("", "complete")] * 2
    for _, records in found:
        (metrics,) = digits(records).values()
        assert (metrics["seen_threads"], metrics["seen_state"]) == (2, 0)


def test_the_thread_of_an_allocator_is_none_that_a_fork_would_lack(template, tmp_path, monkeypatch):
    """Whatever imports pandas has it, and would else be imported anew for each replicate."""
    (tmp_path / "with_arrow.py").write_text(
        "import os\nimport pyarrow\nfrom tests.orchestrator.worker.leaking import Leaking\n\n"
        "def train(config: Leaking, trial):\n    count = len(pyarrow.table({'x': range(9)}))\n"
        "    trial.report({'count': count, 'parent': os.getppid(), 'own': os.getpid()}, step=1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    works = [replicate(tmp_path / name, "", "with_arrow") for name in "ab"]
    first, second = (digits(run(template, work)[1])["metrics", 1] for work in works)
    assert first["count"] == second["count"] == 9
    assert first["parent"] == second["parent"] and first["own"] != second["own"]


@pytest.mark.slow
@pytest.mark.long
def test_smoke_sweeps_of_all_families_have_equal_digits_in_any_order(tmp_path):
    """Prerequisites before what needs them; all in processes that one template forks, in one order and its reverse."""
    numbers = []
    for order in (1, -1):
        works, found = smoke_works(tmp_path / str(order))[::order], {}
        with contextlib.closing(Template()) as forking:
            for work in (part for parts in works for part in parts):
                if work.label not in found:
                    said, records = run(forking, work)
                    assert (said, records[-1]["state"]) == ("", "complete"), work.label
                    found[work.label] = digits(records)
        numbers.append(found)
    assert len(numbers[0]) >= 7 and numbers[0] == numbers[1]


def smoke_works(folder: Path) -> list[list[Work]]:
    """The first and the last condition of a sweep of each family, each behind its prerequisites."""
    works = []
    for name in ("asr.demo", "act.tau_parity_laptop", "lm.laptop"):
        sweep = find_sweep(name, smoke=True)
        factory = TaskFactory(sweep, Settings(folder, "sqlite:///x.db"), num_gpus=0)
        for condition in (sweep.conditions[0], sweep.conditions[-1]):
            needed = factory.prerequisites(condition, 1)
            parts = [*needed.values(), factory.replicate(condition, 1, needed)]
            works.append([part.work.model_copy(update={"label": f"{name} {part.work.label}"}) for part in parts])
    return works
