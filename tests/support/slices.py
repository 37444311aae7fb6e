"""One slice of a table as an operation of a compaction plan, executed without a plan."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables import hudi
from headgate_tables.face.operation import Operation, OperationResult, PinnedFile
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.log.names import base_name
from headgate_tables.hudi.services.compaction.execution import compact_slice
from headgate_tables.hudi.view import FileSlice

LATER = "29990101000000000"
STAGE = ".hoodie/.headgate/stage/1/compactor"


def place(table: hudi.Table) -> Path:
    """Where a table of this machine lies."""
    return Path(table.url.removeprefix("file://"))


def operation_of(table: hudi.Table, part: FileSlice, instant: str = LATER) -> Operation:
    """What a plan of this moment would pin."""

    def pinned(name: str) -> PinnedFile:
        return PinnedFile(name, (place(table) / part.path(name)).stat().st_size)

    return Operation(
        part.partition,
        part.file_id,
        pinned(part.base) if part.base else None,
        tuple(pinned(log.name) for log in part.logs),
        base_name(part.file_id, "0-0-0", instant),
    )


def operations_of(table: hudi.Table) -> Iterator[Operation]:
    """Of all slices that have logs."""
    for part in table.scan().slices():
        if part.logs:
            yield operation_of(table, part)


def only_operation(table: hudi.Table) -> Operation:
    """Of the one slice that has logs."""
    [operation] = operations_of(table)
    return operation


def compact(
    table: hudi.Table, operation: Operation, *, bloom: bool = False, stage: str = STAGE, **options: Any
) -> OperationResult:
    """``compact_slice`` with the table's own store and definition."""
    assert table.definition is not None
    return compact_slice(
        table._store,
        table.definition,
        table._opened.layout,
        operation,
        LATER,
        stage=stage,
        settings=TableSettings(bloom=bloom),
        **options,
    )


def execute(table: hudi.Table, operation: Operation, instant: str, *, stage: str | None = None) -> OperationResult:
    """An operation of the plan ``instant``, as a compactor does it. ``stage``: None, for that of the table's handle."""
    context = table._context()
    stage = context.stage if stage is None else stage
    return compact_slice(
        context.store, context.definition, context.layout, operation, instant, stage=stage, settings=context.settings
    )


def stored(table: hudi.Table, operation: Operation) -> pa.Table:
    """The rows of the new base file, as pyarrow reads them."""
    return pq.read_table(place(table) / operation.path)


def staged_files(table: hudi.Table) -> list[Path]:
    """What compactors have left in their stage, and files under temporary names."""
    return [*(place(table) / STAGE).glob("*"), *place(table).rglob(".tmp-*")]
