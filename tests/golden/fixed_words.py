"""The one rule by which what differs from run to run is replaced.

1. The value of a field, a column, a tag or a metric whose name matches a pattern of `BY_NAME` becomes the word beside
   it, with all its parts; empty values, zeros and nulls stay.
   What a bundle holds does not differ: of it, only `OF_BUNDLES`.
2. A text that is a JSON object stands as that object, for which the rule holds too.
3. In every other text each part that matches a pattern of `BY_TEXT` becomes the word beside it.
4. Metrics named as `LEFT_OUT`, of time and memory, are left out where a study is recorded or a network trained here.

Nothing else is changed: names, keys, numbers with all digits and the order of rows stand as they were answered.
"""

import contextlib
import csv
import io
import json
import re
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]

OF_BUNDLES: Final = {r"versions": "VERSIONS"}

BY_NAME: Final = OF_BUNDLES | {
    r"(.*[. ])?(code_version|git_commit|commits?|packages|versions?)": "VERSION",
    r"(.*\.)?(run_id|parentRunId|attempt|token)": "ID",
    r"(.*\.)?(duration_s|wall_s|device_hours|money|kwh)(_\w+)?": "DURATION",
    r"(.*\.)?(time_ms|updated_ms)": "TIME",
    r"(.*\.)?(host|devices?|place)": "HOST",
    r"(.*\.)?(size|peak_host|peak_gpu|disk)_bytes(_\w+)?": "SIZE",
    r"(.*\.)?command": "COMMAND",
    r"sha256": "DIGEST",
}

BY_TEXT: Final = {
    re.escape(str(ROOT)): "CHECKOUT",
    re.escape(tempfile.gettempdir()) + r"/golden-\w+": "PLACE",
    re.escape(socket.gethostname()): "HOST",
    r"(\b|(?<=%27))[0-9a-f]{32}\b": "ID",
    r"\bprocess \d+": "process PID",
    r"(?<=/experiments/)\d+": "ID",
    r"\b20\d\d-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?": "TIME",
}

LEFT_OUT: Final = re.compile(r"system/.*|ponderay\.updated|.*(_s|_ms|_mb|_bytes|real_time_factor)([@/.].*)?")


def of(name: str, value: Any, by_name: Mapping[str, str] = BY_NAME) -> Any:
    """What stands for `value` of the field `name`."""
    word = next((word for pattern, word in by_name.items() if re.fullmatch(pattern, name)), None)
    if word and value:
        return word
    if isinstance(value, dict):
        return {of_text(key): of(key, one, by_name) for key, one in value.items()}
    if isinstance(value, list):
        return [of(name, one, by_name) for one in value]
    if isinstance(value, str) and value.startswith("{"):
        with contextlib.suppress(ValueError):  # a text that only begins as an object does
            return of(name, json.loads(value), by_name)
    return of_text(value) if isinstance(value, str) else value


def of_text(text: str) -> str:
    """Any text, by the third part of the rule."""
    for pattern, word in BY_TEXT.items():
        text = re.sub(pattern, word, text)
    return text


def of_output(text: str, form: str, by_name: Mapping[str, str] = BY_NAME) -> str:
    """What a command printed as json or csv; a cell `value` is named by the cell `column` of its row."""
    if form == "json":
        return in_lines(of("", json.loads(text), by_name)) if text else ""
    heading, *rows = [*csv.reader(io.StringIO(text, newline=""))] or [[]]
    written = io.StringIO(newline="")
    table = csv.writer(written, lineterminator="\n")
    table.writerow(heading)
    for row in rows:
        named = dict(zip(heading, row, strict=True))
        names = [named.get("column", name) if name == "value" else name for name in heading]
        table.writerow([of(name, cell, by_name) for name, cell in zip(names, row, strict=True)])
    return written.getvalue()


def in_lines(content: Any) -> str:
    """As json of one value a line, for `diff`."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
