"""Processes are found by a variable they were started with, and ended only while they are the ones that were meant."""

import os
import subprocess
import sys

from orchestrator.machine.processes import children, kill, start_time, with_variable
from tests.waiting import LIMIT_S


def test_a_process_is_found_by_its_variable_and_ended_by_number_and_start():
    environment = os.environ | {"PONDERAY_OF_THIS_TEST": f"{os.getpid()}"}
    command = [sys.executable, "-c", "print('there', flush=True); input()"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    try:
        assert process.stdout.readline() == b"there\n"
        found = with_variable("PONDERAY_OF_THIS_TEST", f"{os.getpid()}")
        assert found == {process.pid: start_time(process.pid)}
        assert children(os.getpid())[process.pid] == found[process.pid] and os.getpid() not in children(os.getpid())
        kill(process.pid, "another start")
        assert process.poll() is None
        kill(process.pid, found[process.pid])
        assert process.wait(LIMIT_S) == -9
        assert with_variable("PONDERAY_OF_THIS_TEST", f"{os.getpid()}") == {}
    finally:
        process.kill()
        process.communicate()


def test_a_process_whose_name_is_cut_within_a_letter_is_read_too():
    """Linux keeps 15 bytes of a name."""
    named = "import ctypes; ctypes.CDLL(None).prctl(15, b'caf\\xc3'); print('there', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", named], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    try:
        assert process.stdout.readline() == b"there\n"
        assert children(os.getpid())[process.pid] == start_time(process.pid) != ""
    finally:
        process.kill()
        process.communicate()
