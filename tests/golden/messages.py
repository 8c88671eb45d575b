"""The sentences that the sources hold, each once: what users may read in errors, warnings, notes and help."""

import ast
import re
from pathlib import Path
from typing import Final

from tests.golden.command import write
from tests.golden.fixed_words import ROOT

SOURCES: Final = ("ponderay", "orchestrator", "search_spaces", "trainables")

SENTENCE: Final = re.compile(
    r"(?!\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA)\b)(.*?\b[A-Za-z]+[,;:]?(\s|$)){2}.*\w.*", re.S
)
"""Three words, but no SQL."""


def write_messages(folder: Path, names: list[str]) -> None:
    """One sentence a line, sorted, of all sources or of the named folders."""
    files = [file for source in names or SOURCES for file in (ROOT / source).rglob("*.py")]
    texts = set().union(*(sentences(ast.parse(file.read_text(encoding="utf-8"))) for file in files))
    write(folder / "messages.txt", "".join(f"{repr(text)[1:-1]}\n" for text in sorted(texts)))


def sentences(node: ast.AST) -> set[str]:
    """All but docstrings; `{}` stands for each part that is filled in, whose own sentences stand by themselves."""
    text, parts = "", [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        parts = []
    return set().union({text} if SENTENCE.fullmatch(text) else set(), *map(sentences, parts))
