"""Tensors of a trained model, for NumPy and PyTorch without copying."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping as AbstractMapping
from typing import Any, Dict, Iterator, Tuple

from . import _dlpack
from ._call import to_text

# dtype of WeftQL: format of memoryview, typestr of NumPy's array interface, bytes. None: has no such format
FORMATS = {"f32": ("f", "<f4", 4), "f64": ("d", "<f8", 8), "f16": ("e", "<f2", 2), "i32": ("i", "<i4", 4),
           "i64": ("q", "<i8", 8), "bool": ("?", "|b1", 1), "bf16": (None, None, 2), "f8e4m3": (None, None, 1),
           "f8e5m2": (None, None, 1)}


class _Memory:
    """The C object that owns the tensors. Freed with the last of them."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self.library, self.handle = library, handle

    def __del__(self) -> None:
        self.library.weft_weights_free(self.handle)


class Tensor:
    """A tensor in row-major order: name, dtype ("f32"), shape, and its memory.

    numpy.asarray(tensor), memoryview(tensor.buffer) and torch.from_dlpack(tensor) share the memory,
    which is a copy of the session's weights. NumPy has no bf16: there a tensor is converted to float32.
    """

    def __init__(self, memory: _Memory, raw: Any) -> None:
        self.name = to_text(raw.name)
        self.dtype = to_text(raw.dtype)
        self.shape: Tuple[int, ...] = tuple(raw.shape[i] for i in range(raw.dimensions))
        self.nbytes = int(raw.size)
        self._address = raw.data or 0
        self._memory = memory

    def _bytes(self) -> Any:
        block: Any = (ctypes.c_char * self.nbytes).from_address(self._address) if self.nbytes else (ctypes.c_char * 0)()
        block._memory = self._memory  # views of the block keep the memory
        return block

    @property
    def buffer(self) -> memoryview:
        """The memory: elements in the tensor's shape, or bytes for bf16 and f8."""
        view = memoryview(self._bytes()).cast("B")
        code = FORMATS[self.dtype][0]
        if code is None or not self.nbytes:
            return view
        return view.cast(code, self.shape) if self.shape else view.cast(code)

    def tolist(self) -> Any:
        """Nested lists of numbers; a number for a tensor without dimensions."""
        if self.dtype == "bf16":
            return self._widened().tolist()
        if FORMATS[self.dtype][0] is None:
            raise TypeError(f"{self.name} has dtype {self.dtype}, which Python has no numbers for: use .buffer")
        values = self.buffer.tolist()
        return values if self.shape else values[0]

    def _widened(self) -> memoryview:
        """bf16 as f32: its bits are the upper half of a float's."""
        wide = bytearray(2 * self.nbytes)
        narrow = self.buffer
        wide[2::4], wide[3::4] = narrow[0::2].tobytes(), narrow[1::2].tobytes()
        view = memoryview(wide).cast("f")
        return memoryview(wide).cast("f", self.shape) if self.shape else view

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        typestr = FORMATS[self.dtype][1]
        if typestr is None:
            raise AttributeError(f"NumPy has no dtype for {self.dtype}")
        return {"version": 3, "shape": self.shape, "typestr": typestr, "data": (self._address, False)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        if self.dtype == "bf16":
            made = numpy.asarray(self._widened()).reshape(self.shape)
        elif FORMATS[self.dtype][1] is None:
            made = numpy.asarray(self.buffer).reshape(self.shape)
        else:
            interface = type("Interface", (), {"__array_interface__": self.__array_interface__, "owner": self})()
            made = numpy.asarray(interface)
        return made if dtype is None else made.astype(dtype)

    def numpy(self) -> Any:
        """The tensor as a NumPy array. Needs NumPy."""
        import numpy

        return numpy.asarray(self)

    def __dlpack__(self, *, stream: Any = None, **_newer: Any) -> Any:
        return _dlpack.capsule(self, self._address, self.dtype, self.shape)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _dlpack.CPU, 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.name} has no dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<weft.Tensor {self.name} {self.dtype}[{','.join(map(str, self.shape))}]>"


class Weights(AbstractMapping):
    """The tensors of a model by name, and the number of steps that it was trained for."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        memory = _Memory(library, handle)
        self.step: int = library.weft_weights_step(handle)
        self._tensors: Dict[str, Tensor] = {}
        for index in range(library.weft_weights_count(handle)):
            tensor = Tensor(memory, library.weft_weights_tensor(handle, index).contents)
            self._tensors[tensor.name] = tensor

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<weft.Weights after {self.step} steps: {', '.join(self._tensors)}>"
