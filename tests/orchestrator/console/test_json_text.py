"""JSON for programs: the same values as by `json.dumps`, a record a line."""

import json
import math

import pytest

from orchestrator.console.json_text import json_text

RECORDS = [{"name": 'a "b"\n', "n": 1, "x": 0.1}, {"name": "c", "n": None, "x": [1, {"y": True}]}]


@pytest.mark.parametrize("content", [RECORDS, [], {}, [1, "a"], {"points": RECORDS, "n": 2, "none": [], "two": [1, 2]}])
def test_a_reader_gets_the_values_back(content):
    assert json.loads(json_text(content)) == content


def test_a_record_has_a_line_of_its_own():
    assert [json.loads(line.rstrip(",")) for line in json_text(RECORDS).splitlines()[1:-1]] == RECORDS


def test_what_is_no_number_is_null():
    nothing = {"a": math.nan, "b": [math.inf, 1.0]}
    assert json.loads(json_text([nothing])) == [{"a": None, "b": [None, 1.0]}]
    assert json.loads(json_text(nothing)) == {"a": None, "b": [None, 1.0]}
