"""Routes rows to file groups: checks them against the table, keys and partitions all that wait in one pass, splits by member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.limits import BATCH_PARTITIONS, ROW_BYTES
from headgate_tables.arrow import Array
from headgate_tables.errors import OptionError
from headgate_tables.face.definition import Definition
from headgate_tables.writing import Placed, conform, key_group, place
from headgate_writer.admission import Admitted
from headgate_writer.attached import KeyGroupTable, Membership
from headgate_writer.sizes import Sizes, buffered_bytes, row_bytes


class TooLargeError(OptionError):
    """A batch is over a limit that is known only when its rows are keyed."""


class SliceRefusedError(Exception):
    """Some rows belong to a slice that takes none. ``rows``: a bitmap of these, in the form of ``Refused.rows``."""

    def __init__(self, error: errors_pb2.Error, rows: bytes) -> None:
        super().__init__(error.message)
        self.error = error
        self.rows = rows


@dataclass(frozen=True, slots=True, eq=False)
class RoutedRows:
    """n rows in the order of their arrival, and their file groups.

    ``rows``: the table's columns, one chunk each, null where a delete needs no value. ``keys``: string[n]; ``deletes``:
    bool[n]. ``group``: int32[n], an index into ``groups``, the distinct (partition path, bucket) pairs that occur.
    ``sizes``: int64[n], the bytes of each row (``buffered_bytes``). ``checksum``: of the frame that brought them; 0: they come
    from this process.
    """

    rows: pa.Table
    keys: Array
    deletes: pa.BooleanArray
    group: npt.NDArray[np.int32]
    groups: Sequence[tuple[str, int]]
    sizes: Sizes
    checksum: int = 0

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        keys: Array,
        deletes: pa.BooleanArray,
        group: npt.NDArray[np.int32],
        groups: Sequence[tuple[str, int]],
        *,
        checksum: int = 0,
    ) -> RoutedRows:
        """Returns the rows with their bytes counted."""
        return cls(rows, keys, deletes, group, groups, buffered_bytes(rows, keys), checksum)

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return int(self.sizes.sum())


def route(batches: Sequence[Admitted], definition: Definition) -> RoutedRows:
    """Returns all rows of the batches, in order; each kernel runs once.

    Raises headgate_tables' FixCall errors, and TooLargeError; with several batches any of them may be at fault.
    """
    placed = place(*_together(batches, definition), definition)
    _check_partitions(placed, [batch.rows.num_rows for batch in batches])
    routed = RoutedRows.of(placed.rows, placed.keys, placed.deletes, placed.group, placed.groups)
    if routed.sizes.max(initial=0) > ROW_BYTES and (largest := int(row_bytes(routed.rows).max())) > ROW_BYTES:
        raise TooLargeError(
            f"bytes of one row: {largest:,}, and the limit is {ROW_BYTES:,}",
            fix="Keep such values in files, and send the files' names.",
        )
    return routed


def check_slices(rows: RoutedRows, refused: Mapping[tuple[str, int], errors_pb2.Error]) -> None:
    """Raises SliceRefusedError if a row belongs to a slice in ``refused``, errors by partition path and bucket."""
    groups = [at for at, group in enumerate(rows.groups) if group in refused] if refused else []
    if groups:
        at_fault = np.isin(rows.group, groups)
        first = rows.groups[rows.group[int(at_fault.argmax())]]
        raise SliceRefusedError(refused[first], np.packbits(at_fault, bitorder="little").tobytes())


def split_by_member(rows: RoutedRows, membership: Membership, definition: Definition) -> dict[int, RoutedRows]:
    """Returns the rows by index of the member that has their key groups (rule EX3). Each part keeps the order of its rows."""
    owners = _owners(rows.groups, membership.assignment, definition)
    members = np.unique(owners).tolist()
    if len(members) == 1:
        return {members[0]: rows}
    of_row = owners[rows.group]
    return {member: _part(rows, np.flatnonzero(of_row == member), owners == member) for member in members}


def _together(batches: Sequence[Admitted], definition: Definition) -> tuple[pa.Table, pa.BooleanArray | None]:
    if len(batches) == 1:
        return batches[0].rows, batches[0].deletes
    tables, deletes = [batch.rows for batch in batches], [batch.deletes for batch in batches]
    if any(not table.schema.equals(tables[0].schema) for table in tables):
        tables = [_conformed(batch, definition) for batch in batches]
    rows = pa.concat_tables(tables).combine_chunks()
    if all(each is None for each in deletes):
        return rows, None
    flags = [_flags(each, table.num_rows) for each, table in zip(deletes, tables, strict=True)]
    return rows, pa.array(np.concatenate(flags))


def _conformed(batch: Admitted, definition: Definition) -> pa.Table:
    """Returns the batch's rows with the table's columns and types: batches that differ in these cannot be put together."""
    if batch.rows.schema.equals(definition.schema):
        return batch.rows
    if batch.deletes is None:
        return conform(batch.rows, definition)
    return place(batch.rows, batch.deletes, definition).rows


def _flags(deletes: pa.BooleanArray | None, rows: int) -> npt.NDArray[np.bool_]:
    return np.zeros(rows, np.bool_) if deletes is None else deletes.to_numpy(zero_copy_only=False)


def _check_partitions(placed: Placed, sizes: Sequence[int]) -> None:
    number = {partition: n for n, partition in enumerate({partition for partition, _ in placed.groups})}
    if len(number) <= BATCH_PARTITIONS:
        return
    of_group = np.array([number[partition] for partition, _ in placed.groups])
    batch = np.repeat(np.arange(len(sizes)), sizes)
    distinct = np.unique(batch * len(number) + of_group[placed.group]) // len(number)
    most = int(np.bincount(distinct).max())
    if most > BATCH_PARTITIONS:
        raise TooLargeError(
            f"partitions in one batch: {most:,}, and the limit is {BATCH_PARTITIONS:,}",
            fix="Sort the rows by partition before cutting them into batches, or partition the table more coarsely.",
        )


def _owners(groups: Sequence[tuple[str, int]], assignment: KeyGroupTable, definition: Definition) -> npt.NDArray[np.int64]:
    """Returns int64[len(groups)]: the index of each group's member."""
    key_groups = [key_group(partition, bucket, definition.key_groups) for partition, bucket in groups]
    return assignment[np.array(key_groups, np.int64)].astype(np.int64)


def _part(rows: RoutedRows, picked: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_]) -> RoutedRows:
    renumbered = (np.cumsum(wanted) - 1).astype(np.int32)
    groups = [rows.groups[at] for at in np.flatnonzero(wanted).tolist()]
    return RoutedRows(
        rows.rows.take(picked),
        rows.keys.take(picked),
        rows.deletes.take(picked),
        renumbered[rows.group[picked]],
        groups,
        rows.sizes[picked],
    )
