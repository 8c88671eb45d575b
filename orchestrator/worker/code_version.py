"""The version of a trainable's code: the sources that it imports, found by reading them and without running any."""

import ast
import hashlib
import pkgutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from typing import Final

import trainables
from orchestrator.worker.own_code import used
from trainables.errors import InputError

SHARED: Final = "trainables"
"""Belongs to a trainable's code however it is installed, so that all machines find the same version."""

NO_CODE: Final = frozenset({"ponderay", "search_spaces", "orchestrator"})
"""Declares and runs a trainable, and is no part of it."""

INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
STANDARD_LIBRARY: Final = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")))
BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")

DECLARING: Final = frozenset({"ponderay", "search_spaces"})
"""What a module imports that declares sweeps."""

PLACE: Final = (".py", "/__init__.py")
"""How the name of a module's file ends, and that of a package's."""


def code_version(path: str, config_type: str = "") -> str:
    """12 hex digits that change with any source in `imported_sources` of the trainable at the import path.

    Args:
        config_type: `module:NAME` of its config, which may stand elsewhere.

    Raises:
        InputError: if there is no module at `path`.
    """
    return version_of(imported_sources(path, config_type.partition(":")[0]))


def version_of(sources: Mapping[str, bytes]) -> str:
    """The version of the code that `imported_sources` gives."""
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()[:12]


def digests_of(sources: Mapping[str, bytes]) -> dict[str, str]:
    """8 hex digits of each source that is not empty, by the name of its file, so that a user learns which one changed.

    A trainable that lists its `sources` has names of files; of a module the name tells its file.
    """
    packages = {name.rpartition(".")[0] for name in sources}
    files = {
        name: name if "/" in name or name.endswith(".py") else name.replace(".", "/") + PLACE[name in packages]
        for name in sources
    }
    return {files[name]: hashlib.sha256(source).hexdigest()[:8] for name, source in sources.items() if source}


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
    _, listed = _own_code(spec)
    if listed:
        return _listed_files(spec, listed)
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
            sources[name] = _own_code(spec)[0] if is_own else _source(spec)
            waiting += _imports(spec, sources[name])
        elif name.endswith(".*"):
            waiting += modules.inside(name.removesuffix(".*"))
    return sources


class _Modules:
    """The places of modules by the import system's own finders, without importing a package.

    Args:
        own: packages that count wherever they are installed.
    """

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        self._specs: dict[str, ModuleSpec | None] = {"": None}

    def find(self, name: str) -> ModuleSpec | None:
        """The place of a module's sources; None if there is no such module, or it does not count."""
        if name not in self._specs:
            self._specs[name] = self._search(name)
        return self._specs[name]

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
    """The same place with its folders as a list: those of a package without a file are else searched at each use."""
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
            continue
        try:
            origin = resolve_name("." * statement.level + (statement.module or ""), package)
        except ImportError:  # it leads out of its package, and fails when it is run
            continue
        yield origin
        yield from (f"{origin}.{alias.name}" for alias in statement.names)


@lru_cache(maxsize=1000)  # a process asks for the same files again and again, and parsing them takes most of the time
def _import_statements(source: bytes) -> list[ast.Import | ast.ImportFrom]:
    try:
        waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):  # its import says what is wrong; until then its bytes count
        return []
    statements = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            statements.append(node)
        for block in BLOCKS:
            waiting += getattr(node, block, ())
    return statements


def _source(spec: ModuleSpec) -> bytes:
    return Path(spec.origin).read_bytes() if spec.origin and spec.has_location else b""


def _own_code(spec: ModuleSpec) -> tuple[bytes, tuple[str, ...]]:
    """The source of a trainable's module, which is not imported, without the sweeps in it; and its `sources`."""
    source = _source(spec)
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):  # its import says what is wrong; until then its bytes count
        return source, ()
    listed = _listed(body, spec.name)
    if DECLARING.isdisjoint(top for statement in body for top in _imported_tops(statement)):
        return source, listed
    return ast.unparse(ast.Module(used(body), [])).encode(), listed


def _listed_files(spec: ModuleSpec, listed: Sequence[str]) -> dict[str, bytes]:
    """The contents of the files by name; patterns such as `models/*.py` are from the module's folder.

    Raises:
        InputError: if a pattern matches nothing.
    """
    folder = Path(spec.origin or "").parent
    contents: dict[str, bytes] = {}
    for pattern in listed:
        matched = {str(file.relative_to(folder)): file for file in folder.glob(pattern) if file.is_file()}
        if not matched:
            raise InputError(f"`sources` of {spec.name} names {pattern!r}, but there is no such file in {folder}.")
        contents |= {name: file.read_bytes() for name, file in matched.items()}
    return contents


def _listed(body: Sequence[ast.stmt], module: str) -> tuple[str, ...]:
    """The value of `sources = [...]`, which must be written out."""
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "sources" for target in targets):
            try:
                listed = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError):
                listed = None
            is_list = isinstance(listed, list | tuple)
            if not is_list or not all(
                isinstance(name, str) and name and not Path(name).is_absolute() for name in listed
            ):
                raise InputError(
                    f"`sources` of {module} must be a list of names of files, written out, from its folder."
                )
            return tuple(listed)
    return ()


def _imported_tops(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        return {statement.module.partition(".")[0]}
    return set()
