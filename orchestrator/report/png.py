"""PNG of drawings in SVG."""

import re
from typing import Final

from orchestrator.report.figure.labels import font_file

PIXELS_PER_UNIT: Final = 2
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_png(svg: str) -> bytes:
    """The drawing on white, with the font that comes along."""
    import resvg_py

    return resvg_py.svg_to_bytes(
        svg_string=NOT_XML.sub("\N{REPLACEMENT CHARACTER}", svg),
        background="white",
        zoom=PIXELS_PER_UNIT,
        skip_system_fonts=True,
        font_files=[str(font_file())],
    )
