"""The version of a trainable's code: the sources that it imports, found by reading them and without running any."""

import ast
import hashlib
import pkgutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from typing import Final

import trainables
from orchestrator.worker import own_source
from trainables.errors import InputError

SHARED: Final = "trainables"
"""Belongs to a trainable's code however it is installed, so that all machines find the same version."""

NO_CODE: Final = frozenset({"ponderay", "search_spaces", "orchestrator"})
"""Declares and runs a trainable, and is no part of it."""

INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
STANDARD_LIBRARY: Final = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")))
BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")


def code_version(path: str, config_type: str = "") -> str:
    """12 hex digits that change with any source in `imported_sources` of the trainable at the import path.

    Args:
        config_type: `module:NAME` of its config, which may stand elsewhere.

    Raises:
        InputError: if there is no module at `path`.
    """
    digest = hashlib.sha256()
    for name, source in sorted(imported_sources(path, config_type.partition(":")[0]).items()):
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()[:12]


def imported_sources(path: str, config_module: str = "") -> dict[str, bytes]:
    """The sources of the modules at `path` and of its config, and of all that they import, directly or not, by name.

    An import inside a function counts, and so does the package around a module. The standard library, Ponderay's other
    packages and what is installed in site-packages are left out, except `trainables` and the package of `path` itself.
    A trainable that lists `sources` has these files alone. Where it declares sweeps beside itself, only the statements
    that its functions use are its code.

    Raises:
        InputError: if there is no module at `path`.
    """
    modules = _Modules(frozenset({SHARED, path.partition(".")[0]}))
    spec = modules.find(path)
    if spec is None:
        raise InputError(f"The trainable {path!r} cannot be found.")
    own = own_source.read(spec)
    if own.listed:
        return own_source.files(spec, own.listed)
    sources: dict[str, bytes] = {}
    seen, waiting = {""}, [path, config_module]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting.append(name.rpartition(".")[0])
        if spec := modules.find(name):
            is_own = name in (path, config_module)
            sources[name] = own_source.read(spec).source if is_own else _source(spec)
            waiting += _imports(spec, sources[name])
        elif name.endswith(".*"):
            waiting += modules.inside(name.removesuffix(".*"))
    return sources


def _source(spec: ModuleSpec) -> bytes:
    return Path(spec.origin).read_bytes() if spec.origin and spec.has_location else b""


class _Modules:
    """Where modules are, as the import system says it, which is asked without importing a package.

    Args:
        own: packages that count wherever they are installed.
    """

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        self._found: dict[str, ModuleSpec | None] = {"": None}

    def find(self, name: str) -> ModuleSpec | None:
        """Where the sources of the module are; None if there is no such module, or it is not among those that count."""
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def inside(self, name: str) -> list[str]:
        """The modules of a package, any of which `import *` may import; none where it is no package that counts."""
        spec = self.find(name)
        locations = spec.submodule_search_locations if spec else None
        return [f"{name}.{module.name}" for module in pkgutil.iter_modules(locations)] if locations else []

    def _search(self, name: str) -> ModuleSpec | None:
        locations = None
        if parent := name.rpartition(".")[0]:
            package = self.find(parent)
            if package is None or package.submodule_search_locations is None:
                return None
            locations = package.submodule_search_locations
        top = name.partition(".")[0]
        if name == SHARED:  # ours, which is imported here, also where a folder of that name comes first by now
            return _with_listed_folders(trainables.__spec__)
        spec = None if top in NO_CODE and top not in self._own else _spec(name, locations)
        return spec if spec and (top in self._own or _is_counted(spec)) else None


def _spec(name: str, locations: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, locations)
        except KeyError:  # a package without a file, of one that is not imported: where to look is known all the same
            spec = finder.find_spec(name.rpartition(".")[2], locations)
        if spec:
            return _with_listed_folders(spec)
    return None


def _with_listed_folders(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Of a package without a file they are looked for again and again."""
    if spec and spec.submodule_search_locations is not None:
        spec.submodule_search_locations = list(spec.submodule_search_locations)
    return spec


def _is_counted(spec: ModuleSpec) -> bool:
    if not spec.has_location or spec.origin is None:
        return spec.submodule_search_locations is not None  # a package without a file: its modules are looked at
    file = Path(spec.origin)
    return INSTALLED.isdisjoint(file.parts) and not any(file.is_relative_to(folder) for folder in STANDARD_LIBRARY)


def _imports(spec: ModuleSpec, source: bytes) -> Iterator[str]:
    """Names that may be modules, of all import statements in `source`."""
    if not (spec.origin or "").endswith(".py"):
        return
    locations = spec.submodule_search_locations
    package = spec.name if locations is not None else spec.name.rpartition(".")[0]
    for statement in _import_statements(source):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        else:
            yield from _imports_from(statement, package)


def _import_statements(source: bytes) -> Iterator[ast.Import | ast.ImportFrom]:
    try:
        waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):  # its import says what is wrong; until then its bytes count
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        for block in BLOCKS:
            waiting += getattr(node, block, ())


def _imports_from(statement: ast.ImportFrom, package: str) -> Iterator[str]:
    try:
        origin = resolve_name("." * statement.level + (statement.module or ""), package)
    except ImportError:  # it leads out of its package, and fails when it is run
        return
    yield origin
    yield from (f"{origin}.{alias.name}" for alias in statement.names)
