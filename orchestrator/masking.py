"""Passwords, tokens and keys in what is shown or handed on: they become ***."""

import re
import shlex
from typing import Final

HIDDEN: Final = "***"
_SECRET: Final = (
    r"(?:password|passwd|pwd|passphrase|token|secret|api[-_]?key|access[-_]?key|credentials?)(?![a-z]|_count|_per)"
)
_OPTION: Final = re.compile(rf"-[\w.\-]*{_SECRET}[\w\-]*", re.IGNORECASE)
_SETTING: Final = re.compile(rf"([\w.\-]*{_SECRET}[\w\-]*=)(.+)", re.IGNORECASE | re.DOTALL)
_INNER: Final = re.compile(rf"""({_SECRET}\w*["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s,;&}}]+)""", re.IGNORECASE)
_KEY: Final = re.compile(r"\b([A-Z][A-Z0-9]*_(?:KEY|AUTH|PAT)=)[^\s,;&]+")
_BEARER: Final = re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/=\-]{8,}", re.IGNORECASE)
_SIGNATURE: Final = re.compile(r"([?&](?:sig|signature|auth|key|x-amz-[a-z-]+)=)[^\s&\"']+", re.IGNORECASE)
_OF_URI: Final = re.compile(r"(\b[\w+.\-]+://[^\s:/@\"']*):[^\s@/\"']+@")


def without_secrets(command: str) -> str:
    """A command line with *** for the values of options and settings that are passwords, tokens or keys."""
    try:
        arguments = [(argument, shlex.quote(argument)) for argument in shlex.split(command)]
    except ValueError:  # an open quote: no command of ours
        arguments = [(argument, argument) for argument in command.split()]
    shown, is_secret = [], False
    for argument, quoted in arguments:
        plain = HIDDEN if is_secret else _without_secret(argument)
        shown.append(quoted if plain == argument else plain)
        is_secret = _OPTION.fullmatch(argument) is not None
    return masked_text(" ".join(shown))


def masked_setting(path: str, value: str) -> str:
    """The value of the setting `path`: *** where its name or what it holds is a secret."""
    return _without_secret(f"{path}={value}")[len(path) + 1 :]


def masked_text(text: str) -> str:
    """Any text, such as an error or a diff, with *** for what looks like a password, a token or a key in it."""
    text = _OF_URI.sub(rf"\1:{HIDDEN}@", text)
    for pattern in (_INNER, _KEY, _BEARER, _SIGNATURE):
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def _without_secret(argument: str) -> str:
    setting = _SETTING.fullmatch(argument)
    return setting[1] + HIDDEN if setting else masked_text(argument)
