"""DLPack capsules, made with ctypes.

A capsule owns a DLManagedTensor until a consumer takes it over, which renames the capsule to
"used_dltensor" and later calls the deleter.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

CPU = 1
# dtype of WeftQL: DLPack's type code and bits
_CODES = {"f32": (2, 32), "f64": (2, 64), "f16": (2, 16), "bf16": (4, 16), "i32": (0, 32), "i64": (0, 64),
          "bool": (6, 8)}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_alive: Dict[int, Any] = {}  # what a consumer may still read, by the address of its Managed


def _delete(address: int) -> None:
    _alive.pop(address, None)


def _destroy(capsule: int) -> None:
    # The capsule has no references left, so it is passed as a bare pointer.
    if _is_valid(capsule, b"dltensor"):
        _delete(_get_pointer(capsule, b"dltensor"))


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)

_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, _Destructor)(
    ("PyCapsule_New", ctypes.pythonapi))
_NAME = ctypes.create_string_buffer(b"dltensor")  # a capsule keeps the pointer to its name

for _kept in (_deleter, _destructor, _alive, _NAME):  # tensors may be freed while the interpreter ends
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))


def capsule(owner: Any, address: int, dtype: str, shape: Tuple[int, ...]) -> Any:
    """A capsule of memory at `address`, in row-major order, that keeps `owner` alive."""
    if dtype not in _CODES:
        raise BufferError(f"DLPack consumers have no dtype for {dtype}")
    code, bits = _CODES[dtype]
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    strides = (ctypes.c_int64 * max(1, len(shape)))()
    step = 1
    for dimension in reversed(range(len(shape))):
        strides[dimension] = step
        step *= shape[dimension]
    managed = Managed(_Tensor(address, CPU, 0, len(shape), code, bits, 1, sizes, strides, 0), None,
                      ctypes.cast(_deleter, ctypes.c_void_p).value)
    at = ctypes.addressof(managed)
    _alive[at] = (managed, sizes, strides, owner)
    return _new(at, ctypes.addressof(_NAME), _destructor)
