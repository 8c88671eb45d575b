"""What one look at a lease tells of its holder: here, elsewhere, by another clock, and where records are damaged."""

import json
import time

import pytest

from orchestrator.machine.processes import process_space, start_time
from orchestrator.tracking.lease_holder import SURE_S, Holder, find_holder, held_here, new_beat, new_claim
from tests.orchestrator.tracking.processes import ended_process

ELSEWHERE = {"who": "process 7 on there", "place": {"space": "there", "pid": 7, "started": "1"}, "token": "t"}


def beat(age_s: float) -> str:
    return f"3 {time.time_ns() // 1_000_000 - round(age_s * 1000)}"


def elsewhere(note: str) -> Holder | None:
    return find_holder({"1": json.dumps(ELSEWHERE)}, {"beat.1": note})


def test_a_process_of_this_machine_is_seen_alive_and_dead():
    held_here.add("token")
    claims = {"1": new_claim("token")}
    assert not find_holder(claims, {"beat.1": beat(9 * SURE_S)}).is_gone
    assert find_holder(claims, {"beat.1": "released"}).is_gone
    held_here.discard("token")
    assert find_holder(claims, {}).is_gone
    pid, started = ended_process()
    of = {"space": process_space(), "pid": pid, "started": started}
    gone = find_holder({"1": json.dumps(ELSEWHERE | {"place": of})}, {"beat.1": new_beat(1)})
    assert gone == Holder("process 7 on there", True, None, "t", is_here=True, generation=1)


@pytest.mark.parametrize(
    ("age_s_or_note", "is_gone", "is_silent"),
    [
        (3, False, False),
        (600, False, True),  # or its clock is wrong
        (-3600, False, False),
        (SURE_S + 60, True, False),
        ("17", False, False),  # of an earlier version, which says no time
        ("", False, False),
        ("released", True, False),
    ],
    ids=["young", "old", "of the future", "ancient", "without a time", "none", "released"],
)
def test_of_another_machine_nothing_is_sure_but_what_no_clock_explains(age_s_or_note, is_gone, is_silent):
    found = elsewhere(age_s_or_note if isinstance(age_s_or_note, str) else beat(age_s_or_note))
    assert (found.is_gone, found.is_silent) == (is_gone, is_silent)


def test_before_the_first_beat_the_claim_says_the_time():
    claim = json.dumps(ELSEWHERE | {"time_ms": time.time_ns() // 1_000_000 - 600_000})
    assert find_holder({"1": claim}, {}).is_silent


def test_the_last_one_counts_and_where_nobody_ever_was_there_is_none():
    first, second = (json.dumps(ELSEWHERE | {"who": who}) for who in ("first", "second"))
    assert find_holder({"9": first, "10": second}, {"beat.9": beat(0)}).who == "second"
    assert find_holder({}, {"mlflow.user": "x"}) is None


@pytest.mark.parametrize("claim", ["", "garbage", "[1]", '{"place": 3}', "[" * 100_000, '{"who": null, "place": {}}'])
def test_a_damaged_claim_is_somebodys(claim):
    found = find_holder({"1": claim}, {})
    assert not found.is_gone and found.silent_s is None and start_time(1)
