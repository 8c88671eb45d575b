"""Pages and drawings that need nothing else: no network, no fonts, no files beside them."""

import base64
import functools
import hashlib
import re
from pathlib import Path
from typing import Any, Final

import resvg_py
from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER: Final = Path(__file__).parent / "templates"
PIXELS_PER_UNIT: Final = 2
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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


def to_png(svg: str) -> bytes:
    """The drawing on white, with the font that comes along."""
    return resvg_py.svg_to_bytes(
        svg_string=NOT_XML.sub("\N{REPLACEMENT CHARACTER}", svg),
        background="white",
        zoom=PIXELS_PER_UNIT,
        skip_system_fonts=True,
        font_files=[str(font_file())],
    )


def font_file() -> Path:
    """DejaVu Sans, which matplotlib brings along: a machine may have no font, and few are wider."""
    import matplotlib  # slow to load, and a page without names beside its points needs none of it

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    loader = FileSystemLoader(FOLDER)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _hash(text: str) -> str:
    """The hash by which a content security policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
