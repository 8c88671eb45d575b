"""Which job is meant, what the next one is called, and that a sweep has one at a time."""

import pytest

from orchestrator.cluster.jobs import Job, find_job, next_name
from orchestrator.console.errors import RefusedError
from trainables.errors import InputError


def job(name: str, state: str = "SUCCEEDED", sweep: str | None = None) -> Job:
    """One whose sweep is its name without the number, if it is not said."""
    return Job(name, name.rpartition("-")[0] if sweep is None else sweep, state, "python -m orchestrator run x", 0)


def test_jobs_of_a_sweep_are_numbered_whatever_else_the_cluster_has():
    assert next_name([], "asr.demo") == "asr.demo-1"
    known = [job("asr.demo-10"), job("asr.demo-9", "FAILED"), job("asr.demo.smoke-77"), job("asr.demo-x", sweep="")]
    assert next_name(known, "asr.demo") == "asr.demo-11"
    assert next_name([job("asr.demo-3", sweep="")], "asr.demo") == "asr.demo-4"
    assert next_name([], "my sweep/of:two") == "my_sweep_of_two-1"


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_sweep_with_a_job_gets_no_other(state):
    known = [job("asr.demo-2", state), job("asr.demo-1")]
    with pytest.raises(
        RefusedError, match=r"already run by the job asr\.demo-2; .*logs asr\.demo-2 --follow.*stop asr"
    ):
        next_name(known, "asr.demo")
    assert next_name(known, "asr.budget") == "asr.budget-1"


def test_a_job_is_found_by_its_name_or_as_the_newest_of_its_sweep():
    known = [job("a-3"), job("b-1"), job("a-2"), job("other", sweep="")]
    assert find_job(known, "a") is known[0]
    assert find_job(known, "a-2") is known[2]
    with pytest.raises(InputError, match="no job and no sweep 'other'; there are a-3, b-1, a-2"):
        find_job(known, "other")
    with pytest.raises(InputError, match="there is none"):
        find_job([], "a")
