"""Arrays as data of TRAIN and INFER, by way of .npy files."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, List, Mapping, Optional, Union

from ._errors import Error
from ._sql import name_of, text_of

# Format of a buffer: typestr of NumPy. Native sizes; "l" is a C long.
_TYPES = {"e": "<f2", "f": "<f4", "d": "<f8", "b": "|i1", "h": "<i2", "i": "<i4", "l": "<i8", "q": "<i8",
          "B": "|u1", "H": "<u2", "I": "<u4", "L": "<u8", "Q": "<u8", "?": "|b1"}


def _view(name: str, array: Any) -> memoryview:
    if hasattr(array, "detach"):  # a torch tensor has the buffer protocol only through NumPy
        array = array.detach().cpu().contiguous().numpy()
    buffer = getattr(array, "buffer", array)
    try:
        view = memoryview(buffer)
    except TypeError:
        if hasattr(array, "to_numpy"):  # pandas
            view = memoryview(array.to_numpy())
        else:
            raise TypeError(f"{name}: expected a file name or an array with the buffer protocol, found "
                            f"{type(array).__name__}") from None
    if view.format.lstrip("@=<") not in _TYPES or (view.format[0] == ">" or sys.byteorder != "little"):
        raise Error(f"{name}: an array of format {view.format} is not data of Weft",
                    "convert it to float32 or int32")
    if view.ndim == 0:
        raise Error(f"{name}: expected an array with a row per example, found a number")
    return view


def write_npy(path: str, name: str, array: Any) -> None:
    """Writes an array as numpy.save does."""
    view = _view(name, array)
    shape = "(" + "".join(f"{size}, " for size in view.shape or ()).rstrip(" ") + ")"
    typestr = _TYPES[view.format.lstrip("@=<")]
    header = f"{{'descr': '{typestr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.write(view.tobytes("C"))


class Files:
    """The files of the data while a statement runs. Arrays are written to a folder that is removed."""

    def __init__(self, data: Union[str, "os.PathLike[str]", Mapping[str, Any]]) -> None:
        self._data = data
        self._folder: Optional["tempfile.TemporaryDirectory[str]"] = None

    def __enter__(self) -> "Files":
        if isinstance(self._data, Mapping) and not self._data:
            raise Error("the data has no arrays", "give an array or a file name per INPUT: {'x': x}")
        return self

    def __exit__(self, *_ignored: Any) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def clause(self) -> str:
        """What follows FROM."""
        if isinstance(self._data, (str, os.PathLike)):
            return text_of(os.fspath(self._data))
        if not isinstance(self._data, Mapping):
            raise TypeError(f"expected a file name or a dict of arrays by INPUT, found {type(self._data).__name__}")
        parts: List[str] = []
        for index, (name, one) in enumerate(self._data.items()):
            if isinstance(one, (str, os.PathLike)):
                path = os.fspath(one)
            else:
                if self._folder is None:
                    self._folder = tempfile.TemporaryDirectory(prefix="weft-")
                path = os.path.join(self._folder.name, f"{index}.npy")
                write_npy(path, name, one)
            parts.append(f"{name_of(name)} = {text_of(path)}")
        return ", ".join(parts)
