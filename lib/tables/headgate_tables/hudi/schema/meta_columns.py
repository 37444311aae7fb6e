"""The five columns that Hudi keeps in front of every stored row (Hudi: HoodieRecord)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_tables.arrow import Array, ChunkedArray

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
OPERATION = "_hoodie_operation"
"""A sixth one, between the five and the data, in tables of change-log writers (Flink). Read, never written."""
IS_DELETED = "_hoodie_is_deleted"
"""Not a meta column: a boolean of the user's own, true for a row that is a delete."""

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
META_FIELDS = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)
RESERVED_PREFIX = "_hoodie_"


def with_meta(schema: pa.Schema) -> pa.Schema:
    """The data columns with the five in front; a schema that has them already comes back as it is."""
    return schema if schema.names[:5] == list(META_COLUMNS) else pa.schema([*META_FIELDS, *schema])


def without_meta(schema: pa.Schema) -> pa.Schema:
    """The data columns only."""
    return pa.schema([field for field in schema if field.name not in META_COLUMNS and field.name != OPERATION])


def attach_meta(
    rows: pa.Table,
    keys: Array | ChunkedArray,
    sequence: ChunkedArray,
    *,
    instant: str,
    partition: str,
    file_name: str,
) -> pa.Table:
    """Rows of one file as they are stored: the five columns, then ``rows``.

    ``keys``, ``sequence``: string[n], the record keys and sequence numbers. ``file_name``: the file id in a log file, the
    file's own name in a base file.
    The three constant columns are dictionary arrays of one value: they cost nothing to make, and a quarter of plain text
    to encode (test_constant_meta_columns_are_stored_once).
    """
    return pa.table(
        [
            _constant(instant, rows.num_rows),
            sequence,
            keys,
            _constant(partition, rows.num_rows),
            _constant(file_name, rows.num_rows),
            *rows.columns,
        ],
        names=[*META_COLUMNS, *rows.schema.names],  # `column_names` costs as much as a third of this function
    )


def sequence_numbers(instant: str, n: int, first: int = 1, ordinal: int = 0) -> ChunkedArray:
    """string[n]: ``<instant>_<ordinal>_<row>`` with the rows ``first`` to ``first + n - 1``, one chunk per number of digits.

    Made once for all files of a flush: every number occurs once in the commit, as Hudi wants it, whatever the file. In
    ``ordinal``'s place Hudi has the number of the task: processes that write under one instant have one each.
    """
    head = np.frombuffer(f"{instant}_{ordinal}_".encode(), dtype=np.uint8)
    chunks: list[Array] = []
    at, stop = first, first + n
    while at < stop:
        width = len(str(at))
        end = min(stop, int(10**width))
        text = np.empty((end - at, len(head) + width), dtype=np.uint8)
        text[:, : len(head)] = head
        text[:, len(head) :] = _digits(np.arange(at, end, dtype=np.int64), width)
        offsets = np.arange(0, text.size + 1, text.shape[1], dtype=np.int32)
        chunks.append(pa.StringArray.from_buffers(end - at, pa.py_buffer(offsets.data), pa.py_buffer(text.data)))
        at = end
    return pa.chunked_array(chunks, type=pa.string())


def _constant(value: str, n: int) -> Array:
    indices = _ZEROS.slice(0, n) if n <= len(_ZEROS) else _zeros(n)
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()), safe=False)


def _zeros(n: int) -> Array:
    """Not made by ``pa.array``, which imports pandas to see whether it was given a series."""
    return pa.Array.from_buffers(pa.int8(), n, [None, pa.py_buffer(bytes(n))])


_ZEROS = _zeros(1 << 17)
_FOUR_DIGITS = (np.arange(10_000)[:, None] // (1000, 100, 10, 1) % 10 + ord("0")).astype(np.uint8).view(np.uint32).ravel()


def _digits(numbers: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """uint8[n, width]: the last ``width`` decimal digits, four at a time from a table."""
    groups = -(-width // 4)
    text = np.empty((len(numbers), groups), dtype=np.uint32)
    for group in range(groups - 1, -1, -1):
        numbers, four = np.divmod(numbers, 10_000)
        text[:, group] = _FOUR_DIGITS[four]
    return text.view(np.uint8)[:, 4 * groups - width :]
