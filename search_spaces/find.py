"""Sweeps by name: an import path `mylab.sweeps:toy`, a file `sweeps.py:toy`, or an entry point of an installed package.

An entry point in the group `ponderay.sweeps` names a sweep, a function that builds one, or a mapping of such by name:
`asr = "search_spaces.asr:SWEEPS"` gives `asr.demo`. Only the module that is asked for is imported.
"""

import inspect
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from search_spaces.declaration import check_declaration
from search_spaces.known_names import known_names
from search_spaces.size import Size, plain_name, size_of, sized_name
from search_spaces.sweep import Sweep, SweepFunction
from trainables.errors import InputError, shown
from trainables.importing import import_module, in_one_sentence, put_first

GROUP: Final = "ponderay.sweeps"
DISTRIBUTION: Final = "ponderay"
MOST_SWEEPS: Final = 6
"""Most sweeps in a message about all families."""


@dataclass(frozen=True)
class Listed:
    """A sweep that can be named; `sweep` is None where its module was not imported."""

    name: str
    sweep: Sweep | None


@dataclass(frozen=True)
class Family:
    """Sweeps that Ponderay ships under one name.

    Attributes:
        about: what they are, in a sentence.
        first: the name of one to begin with, which takes minutes.
    """

    name: str
    about: str
    num_sweeps: int
    first: str


def find_sweep(name: str, smoke: bool = False) -> Sweep:
    """The sweep called `name`, in its small size if `smoke`; that one is a sweep of its own, `NAME.smoke`.

    Raises:
        InputError: if there is none of that name, or it cannot be built.
    """
    size: Size = "smoke" if smoke else size_of(name)
    place = _place(plain_name(name))
    return _built(_declared(place), place, size)


def of_program(sweep: Sweep) -> Sweep:
    """A sweep of the program that runs, `python toy.py`, as the processes that train import it from that file.

    Raises:
        InputError: if there is no file, or it does not declare this very sweep at its top.
    """
    file = getattr(sys.modules["__main__"], "__file__", None)
    rule = f"{sweep.name}: those who train import the trainable, so `train` must stand in a file"
    if file is None:
        raise InputError(f"{rule}; write it into one, such as toy.py, and `import toy` here.")
    for name, other in _in_module(_of_file(Path(file))).items():
        if repr(replace(other, trainable=sweep.trainable, declared_at=sweep.declared_at)) == repr(sweep):
            return replace(other, declared_at=f"{file}:{name}")
    raise InputError(f"{rule}, and this sweep at its top; {file} has none like it.")


def place_in_upload(sweep: Sweep) -> tuple[str, str]:
    """How a job names the sweep, whose entry points and folders the machines of a cluster do not have; and its module.

    A file is at the top of what is sent.
    """
    where, _, path = sweep.declared_at.rpartition(":")
    file = Path(where).name if where.endswith(".py") else ""
    return f"{file or where}:{path}", file.removesuffix(".py") or where


def sweeps_at(place: str) -> list[Listed]:
    """The sweeps of a file, an import path or an entry point; or the one of a name that Ponderay ships.

    Raises:
        InputError: if there is nothing of that name.
    """
    entries = {entry.name: entry for entry in reversed(_entries())}  # of one name, ours
    if place in entries:
        declared_at = entries[place].value
        target = _declared(declared_at)
        if not isinstance(target, Mapping):
            return [Listed(place, _built(target, declared_at, "full"))]
        return [Listed(f"{place}.{key}", _built(target[key], f"{declared_at}.{key}", "full")) for key in sorted(target)]
    family = place.partition(".")[0]
    if family in entries and _is_ours(entries[family]):
        return [Listed(place, find_sweep(place))]
    offered = _offered(_module(place))
    return [Listed(name, _built(function, f"{place}:{name}", "full")) for name, function in offered.items()]


def sweep_functions() -> dict[str, SweepFunction]:
    """The function of every sweep that Ponderay ships, by the sweep's name."""
    shipped = ((entry.name, _declared(entry.value)) for entry in _entries() if _is_ours(entry))
    return {f"{family}.{key}": functions[key] for family, functions in shipped for key in sorted(functions)}


def families() -> list[Family]:
    """The families that Ponderay ships; each is a module that says what it is, and names its `FIRST`."""
    modules = ((entry.name, _module(entry.value.partition(":")[0])) for entry in _entries() if _is_ours(entry))
    return [
        Family(name, (module.__doc__ or "").partition("\n")[0], len(module.SWEEPS), f"{name}.{module.FIRST}")
        for name, module in modules
    ]


def others() -> list[Listed]:
    """The names alone of other packages' entry points."""
    return [Listed(entry.name, None) for entry in _entries() if not _is_ours(entry)]


def installed_sweeps() -> list[Listed]:
    """The sweeps that Ponderay ships, and the names alone of other packages' entry points."""
    return [Listed(name, _built_once(function, "full")) for name, function in sweep_functions().items()] + others()


def _is_ours(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == DISTRIBUTION


@cache
def _entries() -> tuple[EntryPoint, ...]:
    """Ours first; a checkout whose folder is on the path may show its entry points twice."""
    entries = {(entry.name, entry.value): entry for entry in entry_points(group=GROUP)}
    return tuple(sorted(entries.values(), key=lambda entry: not _is_ours(entry)))


def _place(name: str) -> str:
    """The place where the sweep is declared: `module:ATTRIBUTE`, or `module:ATTRIBUTE.KEY` in a mapping."""
    if ":" in name:
        return name
    entries = {entry.name: entry for entry in reversed(_entries())}  # of one name, ours
    family, dot, key = name.partition(".")
    if name in entries:
        return entries[name].value
    if dot and family in entries:
        place = entries[family].value
        known = _declared(place)
        if not isinstance(known, Mapping) or key not in known:
            names = [f"{family}.{sweep}" for sweep in sorted(known)] if isinstance(known, Mapping) else [family]
            raise InputError(f"There is no sweep {name!r}; the sweeps of {family} are {known_names(names, name)}.")
        return f"{place}.{key}"
    if name.endswith(".py") or "/" in name:
        raise InputError(f"A file of sweeps is named with the sweep in it: {name}:NAME, but got {name!r}.")
    names = [*sweep_functions(), *(listed.name for listed in others())]
    there = known_names(names, name, MOST_SWEEPS) if names else "none, because no package with sweeps is installed"
    raise InputError(
        f"There is no sweep {name!r}; the sweeps are {there} (see `ponderay sweeps --all`). One of your own is "
        "FILE.py:NAME or MODULE:NAME."
    )


def _declared(place: str) -> Any:
    """What stands at the place: a sweep, a function, or a mapping of such."""
    where, _, path = place.rpartition(":")
    attribute, dot, key = path.partition(".")
    module = _module(where)
    value = getattr(module, attribute, None)
    if value is None:
        names = known_names(sorted(_offered(module)), attribute)
        raise InputError(f"{where} has no {attribute!r}; its sweeps are {names}.")
    if not dot:
        return value
    if not isinstance(value, Mapping) or key not in value:
        known = known_names(sorted(value), key) if isinstance(value, Mapping) else "none: it is no mapping"
        raise InputError(f"There is no sweep {key!r} in {where}:{attribute}; there are {known}.")
    return value[key]


def _in_module(module: ModuleType) -> dict[str, Sweep]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Sweep)}


def _offered(module: ModuleType) -> dict[str, Any]:
    """The sweeps of a module, and those of its own functions that say that they return one."""
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"}
    return _in_module(module) | {name: f for name, f in functions.items() if _builds(f, module.__name__)}


def _builds(function: FunctionType, module: str) -> bool:
    annotation = function.__annotations__.get("return")
    is_sweep = annotation is Sweep or annotation in ("Sweep", "ponderay.Sweep")
    return is_sweep and function.__module__ == module and len(inspect.signature(function).parameters) <= 1


def _built(declared: Any, place: str, size: Size) -> Sweep:
    """The sweep itself, in a size; it remembers where it is declared."""
    if isinstance(declared, Sweep):
        sweep, takes_size = declared, False
    elif callable(declared):
        with in_one_sentence(f"The sweep {place} cannot be built"):
            takes_size = bool(inspect.signature(declared).parameters)
            arguments = (size,) if takes_size else ()
            is_shipped = str(getattr(declared, "func", declared).__module__).startswith("search_spaces.")
            sweep = _built_once(declared, *arguments) if is_shipped else declared(*arguments)
    else:
        raise InputError(f"{place} must be a Sweep, or a function that returns one, but it is {shown(declared)}.")
    if not isinstance(sweep, Sweep):
        raise InputError(f"{place} must return a Sweep, but it returned {shown(sweep)}.")
    if size == "smoke" and not takes_size:
        raise InputError(f"{place} has no small size; make it a function of `size`, which is 'full' or 'smoke'.")
    if size_of(sweep.name) != "full" and size != "smoke":
        raise InputError(
            f"{place}: a sweep's name must not end in .smoke, which its small size gets, but got {sweep.name!r}."
        )
    named = copy(sweep)  # `replace` would check all its conditions again
    object.__setattr__(named, "declared_at", place)
    object.__setattr__(named, "name", sized_name(sweep.name, size))
    check_declaration(named)
    return named


@cache
def _built_once(function: Any, *size: Size) -> Any:
    """What Ponderay ships is the same each time, and to check a sweep takes up to a tenth of a second."""
    return function(*size)


def _module(where: str) -> ModuleType:
    """The module in a file, or at an import path; the folder it is in comes first on the path, as for a script."""
    if where.endswith(".py"):
        return _of_file(Path(where))
    if not where or not all(part.isidentifier() for part in where.split(".")):
        raise InputError(f"A sweep is named FILE.py:NAME or MODULE:NAME, but got {where!r} before the colon.")
    top = where.partition(".")[0]
    if top not in sys.modules and find_spec(top) is None:
        put_first(str(Path.cwd()))
        if find_spec(top) is None:
            raise InputError(f"There is no module {top!r}, installed or in this folder, {Path.cwd()}.")
    return import_module(where, where)


def _of_file(file: Path) -> ModuleType:
    path = file.resolve()
    if not path.is_file():
        raise InputError(f"There is no file {file}.")
    if not path.stem.isidentifier():
        raise InputError(f"A file of sweeps must be named as a module is, with letters, digits and _, but got {file}.")
    known = sys.modules.get(path.stem)
    is_other = known is not None and Path(getattr(known, "__file__", None) or "").resolve() != path
    if is_other or path.stem in sys.stdlib_module_names:  # before its folder comes first for everything else, too
        raise InputError(f"{file} has the name of another module, {path.stem!r}; rename the file.")
    put_first(str(path.parent))
    try:
        module = import_module(path.stem, str(file))
    except InputError as error:
        raise _with_package(error, path) from error.__cause__
    if Path(module.__file__ or "").resolve() != path:
        raise InputError(f"{file} has the name of another module, {path.stem!r}; rename the file.")
    return module


def _with_package(error: InputError, file: Path) -> InputError:
    """The error, with the file's import path where it was the file's own package that was not found."""
    packages, root = [file.stem], file.parent
    while (root / "__init__.py").is_file():
        packages.insert(0, root.name)
        root = root.parent
    why = error.__cause__
    is_relative = isinstance(why, ImportError) and "relative import" in str(why)
    is_missing = isinstance(why, ModuleNotFoundError) and why.name == packages[0]
    if len(packages) == 1 or not (is_relative or is_missing):
        return error
    return InputError(f"{error} The file is of a package: in {root} it is `{'.'.join(packages)}:NAME`.")
