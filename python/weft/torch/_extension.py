"""Names and places of the compiled backend: one file per version of torch, Python and Weft."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from typing import Any, Dict, List

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "_weft_c10d"
SOURCE = os.path.join(HERE, "backend.cpp")
OLDEST, NEWEST = (1, 13), (2, 11)  # versions of torch that were tried


def weft_header() -> str:
    """The folder of weft_comm.h: in the package, or in the source tree."""
    tree = os.path.join(HERE, "..", "..", "..", "src", "weft", "communication", "comm")
    for folder in (HERE, tree):
        if os.path.exists(os.path.join(folder, "weft_comm.h")):
            return os.path.normpath(folder)
    raise ImportError(f"the weft package lacks {os.path.join(HERE, 'weft_comm.h')}\n  install the wheel again",
                      name="weft.torch")


def sources() -> List[str]:
    files = [os.path.join(HERE, name) for name in sorted(os.listdir(HERE)) if name.endswith((".cpp", ".h"))]
    header = os.path.join(weft_header(), "weft_comm.h")
    return files if header in files else files + [header]


def torch_version() -> tuple:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def identity() -> Dict[str, Any]:
    """What a compiled backend depends on. It can be loaded only where all of this is the same."""
    digest = hashlib.sha256()
    for path in sources():
        with open(path, "rb") as file:
            digest.update(os.path.basename(path).encode() + b"\0" + file.read() + b"\0")
    return {
        "torch": torch.__version__,
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "python": sys.implementation.cache_tag,
        "platform": sysconfig.get_platform(),
        "sources": digest.hexdigest()[:16],
    }


def json_of(description: Dict[str, Any]) -> str:
    return json.dumps(description, indent=1)


def default_folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    key = hashlib.sha256(repr(sorted(identity().items())).encode()).hexdigest()[:12]
    return os.path.join(cache, "weft", "torch", f"torch-{torch.__version__}-{sys.implementation.cache_tag}-{key}")


def folder() -> str:
    """Where the backend is loaded from: WEFT_TORCH_EXTENSION, or a folder of the user's cache."""
    return os.environ.get("WEFT_TORCH_EXTENSION") or default_folder()


def file_of(folder_path: str) -> str:
    return os.path.join(folder_path, NAME + sysconfig.get_config_var("EXT_SUFFIX"))


def description_of(folder_path: str) -> str:
    return os.path.join(folder_path, "built_for.json")
