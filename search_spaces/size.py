"""The two sizes of a sweep, and their names: the small one of `NAME` is a sweep of its own, `NAME.smoke`."""

from typing import Final, Literal

Size = Literal["full", "smoke"]
_SUFFIX: Final = ".smoke"


def size_of(name: str) -> Size:
    """The size of the sweep of that name."""
    return "smoke" if name.endswith(_SUFFIX) else "full"


def plain_name(name: str) -> str:
    """The name without its size."""
    return name.removesuffix(_SUFFIX)


def sized_name(name: str, size: Size) -> str:
    """The name of the same sweep in `size`."""
    return plain_name(name) + (_SUFFIX if size == "smoke" else "")


def arguments(name: str) -> list[str]:
    """The sweep as a command takes it: `NAME`, or `NAME --smoke`."""
    return [plain_name(name), *(["--smoke"] if size_of(name) == "smoke" else [])]
