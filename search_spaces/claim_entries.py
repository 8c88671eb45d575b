"""What may stand in a file of claims: each entry with its fields, and what is wrong with one, in a sentence.

Entries that are alike are written once and filled in: from a form, from the rows of a table, from values. A source
prints forty numbers in a table, and says the same of each. The file then has forty rows and what is said once.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, Tag, ValidationError

from trainables.config import Config
from trainables.errors import InputError

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Metric = Annotated[str, StringConstraints(pattern=r"^[^@]*[^@\s][^@]*(@[^@\s]+)?$")]
"""A metric as a replicate records it: `error`, `top 1 error`, or `error@test` of an evaluation."""
NotNegative = Annotated[float, Field(ge=0)]
Scale = Annotated[float, Field(gt=0)]
Fields = dict[str, Any]
"""An entry as it stands in the file."""


PLAIN: Final = "-plain"
SEVERAL: Final = "-several"
"""Shapes of what may be one text or number, or a table or array; pydantic names them, and no message does."""


def _shape(value: object) -> str:
    return SEVERAL if isinstance(value, dict | tuple | Entry) else PLAIN


class Entry(Config):
    """A table of the file; texts are no numbers, and numbers no texts."""

    model_config = ConfigDict(strict=True)


class PlaceEntry(Entry):
    """A number of a study, as `search_spaces.claim.Place` describes it."""

    condition: Text
    metric: Metric
    scale: Scale = 1.0
    over: "PlaceEntry | None" = None


class FactEntry(Entry):
    """What must have been measured besides; `text` says what it shows."""

    text: Text
    place: PlaceEntry
    value: float
    tolerance: NotNegative = 0.0


class SettingEntry(Entry):
    """What something was published of; elsewhere it is not comparable."""

    title: Text
    requires: Annotated[dict[str, Any], Field(default_factory=dict)]
    free: tuple[Text, ...] = ()
    fact: FactEntry | None = None


class NumberEntry(Entry):
    """A published number."""

    id: str = ""
    sweeps: tuple[Text, ...] = ()
    condition: Text
    metric: Metric
    scale: Scale = 1.0
    over: PlaceEntry | None = None
    mean: Annotated[
        Annotated[tuple[float, NotNegative], Tag(SEVERAL)] | Annotated[float, Tag(PLAIN)], Discriminator(_shape)
    ]
    std: NotNegative | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    margin: NotNegative | None = None
    margin_share: NotNegative | None = None
    margin_reason: str = ""
    direction: Literal["minimize", "maximize", "none"]
    source: str = ""
    place: Text
    computed: bool = False
    setting: str = ""
    objective: str | None = None
    row: str = ""
    note: str = ""
    bar: str = ""


class MarginEntry(Entry):
    """A margin that is what the source's own t-test of two printed spreads would have shown."""

    t: Annotated[float, Field(gt=0)]
    n: Annotated[int, Field(ge=2)]
    stds: tuple[NotNegative, NotNegative]


class PartEntry(Entry):
    """A comparison of two places, or of one with a number."""

    left: PlaceEntry
    relation: Literal["below", "above", "same"]
    right: Annotated[Annotated[PlaceEntry, Tag(SEVERAL)] | Annotated[float, Tag(PLAIN)], Discriminator(_shape)]
    of: Literal["mean", "spread", "every"] = "mean"
    margin: NotNegative = 0.0
    margin_test: MarginEntry | None = None
    margin_reason: str = ""


class SaidEntry(Entry):
    """What every published comparison has."""

    id: str = ""
    sweeps: tuple[Text, ...] = ()
    text: Text
    source: str = ""
    place: Text
    setting: str = ""
    note: str = ""


class StatementEntry(PartEntry, SaidEntry):
    """A published comparison."""


class JointEntry(SaidEntry):
    """A published comparison of several things at once."""

    part: Annotated[tuple[PartEntry, ...], Field(min_length=2)]


class WhereEntry(Entry):
    """A condition under an evaluation."""

    condition: Text
    evaluation: Text


Where = Annotated[Annotated[WhereEntry, Tag(SEVERAL)] | Annotated[Text, Tag(PLAIN)], Discriminator(_shape)]


class FrontEntry(SaidEntry):
    """A published place of a condition on the front, or off it."""

    condition: Where
    others: Annotated[tuple[Where, ...], Field(min_length=1)]
    metrics: Annotated[tuple[Metric, ...], Field(min_length=2)]
    scales: tuple[Scale, ...] = ()
    directions: tuple[Literal["minimize", "maximize"], ...]
    is_on: bool = True


class TrendEntry(SaidEntry):
    """A published order: a metric rises or falls along conditions."""

    metric: Metric
    conditions: Annotated[tuple[Where, ...], Field(min_length=3)]
    relation: Literal["rises", "falls"]
    scale: Scale = 1.0


Claimed = NumberEntry | StatementEntry | JointEntry | FrontEntry | TrendEntry
KINDS: Final[Mapping[str, type[Claimed]]] = {
    "number": NumberEntry,
    "statement": StatementEntry,
    "joint": JointEntry,
    "front": FrontEntry,
    "trend": TrendEntry,
}


class KindsEntry(Entry):
    """Entries as they stand in the file, by kind; `search_spaces.claim_entries` fills them in."""

    number: tuple[Fields, ...] = ()
    statement: tuple[Fields, ...] = ()
    joint: tuple[Fields, ...] = ()
    front: tuple[Fields, ...] = ()
    trend: tuple[Fields, ...] = ()


class TableEntry(KindsEntry):
    """Rows as the source prints them, and the entries that each of them makes."""

    values: Annotated[Fields, Field(default_factory=dict)]
    rows: tuple[Fields, ...] = ({},)


class ClaimFile(KindsEntry):
    """The whole file; `source` is that of every entry that names none."""

    source: str = ""
    values: Annotated[Fields, Field(default_factory=dict)]
    form: Annotated[dict[str, Fields], Field(default_factory=dict)]
    setting: Annotated[dict[str, Fields], Field(default_factory=dict)]
    table: tuple[TableEntry, ...] = ()


Kind = TypeVar("Kind", bound=Entry)


def checked(file: Path, name: str, kind: type[Kind], fields: Fields) -> Kind:
    """The fields of the entry `name` as an entry of that kind; the whole file has no name.

    Raises:
        InputError: at the first field that is wrong.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    path = [step for step in first["loc"] if step not in (PLAIN, SEVERAL)]
    if not name and len(path) > 1:  # a part of the file: `table 2`, `setting paper`
        name, path = f"{path[0]} {path[1] + 1 if isinstance(path[1], int) else path[1]}", path[2:]
    raise wrong(file, name, ".".join(map(str, path)), _rule(first))


def _rule(error: Any) -> str:
    """What pydantic found wrong, behind the name of the field."""
    if error["type"] == "missing":
        return "must be given"
    if error["type"] == "extra_forbidden":
        return "is no field"
    if error["type"] == "string_pattern_mismatch":
        return f"must be text of the form {error['ctx']['pattern']}, but is {error['input']!r}"
    rule = error["msg"].replace("Input should be", "must be", 1)
    return f"{rule.replace('tuple', 'array')}, but is {error['input']!r}"


def wrong(file: Path, entry: str, field: str, rule: str) -> InputError:
    """The sentence that names file, entry and field, and says the rule that is broken."""
    where = ", ".join(filter(None, (entry, f"`{field}`" if field else "")))
    return InputError(f"{file}: {where} {rule}.")


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
