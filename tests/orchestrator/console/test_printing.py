"""What people read is what was written."""

import io

import pytest
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from orchestrator.console import printing
from orchestrator.console.printing import Format, HarmlessConsole, brief_message, err, out, print_rows, say


@pytest.mark.parametrize("title", ["/data/[timit]/x", "/data/a[/b]/x", "t :x: 100:"])
def test_a_text_is_neither_markup_nor_emoji_nor_a_command_to_the_terminal(capsys, title):
    rows = [{"error": "toy.py:100: bad :x:\x1b[31m", "n": 1}]
    print_rows(rows, Format.table, title)
    say("it said :100: and [b]")
    printed = capsys.readouterr().out
    assert title in printed
    assert "toy.py:100: bad :x:?[31m" in printed
    assert "it said :100: and [b]" in printed


def test_neither_is_it_in_a_narrow_terminal_or_below_others(capsys, monkeypatch):
    monkeypatch.setattr(printing, "out", HarmlessConsole(width=30, highlight=False, emoji=False))
    rows = [{"job": "a\x1b[31m", "message": "bad\x1b]0;x", "seeds": 5, "tries": 1, "host": ""}]
    print_rows(rows, Format.table, "Jobs")
    printed = capsys.readouterr().out
    assert [line.rstrip() for line in printed.splitlines()] == [
        "Jobs",
        "a?[31m",
        "  message bad?]0;x, seeds 5,",
        "  tries 1",
    ]


HOSTILE = {
    "escape": "a\x1b[2Jb",
    "title": "a\x1b]0;x\x07b",
    "direction": "a\u202eb",
    "isolate": "a\u2066b",
    "c1": "a\x9b2Jb",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_whatever_is_printed_does_nothing_in_a_terminal(capsys, text):
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    for renderable in (text, Text(text), table, Padding(Text(text)), Panel(text)):
        out.print(renderable)
        err.print(renderable, markup=False, soft_wrap=True)
    said = capsys.readouterr()
    assert all(sign.isprintable() or sign == "\n" for sign in said.out + said.err)
    assert said.out.count("a?") == said.err.count("a?") == 7


def test_colours_and_lines_are_printed_as_they_are():
    colours = HarmlessConsole(force_terminal=True, color_system="standard", file=io.StringIO(), width=40)
    colours.print("[red]a[/red]\nb\u202ec")
    assert colours.file.getvalue() == "\x1b[31ma\x1b[0m\nb?c\n"


def test_of_what_is_long_in_a_message_the_beginning_is_said_and_how_long_it_is():
    message = f"There is no sweep {'x' * 70_000!r}; `ponderay sweeps` lists them."
    assert brief_message(message) == (
        f"There is no sweep '{'x' * 499}... (70,003 characters) `ponderay sweeps` lists them."
    )
    assert brief_message("word " * 1000) == "word " * 400 + "... (5,000 characters)"
    assert brief_message("There is none.") == "There is none."
