"""The c10d backend "weft" for CPU tensors:

    python -m weft.torch.build                        # once per version of torch

    import weft.torch
    torch.distributed.init_process_group("weft")      # or "cpu:weft,cuda:nccl"

The compiled part is loaded when the first process group is created. See docs/torch_backend.md.
"""

from __future__ import annotations

import atexit
import importlib.util
import inspect
import json
import os
import threading
from typing import Any

try:
    import torch
    import torch.distributed
except ImportError as missing:
    raise ImportError(f"weft.torch needs torch: {missing}\n  install torch into this Python", name="weft.torch") from None

from .. import _library

__all__ = ["load"]

_loading = threading.Lock()
_extension_module: Any = None


def _problem(message: str) -> ImportError:
    return ImportError(f"{message}\n  python -m weft.torch.build builds it", name="weft.torch")


def _check(folder: str, wanted: dict) -> None:
    """Raises if the folder has no backend for this torch and this Python."""
    from . import _extension

    named = "WEFT_TORCH_EXTENSION" in os.environ
    to = f" --to {folder}" if named else ""
    try:
        with open(_extension.description_of(folder), encoding="utf-8") as file:
            built_for = json.load(file)
    except (OSError, ValueError):
        built_for = None
    if built_for is None or not os.path.exists(_extension.file_of(folder)):
        raise _problem(f"the backend is not built for torch {torch.__version__} and Python {wanted['python']}: "
                       f"expected {_extension.file_of(folder)}{'; build it with' + to if named else ''}")
    for key, value in wanted.items():
        if built_for.get(key) != value:
            raise _problem(f"{_extension.file_of(folder)} was built for {key} {built_for.get(key)}, "
                           f"and this is {value}{'; build it again with' + to if named else ''}")


def load() -> Any:
    """Loads the compiled backend. Raises ImportError with what to do if it is missing or does not fit."""
    global _extension_module
    with _loading:
        if _extension_module is None:
            from . import _extension

            folder = _extension.folder()
            _check(folder, _extension.identity())
            _library.library()  # reports a missing or unsuitable libweft.so
            spec = importlib.util.spec_from_file_location(_extension.NAME, _extension.file_of(folder))
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            module.load(_library.path())
            # Before torch ends its threads and the interpreter its objects.
            atexit.register(module.finish_all)
            _extension_module = module
    return _extension_module


def _create(store, rank, size, timeout):
    return load().create(store, rank, size, timeout)


def _register() -> None:
    backends = torch.distributed.Backend
    if "WEFT" in backends._plugins:
        return
    parameters = inspect.signature(backends.register_backend).parameters
    options = {"devices": ["cpu"]} if "devices" in parameters else {}
    backends.register_backend("weft", _create, **options)


if torch.distributed.is_available():
    _register()
else:
    raise ImportError(f"torch {torch.__version__} was built without torch.distributed\n"
                      "  install a build of torch that has it", name="weft.torch")
