"""Entries of a file of claims that are written once and filled in: from a form, from the rows of a table, from values.

A source prints forty numbers in a table, and says the same of each. The file then has forty rows and what is said once.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_spaces.claim_entries import KINDS, ClaimFile, Fields, TableEntry, wrong

NAMED: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
"""A value in a text."""


class Filled(NamedTuple):
    """An entry with all its fields, and what it is called in a message: `number 2`, or `table 1, row 3, number 2`."""

    name: str
    kind: str
    fields: Fields


def filled_entries(file: Path, content: ClaimFile) -> Iterator[Filled]:
    """Every entry of the file: those by themselves, then those of each table, row by row.

    Raises:
        InputError: if a form or a value is not there, or a row has a value that nothing uses.
    """
    for kind in KINDS:
        for i, entry in enumerate(getattr(content, kind), 1):
            name = f"{kind} {i}"
            fields = with_form(file, name, entry, content.form, "form")
            # a file without values may have braces of its own, such as those of a condition that is named by its JSON
            if content.values:
                fields = _Values(file, name, content.values, set()).fill(fields)
            yield Filled(name, kind, fields)
    for i, table in enumerate(content.table, 1):
        yield from _of_table(file, f"table {i}", table, content)


def _of_table(file: Path, table_name: str, table: TableEntry, content: ClaimFile) -> Iterator[Filled]:
    used = set[str]()
    for i, row in enumerate(table.rows, 1):
        first_name = f"{table_name}, row {i}"
        first = with_form(file, first_name, row, content.form, "form")
        also = first.get("also", ())
        if not isinstance(also, tuple) or not all(isinstance(other, dict) for other in also):
            raise wrong(file, first_name, "also", f"must be an array of tables, but is {also!r}")
        for k, other in enumerate(({}, *also)):
            row_name = first_name + (f", also {k}" if k else "")
            values = {name: value for name, value in {**first, **other}.items() if name != "also"}
            known, used_by_row = {**content.values, **table.values, **values}, set[str]()
            for kind in KINDS:
                for j, entry in enumerate(getattr(table, kind), 1):
                    name = f"{row_name}, {kind} {j}"
                    fields = with_form(file, name, entry, content.form, "form")
                    yield Filled(name, kind, _Values(file, name, known, used_by_row).fill(fields))
            used |= used_by_row
            if idle := next((name for name in values if name not in used_by_row), None):
                raise wrong(file, row_name, idle, "is used by no entry of the table")
    if idle := next((name for name in table.values if name not in used), None):
        raise wrong(file, table_name, f"values.{idle}", "is used by no entry of the table")


def with_form(
    file: Path, name: str, entry: Fields, forms: Mapping[str, Fields], what: str, inside: tuple[str, ...] = ()
) -> Fields:
    """The entry with the fields of the form that it is `like`; its own come first, and a table in both is joined.

    Raises:
        InputError: if there is no such form, or it is like itself.
    """
    if "like" not in entry:
        return entry
    like = entry["like"]
    if not isinstance(like, str) or like not in forms or like in inside:
        known = ", ".join(form for form in forms if form not in inside) or "none"
        raise wrong(file, name, "like", f"must be one of the file's {what}s ({known}), but is {like!r}")
    fields = with_form(file, name, forms[like], forms, what, (*inside, like)).copy()
    for field, value in entry.items():
        both_tables = isinstance(value, dict) and isinstance(fields.get(field), dict)
        fields[field] = {**fields[field], **value} if both_tables else value
    return {field: value for field, value in fields.items() if field != "like"}


class _Values:
    """What the names in braces stand for in an entry; those that it names are put among the `used`."""

    def __init__(self, file: Path, entry: str, values: Mapping[str, Any], used: set[str]) -> None:
        self.file, self.entry, self.values, self.used = file, entry, values, used

    def fill(self, fields: Fields) -> Fields:
        """The fields with every name replaced by its value."""
        filled: Fields = {field: self._filled(field, value) for field, value in fields.items()}
        if isinstance(filled.get("note"), str):
            filled["note"] = " ".join(filled["note"].split())  # of which some parts may be empty
        return filled

    def _filled(self, field: str, value: Any, inside: tuple[str, ...] = ()) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(f"{field}.{name}", part, inside) for name, part in value.items()}
        if isinstance(value, tuple):
            return tuple(self._filled(field, part, inside) for part in value)
        if not isinstance(value, str):
            return value
        if whole := NAMED.fullmatch(value):  # a number stays one
            return self._value(field, whole[1], inside)
        return NAMED.sub(lambda match: self._text(field, match[1], inside), value)

    def _text(self, field: str, name: str, inside: tuple[str, ...]) -> str:
        value = self._value(field, name, inside)
        if isinstance(value, dict | tuple):
            raise wrong(self.file, self.entry, field, f"has {{{name}}} in a text, which must be a text or a number")
        return str(value)

    def _value(self, field: str, name: str, inside: tuple[str, ...]) -> Any:
        if name not in self.values or name in inside:
            known = ", ".join(other for other in self.values if other not in inside) or "none"
            raise wrong(self.file, self.entry, field, f"has {{{name}}}, which must be one of the values ({known})")
        self.used.add(name)
        return self._filled(field, self.values[name], (*inside, name))
