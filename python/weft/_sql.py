"""Values as WeftQL text."""

from __future__ import annotations

import numbers
import re
from typing import Any, Mapping

_TARGET = re.compile(r"LOCAL(\s+\d+)?|GPU(\s+RANKS\s+\d+)?|JOB", re.IGNORECASE)


def name_of(name: str) -> str:
    """A quoted name, so that reserved words are names, too."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"expected a name, found {name!r}")
    return '"' + name.replace('"', '""') + '"'


def text_of(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def value_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, str):
        return text_of(value)
    raise TypeError(f"expected a number, a bool or a str, found {type(value).__name__}: {value!r}")


def settings_of(settings: Mapping[str, Any]) -> str:
    """A WITH clause; empty without settings."""
    if not settings:
        return ""
    return " WITH (" + ", ".join(f"{name_of(name)} = {value_of(value)}" for name, value in settings.items()) + ")"


def target_of(target: str) -> str:
    return target if _TARGET.fullmatch(target) else name_of(target)
