"""Passwords, tokens and keys in what is recorded, shown or handed on: they become ***.

Known by what this process's environment holds, by their form, and by the names before them. The patterns are our own,
because detect-secrets 1.5.0 misses most of the forms that its callers met here and takes seconds to import.
"""

import os
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

from trainables.secret import declared_names, known_values

HIDDEN: Final = "***"
_SECRET: Final = (
    r"(?:password|passwd|pwd|passphrase|token(?![-_]ids?(?![a-z]))|secret|api[-_]?key|access[-_]?key|credentials?)"
    r"(?![a-z]|_count|_per|_type|_level|_mixing|_merging|_pooling|[-_](?:file|path|dir|folder|cache|mode)s?(?![a-z]))"
)
"""Words of a name that holds a secret: not `pad_token_id`, nor `token_file`, which says where one lies."""

_OPTION: Final = re.compile(rf"-[\w.\-]*{_SECRET}[\w\-]*", re.IGNORECASE)
_SETTING: Final = re.compile(rf"([\w.\-]*{_SECRET}[\w\-]*=)(.+)", re.IGNORECASE | re.DOTALL)
_INNER: Final = re.compile(rf"""({_SECRET}\w*["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s,;&}}]+)""", re.IGNORECASE)
_KEY: Final = re.compile(r"\b([A-Z][A-Z0-9_]*_(?:KEY|AUTH|PAT)=)[^\s,;&]+")
_EXPORTED: Final = re.compile(
    r"\b((?:[A-Z][A-Z0-9_]*_)?(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|ACCESS_KEY)(?:=|:[ ]+))"
    r"[^\s,;&\"'$(]+"
)
"""What a shell or YAML takes without quotes; `$NAME` is no secret yet."""
_BEARER: Final = re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=\-]{8,}", re.IGNORECASE)
_SIGNATURE: Final = re.compile(r"([?&](?:sig|signature|auth|key|x-amz-[a-z-]+)=)[^\s&\"']+", re.IGNORECASE)
_OF_URI: Final = re.compile(r"(\b[\w+.\-]+://[^\s:/\"']*):([^\s\"']+)@")
_PASSWORD: Final = re.compile(r"(://[^:/\s]*):(.*)@")
"""A password within one address: the password may hold any sign, quotes too, and the user's name an @."""
_FEW: Final = re.compile(
    r"""[\w.\-]*token[\w\-]*["']?\s*[:=]\s*(?:\d{1,6}|\d*\.?\d+e\+?\d+|true|false|null)""", re.IGNORECASE
)
"""A number of tokens, or a token's number: `pad_token=3`, `token_dim=64`."""
_PASSWORD_OPTION: Final = re.compile(r"((?:password|passwd|pwd|token)=)[^&\s]*", re.IGNORECASE)
_LONE_USER: Final = re.compile(r"(\bhttps?://)[^\s:/@\"']+@", re.IGNORECASE)
_LITERAL: Final = re.compile(
    rf"""({_SECRET}\w*["']?\s*[:=]\s*)(\"\"\".+?\"\"\"|'''.+?'''|"[^"]+"|'[^']+')""", re.IGNORECASE | re.DOTALL
)
_UNQUOTED: Final = re.compile(
    rf"""({_SECRET}\w*["']?\s*[:=]\s*)(?=[\w+/\-]*\d)(?=[\w+/\-]*[A-Za-z])(?!0x)[\w+/\-]{{8,}}=*(?![\w.(\[])""",
    re.IGNORECASE,
)
"""A secret in a line of source: letters and digits, neither called nor looked into; `token = next(tokens)` is none."""

_FORM: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[a-z]_\w{20,}|github_pat_\w{20,}|gl[a-z]{2,6}-[\w\-]{20,}|hf_\w{20,}|npm_\w{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|sk-[\w\-]{20,}|(?:sk|rk|pk)_(?:live|test)_\w{10,}|whsec_\w{20,}"
    r"|xox[a-z]-[\w\-]{10,}|xapp-[\w\-]{10,}|AIza[\w\-]{30,}|ya29\.[\w\-]{20,}|GOCSPX-[\w\-]{20,}"
    r"|pypi-[\w\-]{50,}|SG\.[\w\-]{16,}\.[\w\-]{16,}|hvs\.[\w\-]{20,}|dop_v1_\w{20,}|nvapi-[\w\-]{20,}"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*)"
)
"""The forms of secrets: a JWT, and those of GitHub, GitLab, Hugging Face, npm, AWS, OpenAI, Stripe, Slack, Google,
PyPI, SendGrid, Vault and others."""

_ACCOUNT: Final = re.compile(r"\b((?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^\s;\"']+", re.IGNORECASE)
_PEM_WORDS: Final = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_GAP: Final = r"(?:\\[nr]|[\s\"',]|-(?!-))*+"
_PEM: Final = re.compile(
    rf"-----BEGIN {_PEM_WORDS}(?:.{{0,10000}}?-----END {_PEM_WORDS}|(?:{_PEM_GAP}[A-Za-z0-9+/=]{{16,}}+){{0,200}}+)"
    rf"|(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{{16,}}+{_PEM_GAP}){{1,200}}+-----END {_PEM_WORDS}",
    re.DOTALL,
)
"""A private key, also one whose beginning or end is cut off, as in a diff."""

_BETWEEN: Final = r"""(?:["']?,?\s+["']?|=)"""
"""Arguments, in a shell's words or in the list that Python shows."""

_OF_COMMAND: Final = re.compile(
    rf"""(\bcurl\b[^\n|;]{{0,300}}?[\s"'](?:-u|-U|--user|--proxy-user){_BETWEEN}?[^\s:"',]+:)[^\s"']+"""
    rf"""|(\b(?:mysql\w*|mariadb\w*)\b[^\n|;]{{0,300}}?[\s"']-p)[^\s"',`]+"""
    rf"""|(\B--[\w\-]*(?i:{_SECRET})[\w\-]*["']?,?\s+["']?)(?![\-$<]|(?:or|and|is|must|for|to)\b)[^\s"',]+"""
    rf"""|(\b(?:sshpass{_BETWEEN}-p|redis-cli\b[^\n|;]{{0,300}}?[\s"']-a){_BETWEEN}?)[^\s"',]+"""
)
"""Options with secrets of curl, databases and other commands."""

_NAME: Final = re.compile(
    rf"{_SECRET}|(?:(?:^|_)(?:key|auth|pat)|(?<!by)pass|(?<!max_)(?<!num_)tokens|secrets|passwords|connection_string)$",
    re.IGNORECASE,
)
_NO_SECRET: Final = re.compile(r"^(?:OLD)?PWD$|(?:^|_)(?:PATH|FILE|DIR|MODE|CACHE|URL|URI)$", re.IGNORECASE)
LEAST_LENGTH: Final = 8
"""The shortest value of the environment that is looked for elsewhere; a shorter one stands in ordinary words."""

LEAST_DECLARED: Final = 6
"""The same of a field that is declared as a secret, which is one for certain."""

_OF_PYTHON: Final = re.compile(r"diff --git .*\.(?:py|ipynb)\"?$", re.MULTILINE)
_QUOTES_SOURCE: Final = re.compile(r'^ +File ".*", line \d+')


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name is taken to hold a secret."""
    return bool(_NAME.search(name)) and not _NO_SECRET.search(name)


def without_secrets(command: str) -> str:
    """A command line with *** for the values of options and settings that are passwords, tokens or keys."""
    try:
        arguments = [(argument, shlex.quote(argument)) for argument in shlex.split(command)]
    except ValueError:  # an open quote: no command of ours
        arguments = [(argument, argument) for argument in command.split()]
    kept, is_secret = [], False
    for argument, quoted in arguments:
        plain = HIDDEN if is_secret else _without_secret(argument)
        kept.append(quoted if plain == argument else plain)
        is_secret = _OPTION.fullmatch(argument) is not None
    return redacted_text(" ".join(kept))


def redacted_setting(path: str, value: str, secrets: tuple[str, ...] | None = None) -> str:
    """The value of the setting `path`: *** where its name or what it holds is a secret.

    Args:
        secrets: default: those of the environment as it is now.
    """
    return _without_secret(f"{path}={value}", secrets)[len(path) + 1 :]


def redacted_value(path: str, value: Any) -> Any:
    """A JSON-ready value, each text in it as `redacted_setting` makes it; a name within it says what it holds."""
    if isinstance(value, str):
        return redacted_setting(path, value)
    if isinstance(value, Mapping):
        return {name: redacted_value(f"{path}.{name}" if path else name, part) for name, part in value.items()}
    return [redacted_value(path, part) for part in value] if isinstance(value, list) else value


def redacted_leaves(values: Mapping[str, object]) -> dict[str, str]:
    """A config's values by path, each a text as `redacted_setting` makes it; a number is no secret.

    Thousands of conditions share most of their values, so what was looked into under the same secrets is kept.
    """
    secrets, declared = _of_environment(), frozenset(declared_names)
    return {
        path: str(value)
        if isinstance(value, int | float | None)
        else _redacted_under(path, str(value), secrets, declared)
        for path, value in values.items()
    }


@lru_cache(maxsize=1 << 14)
def _redacted_under(path: str, value: str, secrets: tuple[str, ...], _declared: frozenset[str]) -> str:
    return redacted_setting(path, value, secrets)


def redacted_uri(uri: str) -> str:
    """The address of a store with *** for its password, which may hold any sign, an @ too."""
    return _PASSWORD_OPTION.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", uri))


def redacted_text(text: str, secrets: tuple[str, ...] | None = None) -> str:
    """Any text, such as an error, with *** for what looks like a password, a token or a key in it."""
    return _INNER.sub(
        lambda match: match[0] if _FEW.fullmatch(match[0]) else match[1] + HIDDEN,
        _redacted(text, "|[^\\s,;&}}\\])]+", secrets),
    )


def redacted_source(text: str) -> str:
    """Source or a diff of it, with *** for secrets written into it; `token = next(tokens)` stays as it is."""
    return _LITERAL.sub(rf"\1{HIDDEN}", _redacted(text))


def redacted_diff(text: str) -> str:
    """A diff by git, with *** for secrets: Python as in `redacted_source`, in other files also what has no quotes."""
    parts = re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)
    return "".join(redacted_source(part) if _OF_PYTHON.match(part) else redacted_text(part) for part in parts)


def redacted_traceback(text: str) -> str:
    """A traceback with *** for secrets in its messages, and its lines of source as in `redacted_source`.

    Source that a traceback quotes may be of no Python, such as a line of a settings file.
    """
    lines, is_source = [], False
    for line in _PEM.sub(HIDDEN, text).splitlines(keepends=True):
        redacted = _UNQUOTED.sub(rf"\1{HIDDEN}", redacted_source(line)) if is_source else redacted_text(line)
        lines.append(redacted)
        is_source = _QUOTES_SOURCE.match(line) is not None
    return "".join(lines)


def _redacted(text: str, unquoted: str = "", secrets: tuple[str, ...] | None = None) -> str:
    """Whatever the name before it is, but for those of fields that are declared as secrets.

    Args:
        unquoted: what else is a value behind these, beside what stands in quotes.
        secrets: default: those of the environment as it is now.
    """
    if declared_names:
        names = "|".join(map(re.escape, sorted(declared_names)))
        value = rf"""("[^"]*"|'[^']*'{unquoted})"""
        text = re.sub(rf"""(?<!\w)((?:{names})["']?\s*[:=]\s*)(?:SecretStr\()?{value}""", rf"\1{HIDDEN}", text)
    for secret in _of_environment() if secrets is None else secrets:
        text = text.replace(secret, HIDDEN)
    text = _LONE_USER.sub(rf"\1{HIDDEN}@", _OF_URI.sub(rf"\1:{HIDDEN}@", _PEM.sub(HIDDEN, text)))
    text = _OF_COMMAND.sub(lambda match: match[match.lastindex or 0] + HIDDEN, text)
    for pattern in (_KEY, _EXPORTED, _BEARER, _SIGNATURE, _ACCOUNT):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return _FORM.sub(HIDDEN, text)


def _of_environment() -> tuple[str, ...]:
    """Secrets that this process was given, also as URLs write them; longer ones first."""
    given = {name: os.environ.get(name, "") for name in os.environ}  # another thread may take one away meanwhile
    return _secrets_among(frozenset(given.items()), frozenset(known_values))


@lru_cache(maxsize=1)  # a study has thousands of settings, each of which is searched for all of them
def _secrets_among(given: frozenset[tuple[str, str]], known: frozenset[str]) -> tuple[str, ...]:
    secrets = {value for name, value in given if is_secret_name(name)}
    for _, value in given:
        matches = [_PASSWORD.search(value)] if len(value.split()) == 1 else _OF_URI.finditer(value)
        secrets |= {part for match in matches if match for part in (match[2], unquote(match[2]))}
    secrets = {secret for secret in secrets if len(secret) >= LEAST_LENGTH}
    secrets |= {secret for secret in known if len(secret) >= LEAST_DECLARED}
    return tuple(sorted(secrets | {quote(secret, safe="") for secret in secrets}, key=len, reverse=True))


def _without_secret(argument: str, secrets: tuple[str, ...] | None = None) -> str:
    name, sign, value = argument.partition("=")
    if sign and value and name.rpartition(".")[2] in declared_names:
        return f"{name}={HIDDEN}"
    setting = _SETTING.fullmatch(argument)
    if setting:
        return argument if _FEW.fullmatch(argument) else setting[1] + HIDDEN
    text = argument if re.search(r"\s", argument) else _PASSWORD.sub(rf"\1:{HIDDEN}@", argument)
    return redacted_text(text, secrets)
