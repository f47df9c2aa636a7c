"""Finds libweft.so, loads it and declares its functions (docs/c_api.md)."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import sys
import sysconfig
import threading
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libweft.so.0"
WEFT_JSON_WITH_REPORT = 2


class CError(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char_p), ("hint", c_char_p), ("report", c_char_p),
                ("text", c_char_p), ("line", c_int64), ("column", c_int64), ("offset", c_int64),
                ("length", c_int64)]


class CProgress(ctypes.Structure):
    _fields_ = [("model", c_char_p), ("step", c_int64), ("steps", c_int64), ("loss", c_double),
                ("rows_per_second", c_double), ("seconds_left", c_double)]


class CSearchProgress(ctypes.Structure):
    _fields_ = [("model", c_char_p), ("candidates", c_int64), ("best_seconds", c_double),
                ("bound_seconds", c_double), ("seconds", c_double)]


class CTensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_char_p), ("shape", POINTER(c_int64)),
                ("dimensions", c_size_t), ("data", c_void_p), ("size", c_size_t)]


OnAnswer = ctypes.CFUNCTYPE(None, c_void_p, c_size_t, c_void_p)
OnProgress = ctypes.CFUNCTYPE(None, POINTER(CProgress), c_void_p)
OnSearch = ctypes.CFUNCTYPE(None, POINTER(CSearchProgress), c_void_p)

_FUNCTIONS = {
    "weft_version": (c_char_p, []),
    "weft_last_error": (c_char_p, []),
    "weft_session_open": (c_int, [POINTER(c_void_p)]),
    "weft_session_close": (None, [c_void_p]),
    "weft_session_execute": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_void_p)]),
    "weft_session_on_answer": (None, [c_void_p, OnAnswer, c_void_p]),
    "weft_session_on_progress": (None, [c_void_p, OnProgress, c_void_p]),
    "weft_session_on_search": (None, [c_void_p, OnSearch, c_void_p]),
    "weft_session_interrupt": (None, [c_void_p]),
    "weft_answer_error": (POINTER(CError), [c_void_p]),
    "weft_answer_free": (None, [c_void_p]),
    "weft_session_weights": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "weft_weights_step": (c_int64, [c_void_p]),
    "weft_weights_count": (c_size_t, [c_void_p]),
    "weft_weights_tensor": (POINTER(CTensor), [c_void_p, c_size_t]),
    "weft_weights_free": (None, [c_void_p]),
}

_loading = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def wheel() -> Dict[str, Any]:
    """What the wheel says of itself: version, platform, libraries. Empty in a source tree."""
    try:
        with open(os.path.join(HERE, "_wheel.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def program() -> Optional[str]:
    """The path of the weft program in this package, if it is packed."""
    path = os.path.join(HERE, "bin", "weft")
    return path if os.access(path, os.X_OK) else None


def this_platform() -> str:
    """Platform tag of a wheel for this interpreter: linux_x86_64."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _problem(message: str, hint: str) -> ImportError:
    return ImportError(f"{message}\n  {hint}", name="weft")


def _path(made: Dict[str, Any]) -> str:
    named = os.environ.get("WEFT_LIBRARY")
    if named:
        if not os.path.exists(named):
            raise _problem(f"WEFT_LIBRARY names no file: {named}", "unset it to use the library of the package")
        return named
    if made and made["platform"] != this_platform():
        raise _problem(f"this weft wheel is for {made['platform']}, and this Python is {this_platform()}",
                       "build a wheel on this platform: make wheel")
    candidates = [os.path.join(HERE, "lib", NAME)]
    if not made:  # in the source tree
        candidates.append(os.path.join(HERE, "..", "..", "build", "release", NAME))
    for candidate in candidates:
        if os.path.exists(candidate):
            return os.path.normpath(candidate)
    if made:
        raise _problem(f"the weft package lacks {candidates[0]}", "install the wheel again")
    raise _problem(f"{NAME} is not built: expected {os.path.normpath(candidates[-1])}",
                   "make lib builds it, make wheel a wheel with it; or name a library in WEFT_LIBRARY")


def _hint(reason: str, made: Dict[str, Any]) -> str:
    if "cannot open shared object file" in reason:
        needed = reason.split(":")[0]
        system = f"; the wheel was built on {made['system']}" if made.get("system") else ""
        return f"install the package of the distribution that has {needed}{system}"
    if "GLIBC" in reason or "CXXABI" in reason:
        return f"the library needs a newer system ({made.get('system', 'unknown')}): make wheel builds one here"
    return f"it must be a library for {platform.machine()}: make wheel builds one"


def path() -> str:
    """The path of the library that library() loads."""
    return _path(wheel())


def library() -> ctypes.CDLL:
    """The loaded library. Raises ImportError with the reason and a hint if it cannot be loaded."""
    global _loaded
    if _loaded is not None:
        return _loaded
    with _loading:
        if _loaded is None:
            _loaded = _load()
    return _loaded


def _load() -> ctypes.CDLL:
    if not sys.platform.startswith("linux"):
        raise _problem(f"weft runs on Linux, and this is {sys.platform}", "use a Linux machine or container")
    made = wheel()
    file = _path(made)
    try:
        loaded = ctypes.CDLL(file)
    except OSError as error:
        raise _problem(f"cannot load {file}: {error}", _hint(str(error), made)) from None
    missing: List[str] = []
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            missing.append(name)
            continue
        function.restype, function.argtypes = result, arguments
    if missing:
        raise _problem(f"{file} lacks {missing[0]}: it is another version of Weft",
                       "use the library that belongs to this package")
    version = loaded.weft_version().decode()
    if made and made["version"] != version:
        raise _problem(f"{file} has version {version}, and the package {made['version']}",
                       "use the library that belongs to this package")
    return loaded
