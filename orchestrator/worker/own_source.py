"""What of a trainable's own module is its code: all of it, the files that it lists, or what its functions use."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final

from orchestrator.worker.trainable import FUNCTIONS
from trainables.errors import InputError

DECLARING: Final = frozenset({"ponderay", "search_spaces"})
"""What a module imports that declares sweeps."""

SWEEP: Final = "Sweep"


@dataclass(frozen=True)
class OwnSource:
    """Of one module.

    Attributes:
        source: without the sweeps that it declares, if it does.
        listed: its `sources`.
    """

    source: bytes
    listed: tuple[str, ...] = ()


def read(spec: ModuleSpec) -> OwnSource:
    """The source of a trainable's module, which is not imported."""
    source = Path(spec.origin).read_bytes() if spec.origin and spec.has_location else b""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):  # its import says what is wrong; until then its bytes count
        return OwnSource(source)
    listed = _listed(body, spec.name)
    if DECLARING.isdisjoint(top for statement in body for top in _imported_tops(statement)):
        return OwnSource(source, listed)
    return OwnSource(ast.unparse(ast.Module(_used(body), [])).encode(), listed)


def files(spec: ModuleSpec, listed: Sequence[str]) -> dict[str, bytes]:
    """The contents of the files by name; patterns such as `models/*.py` are from the module's folder.

    Raises:
        InputError: if a pattern matches nothing.
    """
    folder = Path(spec.origin or "").parent
    found: dict[str, bytes] = {}
    for pattern in listed:
        matched = {str(file.relative_to(folder)): file for file in folder.glob(pattern) if file.is_file()}
        if not matched:
            raise InputError(f"`sources` of {spec.name} names {pattern!r}, but there is no such file in {folder}.")
        found |= {name: file.read_bytes() for name, file in matched.items()}
    return found


def _listed(body: Sequence[ast.stmt], module: str) -> tuple[str, ...]:
    """The value of `sources = [...]`, which must be written out."""
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "sources" for target in targets):
            try:
                found = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
            except (ValueError, TypeError):
                found = None
            if not isinstance(found, list | tuple) or not all(_is_pattern(name) for name in found):
                raise InputError(
                    f"`sources` of {module} must be a list of names of files, written out, from its folder."
                )
            return tuple(found)
    return ()


def _is_pattern(name: object) -> bool:
    return isinstance(name, str) and bool(name) and not Path(name).is_absolute()


def _used(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that the contract's functions use, directly or not; those that act; and all classes.

    A config's class is used by its values, not by its name. What acts may enter a model into a registry, by a
    decorator, a call or an import; but not if it makes a sweep, or is used by what makes one alone.
    """
    body = [statement for statement in body if not _is_of_program(statement)]
    defined = [_defined(statement) for statement in body]
    names = [{node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} for statement in body]
    declaring = _declaring(body, defined, names)
    every = set().union(*names)
    used = {i for i, one in enumerate(body) if i not in declaring and _acts(one, defined[i], every)}
    wanted = set(FUNCTIONS).union(*(names[i] for i in used))
    while new := {i for i, own in enumerate(defined) if i not in used and own & wanted}:
        used |= new
        wanted |= set().union(*(names[i] for i in new))
    return [body[i] for i in sorted(used)]


def _declaring(body: Sequence[ast.stmt], defined: Sequence[set[str]], names: Sequence[set[str]]) -> set[int]:
    """The statements that make a sweep, or use one, and what is used by these alone."""
    found, sweeps = set[int](), {SWEEP}
    kept = (ast.ClassDef, ast.Import, ast.ImportFrom)
    numbers = [i for i, own in enumerate(defined) if own - FUNCTIONS.keys() and not isinstance(body[i], kept)]
    while new := {i for i in numbers if i not in found and (names[i] & sweeps or _names_attribute(body[i], SWEEP))}:
        found |= new
        sweeps |= set().union(*(defined[i] for i in new))
    users = [{j for j, used in enumerate(names) if j != i and used & own} for i, own in enumerate(defined)]
    while new := {i for i in numbers if i not in found and users[i] and users[i] <= found}:
        found |= new
    return found


def _names_attribute(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(statement))


def _acts(statement: ast.stmt, own: set[str], every: set[str]) -> bool:
    """Whether a statement does something beside giving a value to `own` names, of all that are used in the module."""
    match statement:
        case ast.Expr(value=ast.Constant()):  # a docstring
            return False
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return bool(statement.decorator_list)
        case ast.Import() | ast.ImportFrom():
            return not own & every
        case ast.Assign() | ast.AnnAssign():
            return not own or any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return True


def _is_of_program(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which an import passes over."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _defined(statement: ast.stmt) -> set[str]:
    """Names that a statement at the top of a module gives a value; none where it acts."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {alias.asname or alias.name.partition(".")[0] for alias in statement.names} - {"*"}
        case ast.Assign() | ast.AnnAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()


def _imported_tops(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        return {statement.module.partition(".")[0]}
    return set()
