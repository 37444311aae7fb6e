"""pyarrow's compute kernels without types.

Kernels accept arrays, chunked arrays, scalars and numpy arrays alike; pyarrow-stubs knows only some of that and rejects the
rest, and no column whose type is found at run time. Where a kernel's result leaves a function, the function's own annotation
types it. All take them from here, but for the SDK, which stands alone; who builds expressions imports pyarrow.compute.
"""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.types as pat

pc: Any = pyarrow.compute

# Columns whose type only a schema knows. The generics are the stubs' own: pyarrow has none at run time.
if TYPE_CHECKING:
    Array: TypeAlias = pa.Array[Any]
    ChunkedArray: TypeAlias = pa.ChunkedArray[Any]
    Field: TypeAlias = pa.Field[Any]
    Scalar: TypeAlias = pa.Scalar[Any]
else:
    Array, ChunkedArray, Field, Scalar = pa.Array, pa.ChunkedArray, pa.Field, pa.Scalar


def index_array(positions: npt.NDArray[np.int64]) -> Array:
    """For ``take``: the same memory. ``pa.array`` would import pandas to see whether it was given a series."""
    whole = np.ascontiguousarray(positions, dtype=np.int64)
    made: Array = pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole.data)])
    return made


def mask_array(mask: npt.NDArray[np.bool_]) -> Array:
    """For ``filter``; see ``index_array``."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little").data)
    made: Array = pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits])
    return made


def buffer_bytes(array: Array, number: int) -> memoryview:
    """One of the array's buffers, without a copy; empty where the array has none. The offset is the caller's to apply."""
    buffer = array.buffers()[number]
    return memoryview(b"") if buffer is None else memoryview(buffer)


def offsets_of(array: Array) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
    """int[n + 1]: where each text, list or map begins in its array's values, and where the last one ends.

    Not the whole buffer: a client's may be longer, by any number of bytes (test_damaged_bytes_are_refused_or_harmless).
    """
    kind = array.type
    large = pat.is_large_string(kind) or pat.is_large_binary(kind) or pat.is_large_list(kind)
    width = np.dtype(np.int64 if large else np.int32)
    raw = buffer_bytes(array, 1)
    if not raw:
        return np.zeros(len(array) + 1, width)
    return np.frombuffer(raw, width, len(array) + 1, array.offset * width.itemsize)
