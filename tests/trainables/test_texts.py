"""Texts that users bring, and the one that every Python brings along."""

import sys
from types import ModuleType

import pytest

from trainables.errors import InputError
from trainables.texts import documentation


def test_topics_stand_in_alphabetical_order(monkeypatch):
    topics = ModuleType("pydoc_data.topics")
    topics.topics = {"while": "second", "assert": "first"}
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", topics)
    assert documentation("data.path") == "first\nsecond"


def test_a_python_without_it_says_which_setting_gives_a_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(InputError) as raised:
        documentation("data.path")
    assert str(raised.value) == "This Python has no pydoc_data.topics; give a text with `data.path`."
