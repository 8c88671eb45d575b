"""What people read is what was written."""

import pytest

from orchestrator.console import printing
from orchestrator.console.printing import Format, print_rows, say


@pytest.mark.parametrize("title", ["/data/[timit]/x", "/data/a[/b]/x", "t :x: 100:"])
def test_a_text_is_neither_markup_nor_emoji_nor_a_command_to_the_terminal(capsys, title):
    rows = [{"error": "toy.py:100: bad :x:\x1b[31m", "n": 1}]
    print_rows(rows, Format.table, title)
    say("it said :100: and [b]")
    printed = capsys.readouterr().out
    assert title in printed
    assert "toy.py:100: bad :x:?[31m" in printed
    assert "it said :100: and [b]" in printed


def test_neither_is_it_in_a_narrow_terminal_or_below_others(capsys):
    printing._print_paragraphs([{"job": "a\x1b[31m", "message": "bad\x1b]0;x"}], "Jobs")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "message bad?]0;x" in printed
