"""Cells of CSV, as readers and spreadsheets take them."""

import csv
import io

import pytest

from orchestrator.console.csv_text import csv_text
from orchestrator.console.printing import to_csv
from orchestrator.report import table

FORMULAS = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "-", "-1\n", '=HYPERLINK("x",1)']
OTHERS = ["a", "", "a=1", "1", "-0.5", "-inf", "+1e5", "-nan", "'=1", " =1", -1.5, -3, None, True]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_text_that_a_spreadsheet_would_compute_has_an_apostrophe(cell):
    for text in (
        csv_text([["x"], [cell]]),
        to_csv([{"x": cell}]),
        table.to_csv(table.Table("t", "t", ("x",), ((cell,),))),
    ):
        assert list(csv.reader(io.StringIO(text, newline="")))[1] == [f"'{cell}"]


@pytest.mark.parametrize("cell", OTHERS)
def test_numbers_and_other_texts_stay_as_they_are(cell):
    expected = "" if cell is None else str(cell)
    assert list(csv.reader(io.StringIO(csv_text([["x", "y"], [cell, 1]]), newline="")))[1] == [expected, "1"]


@pytest.mark.parametrize("cell", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "a\r"])
def test_what_ends_a_line_or_a_cell_is_quoted(cell):
    text = csv_text([["x", "y"], [cell, "z"]])
    assert text == f'x,y\n"{cell.replace(chr(34), chr(34) * 2)}",z\n'


def test_a_heading_is_a_cell_too_and_nothing_is_nothing():
    assert to_csv([{"=1": 2}]) == "'=1\n2\n" and to_csv([]) == ""
