"""What a writer does with rows of a table: they are checked, keyed and placed, and become files. By the table's format."""

import numpy as np
import pyarrow as pa

from headgate_tables.arrow import Array
from headgate_tables.face.definition import Definition
from headgate_tables.face.writing import ChangeSink
from headgate_tables.hudi import place as placing
from headgate_tables.hudi.batches import conform_to_table
from headgate_tables.hudi.changes import ChangeWriter
from headgate_tables.hudi.duplicates import Ints, one_row_per_key
from headgate_tables.hudi.keys.bucket import key_group
from headgate_tables.hudi.keys.java_hash import java_string_hash
from headgate_tables.hudi.place import Placed
from headgate_tables.opening import of_hudi
from headgate_tables.storage.store import Store

__all__ = ["Placed", "change_sink", "conform", "key_group", "one_row_per_record", "place"]


def place(rows: pa.Table, deletes: pa.BooleanArray | None, definition: Definition) -> Placed:
    """Checks and keys the rows, and says to which bucket each belongs; they keep their order. Raises FixCall errors.

    ``deletes``: bool[n] without null, in one chunk; None: there are none.
    """
    return placing.place(rows, deletes, of_hudi(definition))


def conform(rows: pa.Table, definition: Definition) -> pa.Table:
    """Upserts in the table's columns and types. Raises FixCall errors."""
    return conform_to_table(rows, of_hudi(definition))


def one_row_per_record(keys: Array, ordering: Array | None, groups: Ints) -> Ints | None:
    """Positions of the rows that stand for their record, ascending; None when every record stands once.

    A record is (group, key), ``groups``: int64[n] below 2**31. The larger ordering value wins, a tie goes to the later row.
    """
    return one_row_per_key(keys, ordering, groups, java_string_hash(keys).view(np.uint32))


def change_sink(folder: Store, definition: Definition, *, epoch: int, process: str) -> ChangeSink:
    """``process``: the random id of the process (rule RO8)."""
    return ChangeWriter(folder, of_hudi(definition), epoch=epoch, process=process, ordinal=0)
