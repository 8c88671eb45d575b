"""Which line of Ray's long story about a lost worker is shown."""

from orchestrator.cluster.tune_adapter import cause_of

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: ImplicitFunc
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker
unexpectedly exits with a connection error code 2."""


def test_the_exit_of_a_worker_that_died_and_the_last_line_of_an_exception():
    assert cause_of(DIED).startswith("The actor is dead because its worker process has died.")
    assert cause_of("Traceback\n  File x\nOSError: [Errno 28] No space left on device\n") == (
        "OSError: [Errno 28] No space left on device"
    )
    assert cause_of("Task was killed due to the node running low on memory.\nmore") == (
        "Task was killed due to the node running low on memory."
    )
    assert cause_of("") == ""
