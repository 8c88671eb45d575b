"""States of replicates in the tracking store: none says what its run lacks, whenever a write of states begins."""

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.journal.study_file import StudyFile
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.study_notes import StudyNotes
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from tests.integration.sweeps import tiny

SWEEP = tiny({"a": {}}, name="recorded.sweep", prerequisites=())


class HeldQueue:
    """Jobs by name as in `WriteQueue`, done when the test says so."""

    def __init__(self):
        self.jobs = {}

    def put(self, name, job, keeps_place=False):
        if not keeps_place:
            self.jobs.pop(name, None)
        self.jobs[name] = job

    def do(self, name):
        self.jobs[name]()

    def do_all(self):
        for name in list(self.jobs):
            self.do(name)
        self.jobs.clear()


@pytest.fixture
def held(workplace):
    queue, tracking = HeldQueue(), Tracking(read_settings())
    factory = TaskFactory(SWEEP, read_settings(), 0)
    file = StudyFile(read_settings().replicates(SWEEP.name), "")
    recorder = Recorder(lambda: tracking, factory, queue, StudyNotes(file, factory, "", print, pytest.fail), print)
    recorder.known  # noqa: B018  # what earlier drivers left is read before anything is written
    first, second = (factory.replicate(SWEEP.conditions[0], seed, {}) for seed in (1, 2))
    recorder.changed(first)
    queue.do_all()
    return queue, recorder, second, lambda: {one.seed: one for one in tracking.read_study("recorded.sweep").replicates}


def test_a_state_that_a_write_in_hand_sees_before_its_run_is_open_keeps_the_runs_id(held):
    queue, recorder, second, recorded = held
    recorder.changed(second)
    queue.do(("condition", "a"))  # the write in hand of the first one's state reads all that have changed
    queue.do_all()
    assert set(recorded()) == {1, 2} and all(one.run_id for one in recorded().values())


def test_an_end_that_a_write_in_hand_sees_before_its_run_is_closed_is_said_after_it(held):
    queue, recorder, second, recorded = held
    recorder.changed(second)
    queue.do_all()
    second.state = "failed"
    recorder.end(second, "")
    queue.do(("condition", "a"))
    assert recorded()[2].state == "running"
    queue.do_all()
    assert recorded()[2].state == "failed" and recorded()[2].run_id
