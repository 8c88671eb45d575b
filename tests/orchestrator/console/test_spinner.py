"""What is being worked on: a line in a log, a spinner that goes away on a terminal."""

import io

from rich.console import Console

from orchestrator.console import spinner


def said(monkeypatch, **options):
    text = io.StringIO()
    monkeypatch.setattr(spinner, "err", Console(file=text, width=80, **options))
    with spinner.spinner("Reading [b]it[/b]"):
        pass
    return text.getvalue()


def test_a_log_has_a_plain_line(monkeypatch):
    assert said(monkeypatch) == "Reading [b]it[/b] ...\n"


def test_a_terminal_has_a_line_that_is_cleared_again(monkeypatch):
    text = said(monkeypatch, force_terminal=True)
    assert "Reading [b]it[/b]" in text and text.rstrip("\r").endswith("\x1b[1A\x1b[2K")
