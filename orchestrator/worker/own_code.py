"""Of a file with a model and the sweeps of it, the statements that are the model's code."""

import ast
from collections.abc import Sequence
from typing import Final

from orchestrator.worker.trainable import FUNCTIONS

SWEEP: Final = "Sweep"
LOOKS_UP: Final = frozenset({"globals", "eval", "exec"})
"""By these, and by `sys.modules`, a function may use what it does not name."""

OF_MODULE: Final = frozenset({"vars", "locals", "dir"})
"""At the top of a module, without an argument, these look up what stands there."""

HARMLESS: Final = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset", "getattr", "int", "isinstance",
    "len", "list", "map", "max", "min", "print", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum",
    "tuple", "type", "zip",
})  # fmt: skip
"""Functions that change nothing."""

HARMLESS_MODULES: Final = frozenset({
    "collections", "dataclasses", "decimal", "fractions", "functools", "itertools", "math", "numpy", "operator",
    "ponderay", "search_spaces", "statistics", "string", "typing",
})  # fmt: skip
READING: Final = frozenset({
    "copy", "count", "format", "get", "index", "items", "join", "keys", "lower", "model_copy", "replace", "split",
    "strip", "tolist", "upper", "values", "with_values",
})  # fmt: skip
"""Methods that change nothing, of whatever value."""


def used(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that the contract's functions use, directly or not; those that act; and all classes.

    A config's class is used by its values, not by its name. What acts may enter a model into a registry, by a
    decorator, a call or an import; but not if it makes a sweep. What makes one, and what that alone uses, counts where
    it calls something that may change more than a value of its own. A function that looks names up may use any.
    """
    body = [statement for statement in body if not _is_of_program(statement)]
    defined = [_defined(statement) for statement in body]
    names = [{node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} for statement in body]
    attributes = [
        {(getattr(node.value, "id", ""), node.attr) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
        for statement in body
    ]
    numbers = [
        i
        for i, own in enumerate(defined)
        if own - FUNCTIONS.keys() and not isinstance(body[i], ast.ClassDef | ast.Import | ast.ImportFrom)
    ]
    making, sweeps = set[int](), {SWEEP}
    while new := {
        i
        for i in numbers
        if i not in making and (names[i] & sweeps or SWEEP in {attribute for _, attribute in attributes[i]})
    }:
        making |= new
        sweeps |= set().union(*(defined[i] for i in new))
    effects, declaring = _Effects(body), set(making)
    users = [{j for j, named in enumerate(names) if j != i and named & own} for i, own in enumerate(defined)]
    harmless = [i for i in numbers if not effects.of(body[i])]
    while new := {i for i in harmless if i not in declaring and users[i] and users[i] <= declaring}:
        declaring |= new
    every = set().union(*names)
    found = {i for i, statement in enumerate(body) if i not in declaring and _acts(statement, defined[i], every)}
    registering = [names[i] - sweeps for i in making if effects.of(body[i], is_sweep=True)]
    wanted = set(FUNCTIONS).union(*(names[i] for i in found), *registering)
    while new := {i for i, own in enumerate(defined) if i not in found and own & wanted}:
        found |= new
        wanted |= set().union(*(names[i] for i in new))
        if wanted & LOOKS_UP or any(("sys", "modules") in attributes[i] or _looks_around(body[i]) for i in found):
            wanted |= set().union(*(own for i, own in enumerate(defined) if i not in making))
    return [body[i] for i in sorted(found)]


class _Effects:
    """What a call in a module may change beside values of its own.

    A function of the module is looked into; one of another module may change something, unless that is known not to,
    or its name is that of a class.
    """

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._harmless = set(HARMLESS)
        for one in body:
            for alias in one.names if isinstance(one, ast.Import | ast.ImportFrom) else ():
                origin = getattr(one, "module", None) or alias.name
                if origin.partition(".")[0] in HARMLESS_MODULES:
                    self._harmless.add((alias.asname or alias.name).partition(".")[0])
        self._values = set().union(*(_defined(one) for one in body if isinstance(one, ast.Assign | ast.AnnAssign)))
        self._changing: set[str] = set()
        self._changing_arguments: set[str] = set()
        before = None  # one function is of a kind because another is, so until nothing is added
        while before != (before := (len(self._changing), len(self._changing_arguments))):
            self._changing |= {name for name, one in self._functions.items() if self._is_changing(one)}

    def of(self, statement: ast.stmt, is_sweep: bool = False) -> bool:
        """Whether what a statement at the top runs, or a decorator of it, may change something.

        Args:
            is_sweep: it makes a sweep, and if it is a function, that is called.
        """
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not is_sweep:
            decorators = (one.func if isinstance(one, ast.Call) else one for one in statement.decorator_list)
            return any(getattr(_root(one), "id", "") not in self._harmless for one in decorators)
        nodes = list(ast.walk(statement))
        own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            own -= self._values
        own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        return any(self._changes(node, own, is_sweep) for node in nodes if isinstance(node, ast.Call))

    def _is_changing(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether it changes something beside its own values and arguments; notes where it changes arguments."""
        nodes = list(ast.walk(function))
        given = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in nodes:  # another name of a value that is not its own
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
                value = _root(node.value)
                if isinstance(value, ast.Name) and value.id not in own:
                    own -= {one.id for one in node.targets if isinstance(one, ast.Name)}
        for node in nodes:
            if isinstance(node, ast.Global | ast.Nonlocal):
                return True
            root: ast.AST | None = None
            if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
                root = _root(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in READING:
                root = _root(node.func)
                root = root if isinstance(root, ast.Name) and root.id in given else None
            if isinstance(root, ast.Name) and root.id in given:
                self._changing_arguments.add(function.name)
            elif isinstance(root, ast.Name) and root.id not in own:
                return True
            if isinstance(node, ast.Call) and self._changes(node, own | given):
                return True
            if isinstance(node, ast.Call) and self._reaches(node, given):
                self._changing_arguments.add(function.name)
        return False

    def _changes(self, call: ast.Call, own: set[str], is_sweep: bool = False) -> bool:
        """Whether a call changes something that is not `own`; what makes a sweep calls others for their values."""
        root = _root(call.func)
        if not isinstance(root, ast.Name) or root.id in own:
            return False
        if isinstance(call.func, ast.Name) and root.id in self._functions:
            return root.id in self._changing or self._reaches(call, self._values - own)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else root.id
        if is_sweep or name[:1].isupper() or (name in READING and isinstance(call.func, ast.Attribute)):
            return False
        return root.id not in self._harmless or "random" in ast.unparse(call.func).split(".")

    def _reaches(self, call: ast.Call, names: set[str]) -> bool:
        """Whether a call gives one of these values to a function of the module that changes its arguments."""
        given = (_root(one) for one in (*call.args, *(keyword.value for keyword in call.keywords)))
        is_given = any(isinstance(one, ast.Name) and one.id in names for one in given)
        return is_given and getattr(call.func, "id", "") in self._changing_arguments


def _root(node: ast.AST) -> ast.AST:
    """What an expression such as `a.b[0].c()` begins with: `a`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


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
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            reaches = any(isinstance(node, (ast.Attribute, ast.Subscript)) for one in targets for node in ast.walk(one))
            return not own or reaches or any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return True


def _looks_around(statement: ast.stmt) -> bool:
    """Whether a statement at the top calls `vars()` or the like; in a function that has its own names alone."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call) and not node.args)
    return any(isinstance(call.func, ast.Name) and call.func.id in OF_MODULE for call in calls)


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
