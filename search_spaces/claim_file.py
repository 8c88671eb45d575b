"""Claims as data: a TOML file of published numbers and statements, for those who write no Python for it."""

import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, Tag, ValidationError

from search_spaces.claim import (
    Claim,
    Fact,
    FrontClaim,
    JointClaim,
    NumberClaim,
    Place,
    Published,
    Setting,
    Source,
    StatementClaim,
    TrendClaim,
)
from trainables.config import Config
from trainables.errors import InputError

OWN_SETTING: Final = Setting("with the settings of the sweep")

Text = Annotated[str, StringConstraints(pattern=r"\S")]
Metric = Annotated[str, StringConstraints(pattern=r"^[^@]*[^@\s][^@]*(@[^@\s]+)?$")]
"""As a replicate records it: `error`, `top 1 error`, or `error@test` of an evaluation."""
NotNegative = Annotated[float, Field(ge=0)]
Scale = Annotated[float, Field(gt=0)]


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
    mean: float
    std: NotNegative | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    margin: NotNegative
    margin_reason: str = ""
    direction: Literal["minimize", "maximize", "none"]
    source: str = ""
    place: Text
    computed: bool = False
    setting: str = ""
    objective: str = ""
    row: str = ""
    note: str = ""
    bar: str = ""


def _kind(value: object) -> str:
    return "place" if isinstance(value, dict | PlaceEntry) else "number"


class PartEntry(Entry):
    """A comparison of two places, or of one with a number."""

    left: PlaceEntry
    relation: Literal["below", "above", "same"]
    right: Annotated[Annotated[PlaceEntry, Tag("place")] | Annotated[float, Tag("number")], Discriminator(_kind)]
    of: Literal["mean", "spread", "every"] = "mean"
    margin: NotNegative = 0.0
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


class FrontEntry(SaidEntry):
    """A published place of a condition on the front, or off it."""

    condition: Text
    others: Annotated[tuple[Text, ...], Field(min_length=1)]
    metrics: Annotated[tuple[Metric, ...], Field(min_length=2)]
    directions: tuple[Literal["minimize", "maximize"], ...]
    is_on: bool = True


class TrendEntry(SaidEntry):
    """A published order: a metric rises or falls along conditions."""

    metric: Metric
    conditions: Annotated[tuple[Text, ...], Field(min_length=3)]
    relation: Literal["rises", "falls"]
    scale: Scale = 1.0


class ClaimFile(Entry):
    """The whole file; `source` is that of every entry that names none."""

    source: str = ""
    setting: Annotated[dict[str, SettingEntry], Field(default_factory=dict)]
    number: tuple[NumberEntry, ...] = ()
    statement: tuple[StatementEntry, ...] = ()
    joint: tuple[JointEntry, ...] = ()
    front: tuple[FrontEntry, ...] = ()
    trend: tuple[TrendEntry, ...] = ()


Claimed = NumberEntry | StatementEntry | JointEntry | FrontEntry | TrendEntry
KINDS: Final = ("number", "statement", "joint", "front", "trend")


class _Common(NamedTuple):
    """What numbers and statements alike have."""

    id: str
    sweeps: tuple[str, ...]
    source: Source
    setting: Setting


def read(file: Path, sweep: str) -> tuple[Claim, ...]:
    """The claims in the file, numbers first; those that name no sweep are about `sweep`.

    Raises:
        InputError: at the first thing that is wrong, with its entry and field.
    """
    content = _parsed(file)
    settings = {"": OWN_SETTING} | {name: _setting(file, name, one) for name, one in content.setting.items()}
    found: dict[str, Claim] = {}
    for kind in KINDS:
        for i, entry in enumerate(getattr(content, kind), 1):
            name = f"{kind} {i}"
            found[name] = _claim(file, name, entry, _common(file, name, entry, content.source, settings, sweep))
    if not found:
        raise InputError(f"{file} must have tables {' or '.join(f'[[{kind}]]' for kind in KINDS)}, but has none.")
    _check_ids(file, found)
    return tuple(found.values())


def _claim(file: Path, name: str, entry: Claimed, common: _Common) -> Claim:
    match entry:
        case NumberEntry():
            _check_number(file, name, entry)
            return _number(entry, common)
        case StatementEntry():
            _check_part(file, name, entry)
            return _statement(entry, common, entry.text, entry.note)
        case JointEntry():
            for part in entry.part:
                _check_part(file, name, part)
            parts = tuple(_statement(part, common, entry.text) for part in entry.part)
            return JointClaim(**common._asdict(), text=entry.text, parts=parts, note=entry.note)
        case FrontEntry():
            _check_front(file, name, entry)
            return _front(entry, common)
        case TrendEntry():
            _check_trend(file, name, entry)
            places = tuple(_at(condition, entry.metric, entry.scale) for condition in entry.conditions)
            return TrendClaim(
                **common._asdict(), text=entry.text, places=places, relation=entry.relation, note=entry.note
            )


def _common(file: Path, name: str, entry: Claimed, source: str, settings: Mapping[str, Setting], sweep: str) -> _Common:
    if not (entry.source or source).strip():
        raise _wrong(file, name, "source", "must be given here or at the top of the file")
    if entry.setting not in settings:
        known = ", ".join(filter(None, settings)) or "none"
        raise _wrong(file, name, "setting", f"must be one of the file's settings ({known}), but is {entry.setting!r}")
    given = Source(entry.source or source, entry.place)
    own_id = f"{file.stem}.{name.replace(' ', '.')}"
    return _Common(entry.id or own_id, entry.sweeps or (sweep,), given, settings[entry.setting])


def _parsed(file: Path) -> ClaimFile:
    if not file.is_absolute():
        raise InputError(
            f"A file of claims must be named by an absolute path, but got {str(file)!r}; "
            f"write str(Path(__file__).with_name({file.name!r}))."
        )
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The file of claims {file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{file} must be TOML, but: {error}.") from None
    try:
        return ClaimFile.model_validate(json.loads(json.dumps(content, default=str), object_hook=_with_tuples))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _wrong(file, *_place_of(first["loc"]), _said(first)) from None


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    """TOML's arrays as a strict entry takes them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}


def _place_of(path: tuple[int | str, ...]) -> tuple[str, str]:
    """The entry and the field in it: `number 2` and `over.metric`."""
    if len(path) > 1 and path[0] in (*KINDS, "setting"):
        number = path[1] + 1 if isinstance(path[1], int) else path[1]
        entry, inner = f"{path[0]} {number}", list(path[2:])
        if "right" in inner:
            at = inner.index("right") + 1
            inner[at : at + 1] = []  # which kind it was taken for
        return entry, ".".join(map(str, inner))
    return "", ".".join(map(str, path))


def _said(error: Any) -> str:
    """What pydantic found wrong, behind the name of the field."""
    if error["type"] == "missing":
        return "must be given"
    if error["type"] == "extra_forbidden":
        return "is no field"
    if error["type"] == "string_pattern_mismatch":
        return f"must be text of the form {error['ctx']['pattern']}, but is {error['input']!r}"
    said = error["msg"].replace("Input should be", "must be", 1)
    return f"{said.replace('tuple', 'array')}, but is {error['input']!r}"


def _wrong(file: Path, entry: str, field: str, said: str) -> InputError:
    where = ", ".join(filter(None, (entry, f"`{field}`" if field else "")))
    return InputError(f"{file}: {where} {said}.")


def _check_number(file: Path, name: str, entry: NumberEntry) -> None:
    if entry.std is not None and (entry.n or 0) < 2:
        given = "none is given" if entry.n is None else f"is {entry.n}"
        raise _wrong(file, name, "n", f"must be at least 2, the seeds behind `std`, but {given}")


def _check_front(file: Path, name: str, entry: FrontEntry) -> None:
    if len(entry.directions) != len(entry.metrics):
        said = f"must be one for each of the {len(entry.metrics)} `metrics`, but are {len(entry.directions)}"
        raise _wrong(file, name, "directions", said)
    if entry.condition in entry.others:
        raise _wrong(file, name, "others", f"must not have the `condition` {entry.condition!r} itself")


def _check_trend(file: Path, name: str, entry: TrendEntry) -> None:
    if len(set(entry.conditions)) < len(entry.conditions):
        raise _wrong(file, name, "conditions", f"must be each once, but are {', '.join(entry.conditions)}")


def _check_part(file: Path, name: str, entry: PartEntry) -> None:
    if entry.of == "spread":
        _check_spread(file, name, entry)
        return
    if entry.of == "every":
        if entry.relation != "same" or isinstance(entry.right, PlaceEntry):
            said = f"of every must be same, and `right` a number, but is {entry.relation}"
            raise _wrong(file, name, "relation", said)
        return
    if entry.relation == "same" and entry.margin == 0:
        raise _wrong(file, name, "margin", "must be above 0 where `relation` is same, but is 0")
    if entry.left == entry.right:
        raise _wrong(file, name, "right", "must differ from `left`")


def _check_spread(file: Path, name: str, entry: PartEntry) -> None:
    if entry.relation == "same" or not isinstance(entry.right, PlaceEntry):
        said = "of spread must be below or above, and `right` another place"
        raise _wrong(file, name, "relation", f"{said}, but is {entry.relation}")
    if entry.margin:
        raise _wrong(file, name, "margin", f"of a spread must be left out, but is {entry.margin:g}")
    if entry.left == entry.right:
        raise _wrong(file, name, "right", "must differ from `left`")


def _check_ids(file: Path, found: Mapping[str, Claim]) -> None:
    counts = Counter(claim.id for claim in found.values())
    for name, claim in found.items():
        if counts[claim.id] > 1:
            raise _wrong(file, name, "id", f"must be of one entry alone, but {claim.id!r} is of {counts[claim.id]}")


def _place(entry: PlaceEntry | NumberEntry) -> Place:
    metric, _, evaluation = entry.metric.partition("@")
    return Place(entry.condition, metric, evaluation, entry.scale, _place(entry.over) if entry.over else None)


def _at(condition: str, column: str, scale: float = 1.0) -> Place:
    metric, _, evaluation = column.partition("@")
    return Place(condition, metric, evaluation, scale)


def _front(entry: FrontEntry, common: _Common) -> FrontClaim:
    rows = [tuple(_at(name, metric) for metric in entry.metrics) for name in (entry.condition, *entry.others)]
    return FrontClaim(
        **common._asdict(),
        text=entry.text,
        point=rows[0],
        others=tuple(rows[1:]),
        directions=entry.directions,
        is_on=entry.is_on,
        note=entry.note,
    )


def _setting(file: Path, name: str, entry: SettingEntry) -> Setting:
    for path, value in entry.requires.items():
        if not isinstance(value, str | int | float):
            said = f"must be text, a number, true or false, but is {value!r}"
            raise _wrong(file, f"setting {name}", f"requires.{path}", said)
    fact = entry.fact
    measured = Fact(fact.text, _place(fact.place), fact.value, fact.tolerance) if fact else None
    requires = {path: str(value) for path, value in entry.requires.items()}
    return Setting(entry.title, requires, entry.free, measured)


def _number(entry: NumberEntry, common: _Common) -> NumberClaim:
    place = _place(entry)
    return NumberClaim(
        **common._asdict(),
        place=place,
        published=Published(entry.mean, entry.std, entry.n, entry.computed),
        margin=entry.margin,
        margin_reason=entry.margin_reason,
        direction=entry.direction,
        objective=entry.objective or (place.metric if entry.row and not place.over else ""),
        row=entry.row,
        note=entry.note,
        bar=entry.bar,
    )


def _statement(entry: PartEntry, common: _Common, text: str, note: str = "") -> StatementClaim:
    return StatementClaim(
        **common._asdict(),
        text=text,
        left=_place(entry.left),
        relation=entry.relation,
        right=_place(entry.right) if isinstance(entry.right, PlaceEntry) else entry.right,
        of=entry.of,
        margin=entry.margin,
        margin_reason=entry.margin_reason,
        note=note,
    )
