"""HTML that needs nothing else: no network, no fonts, no files beside it."""

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent / "templates"


def page(template: str, **values: Any) -> str:
    """The text of a page; its policy allows its own style and script alone."""
    style, script = "".join(map(_text, ("colours.css", "figure.css", "page.css"))), _text("page.js")
    values |= {"style": style, "script": script, "style_hash": _hash(style), "script_hash": _hash(script)}
    return _environment().get_template(template).render(**values)


def image(template: str, **values: Any) -> str:
    """The text of an SVG in light colours, without variables, which few programs but browsers know."""
    light = dict(re.findall(r"(--[\w-]+): ([^;]+);", _text("colours.css").partition("@media")[0]))
    style = re.sub(r"var\((--[\w-]+)\)", lambda name: light[name[1]], _text("figure.css"))
    return _environment().get_template(template).render(style=style, **values)


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(FOLDER)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _hash(text: str) -> str:
    """As a content security policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
