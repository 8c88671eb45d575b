"""Claims as data: a TOML file of published numbers and statements, and where the claims of a sweep are found."""

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from search_spaces.claim_entries import (
    KINDS,
    Claimed,
    ClaimFile,
    Fields,
    FrontEntry,
    JointEntry,
    NumberEntry,
    PartEntry,
    PlaceEntry,
    SettingEntry,
    StatementEntry,
    TrendEntry,
    WhereEntry,
    checked,
    filled_entries,
    with_form,
    wrong,
)
from search_spaces.size import plain_name
from search_spaces.sweep import Sweep
from search_spaces.value_lists import is_list
from trainables.errors import InputError, shown
from trainables.importing import import_module, in_one_sentence

OWN_SETTING: Final = Setting("with the settings of the sweep")


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
    if not file.is_absolute():
        raise InputError(
            f"A file of claims must be named by an absolute path, but got {str(file)!r}; "
            f"write str(Path(__file__).with_name({file.name!r}))."
        )
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"The file of claims {file} cannot be read: {error.strerror}.") from None
    claims = _claims(file, content, "")
    return claims if all(claim.sweeps != ("",) for claim in claims) else _claims(file, content, sweep)


@lru_cache(maxsize=64)  # those of a family take a tenth of a second, and each of its sweeps asks for them
def _claims(file: Path, source: bytes, sweep: str) -> tuple[Claim, ...]:
    try:
        parsed = tomllib.loads(source.decode())
    except ValueError as error:
        raise InputError(f"{file} must be TOML, but: {error}.") from None
    # A strict entry takes tuples, where TOML has arrays.
    plain = json.loads(
        json.dumps(parsed, default=str),
        object_hook=lambda entry: {name: _tuple(value) for name, value in entry.items()},
    )
    content = checked(file, "", ClaimFile, plain)
    settings = {"": OWN_SETTING} | {name: _setting(file, name, content.setting) for name in content.setting}
    claims: dict[str, Claim] = {}
    for name, kind, fields in filled_entries(file, content):
        entry = checked(file, name, KINDS[kind], fields)
        claims[name] = _claim(file, name, entry, _common(file, name, entry, content.source, settings, sweep))
    if not claims:
        raise InputError(f"{file} must have tables {' or '.join(f'[[{kind}]]' for kind in KINDS)}, but has none.")
    counts = Counter(claim.id for claim in claims.values())
    for name, claim in claims.items():
        if counts[claim.id] > 1:
            raise wrong(file, name, "id", f"must be of one entry alone, but {claim.id!r} is of {counts[claim.id]}")
    return tuple(sorted(claims.values(), key=lambda claim: not isinstance(claim, NumberClaim)))


def _claim(file: Path, name: str, entry: Claimed, common: _Common) -> Claim:
    match entry:
        case NumberEntry():
            return _number(file, name, entry, common)
        case StatementEntry():
            return _statement(file, name, entry, common, entry.text, entry.note)
        case JointEntry():
            parts = tuple(_statement(file, name, part, common, entry.text) for part in entry.part)
            return JointClaim(**common._asdict(), text=entry.text, parts=parts, note=entry.note)
        case FrontEntry():
            return _front(file, name, entry, common)
        case TrendEntry():
            for where in entry.conditions:
                _check_where(file, name, where, entry.metric)
            if len(set(entry.conditions)) < len(entry.conditions):
                given = ", ".join(map(str, entry.conditions))
                raise wrong(file, name, "conditions", f"must be each once, but are {given}")
            places = tuple(_at(condition, entry.metric, entry.scale) for condition in entry.conditions)
            return TrendClaim(
                **common._asdict(), text=entry.text, places=places, relation=entry.relation, note=entry.note
            )


def _common(file: Path, name: str, entry: Claimed, source: str, settings: Mapping[str, Setting], sweep: str) -> _Common:
    if not (entry.source or source).strip():
        raise wrong(file, name, "source", "must be given here or at the top of the file")
    if entry.setting not in settings:
        known = ", ".join(filter(None, settings)) or "none"
        raise wrong(file, name, "setting", f"must be one of the file's settings ({known}), but is {entry.setting!r}")
    given = Source(entry.source or source, entry.place)
    own_id = f"{file.stem}.{name.replace(', ', '.').replace(' ', '.')}"
    return _Common(entry.id or own_id, entry.sweeps or (sweep,), given, settings[entry.setting])


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _front(file: Path, name: str, entry: FrontEntry, common: _Common) -> FrontClaim:
    for field, count in (("directions", len(entry.directions)), ("scales", len(entry.scales) or len(entry.metrics))):
        if count != len(entry.metrics):
            rule = f"must be one for each of the {len(entry.metrics)} `metrics`, but are {count}"
            raise wrong(file, name, field, rule)
    for where in (entry.condition, *entry.others):
        for metric in entry.metrics:
            _check_where(file, name, where, metric)
    if entry.condition in entry.others:
        raise wrong(file, name, "others", f"must not have the `condition` {entry.condition!r} itself")
    columns = tuple(zip(entry.metrics, entry.scales or [1.0] * len(entry.metrics), strict=True))
    rows = [tuple(_at(where, *column) for column in columns) for where in (entry.condition, *entry.others)]
    return FrontClaim(
        **common._asdict(),
        text=entry.text,
        point=rows[0],
        others=tuple(rows[1:]),
        directions=entry.directions,
        is_on=entry.is_on,
        note=entry.note,
    )


def _check_where(file: Path, name: str, where: str | WhereEntry, metric: str) -> None:
    if isinstance(where, WhereEntry) and "@" in metric:
        rule = f"of {where.condition!r} must be left out where the metric {metric!r} has one"
        raise wrong(file, name, "evaluation", rule)


def _place(entry: PlaceEntry | NumberEntry) -> Place:
    metric, _, evaluation = entry.metric.partition("@")
    return Place(entry.condition, metric, evaluation, entry.scale, _place(entry.over) if entry.over else None)


def _at(where: str | WhereEntry, column: str, scale: float = 1.0) -> Place:
    metric, _, evaluation = column.partition("@")
    if isinstance(where, WhereEntry):
        return Place(where.condition, metric, where.evaluation, scale)
    return Place(where, metric, evaluation, scale)


def _setting(file: Path, name: str, entries: Mapping[str, Fields]) -> Setting:
    entry_name = f"setting {name}"
    entry = checked(file, entry_name, SettingEntry, with_form(file, entry_name, entries[name], entries, "setting"))
    requires: dict[str, str] = {}
    any_of: dict[str, tuple[str, ...]] = {}
    for path, value in entry.requires.items():
        several = value if isinstance(value, tuple) else (value,)
        if not several or not all(isinstance(item, str | int | float) for item in several):
            rule = f"must be text, a number, true or false, or an array of such, but is {value!r}"
            raise wrong(file, entry_name, f"requires.{path}", rule)
        if isinstance(value, tuple):
            any_of[path] = tuple(map(str, several))
        else:
            requires[path] = str(value)
    fact = entry.fact
    measured = Fact(fact.text, _place(fact.place), fact.value, fact.tolerance) if fact else None
    return Setting(entry.title, requires, entry.free, measured, any_of)


def _number(file: Path, name: str, entry: NumberEntry, common: _Common) -> NumberClaim:
    mean, std = entry.mean if isinstance(entry.mean, tuple) else (entry.mean, entry.std)
    if entry.std is not None and isinstance(entry.mean, tuple):
        raise wrong(file, name, "std", "must be left out where `mean` has it, as in [12.3, 0.4]")
    if std is not None and (entry.n or 0) < 2:
        given = "none is given" if entry.n is None else f"is {entry.n}"
        raise wrong(file, name, "n", f"must be at least 2, the seeds behind `std`, but {given}")
    if entry.margin is not None and entry.margin_share is not None:
        raise wrong(file, name, "margin_share", "must be left out where `margin` is given")
    if entry.margin is None and entry.margin_share is None:
        raise wrong(file, name, "margin", "must be given")
    place, objective = _place(entry), entry.objective
    if objective is None:
        objective = place.metric if entry.row and not place.over else ""
    return NumberClaim(
        **common._asdict(),
        place=place,
        published=Published(mean, std, entry.n, entry.computed),
        margin=entry.margin if entry.margin is not None else (entry.margin_share or 0.0) * abs(mean),
        margin_reason=entry.margin_reason,
        direction=entry.direction,
        objective=objective,
        row=entry.row,
        note=entry.note,
        bar=entry.bar,
    )


def _margin(entry: PartEntry) -> float:
    """The given one, or the least difference of two means that a t-test with the printed spreads would have shown.

    These are standard deviations of the population, so that n - 1 is the divisor.
    """
    test = entry.margin_test
    if test is None:
        return entry.margin
    return test.t * math.sqrt((test.stds[0] ** 2 + test.stds[1] ** 2) / (test.n - 1))


def _statement(file: Path, name: str, entry: PartEntry, common: _Common, text: str, note: str = "") -> StatementClaim:
    if entry.margin and entry.margin_test:
        raise wrong(file, name, "margin_test", "must be left out where `margin` is given")
    if entry.of == "spread":
        if entry.relation == "same" or not isinstance(entry.right, PlaceEntry):
            fault = "of spread must be below or above, and `right` another place"
            raise wrong(file, name, "relation", f"{fault}, but is {entry.relation}")
        if margin := _margin(entry):
            raise wrong(file, name, "margin", f"of a spread must be left out, but is {margin:g}")
    elif entry.of == "every":
        if entry.relation != "same" or isinstance(entry.right, PlaceEntry):
            fault = f"of every must be same, and `right` a number, but is {entry.relation}"
            raise wrong(file, name, "relation", fault)
    elif entry.relation == "same" and _margin(entry) == 0:
        raise wrong(file, name, "margin", "must be above 0 where `relation` is same, but is 0")
    if entry.left == entry.right:
        raise wrong(file, name, "right", "must differ from `left`")
    return StatementClaim(
        **common._asdict(),
        text=text,
        left=_place(entry.left),
        relation=entry.relation,
        right=_place(entry.right) if isinstance(entry.right, PlaceEntry) else entry.right,
        of=entry.of,
        margin=_margin(entry),
        margin_reason=entry.margin_reason,
        note=note,
    )


FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def claims_of(sweep: Sweep) -> tuple[Claim, ...]:
    """The claims that a study of the sweep can be held against, numbers first; none where the sweep names none.

    The small size has the claims of the whole, though its results are comparable with nothing.

    Raises:
        InputError: if what the sweep names cannot be read, or yields something else.
    """
    name, place = plain_name(sweep.name), sweep.claims
    if not place:
        return ()
    if place.endswith(".toml"):
        claims: Iterable[Claim] = read(Path(place), name)
    elif FUNCTION.fullmatch(place):
        claims = _yielded(sweep.name, place)
    else:
        raise InputError(
            f"{sweep.name}: `claims` must be `package.module:function` or the path of a .toml file, but got {place!r}."
        )
    return tuple(claim for claim in claims if name in claim.sweeps)


def _yielded(sweep: str, place: str) -> list[Claim]:
    """The claims of the function at an import path."""
    path, _, name = place.partition(":")
    module = import_module(path, f"{sweep}: `claims` {place!r}")
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"{sweep}: `claims` must name a function, but {path} has no function {name!r}.")
    with in_one_sentence(f"{sweep}: the claims of {place} cannot be made"):
        claims = list(function())
    for claim in claims:
        if not isinstance(claim, Claim):
            raise InputError(f"{sweep}: {place} must yield claims, but yielded {shown(claim)}.")
        for field, value in vars(claim).items():
            if isinstance(value, set | frozenset) or (field == "sweeps" and not is_list(value)):
                raise InputError(f"{sweep}: `{field}` of a claim must be a list, but {place} yields {shown(value)}.")
    return claims
