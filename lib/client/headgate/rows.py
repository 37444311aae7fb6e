"""Converts rows of any kind to record batches with exactly the table's columns and types.

Python rows become one Arrow array; Arrow data keeps its buffers where types agree. Errors name row and column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate.columns import Column
from headgate.definition import TableInfo
from headgate.errors import RowError, SchemaError
from headgate.frames import stream_of
from headgate.limits import check_sizes, most_deletes
from headgate.near_names import did_you_mean
from headgate.records import listed, mappings
from headgate.row_reader import RowReader
from headgate.unknown_columns import how_to_add
from headgate.values import can_cast, cast_column, plain, value_error
from headgate_proto.api.v1 import ingest_pb2 as wire
from headgate_proto.limits import BATCH_ROWS

if TYPE_CHECKING:
    from headgate.values import Array, Field

_CHUNK_ROWS = 65_536
_TEXT: pa.DataType = pa.string()
_OPERATIONS: dict[pa.DataType, tuple[object, object]] = {pa.string(): ("upsert", "delete"), pa.int8(): (1, 2)}


class RowFormat:
    """The form in which rows of one table and operation are sent. Made once and compared by identity.

    Upserts have every column of the table; rows may lack those that can be null, except record key, partition and ordering, and
    have null there. Deletes have these three; others are dropped. Mixed rows name their operation in ``operation_column``.
    """

    def __init__(
        self,
        table: TableInfo,
        operation: "wire.Operation.ValueType",
        operation_column: str = "",
        operation_type: pa.DataType = _TEXT,
    ) -> None:
        identity = {*table.key, *table.partition_by, *([table.ordering] if table.ordering else [])}
        fields = [field.remove_metadata() for field in table.schema]
        if operation == wire.OPERATION_DELETE:
            fields = [field for field in fields if field.name in identity]
        if operation == wire.OPERATION_MIXED:
            fields = [field if field.name in identity else field.with_nullable(True) for field in fields]
            fields.append(pa.field(operation_column, operation_type, nullable=False))
        self._table = table.name
        self.operation = operation
        self.operation_column = operation_column
        self.partition_by = table.partition_by
        self.schema = pa.schema(fields)
        self.most_rows = most_deletes(table.schema, self.schema) if operation == wire.OPERATION_DELETE else BATCH_ROWS
        """Of one message."""
        self.schema_message = self.schema.serialize().to_pybytes()
        self._struct = pa.struct(fields)
        self._names = frozenset(self.schema.names)
        self._needed = frozenset(field.name for field in fields if field.name in identity or not field.nullable)
        self._columns = [Column.of(field) for field in fields]
        self._columns_that_may_lack = [Column.of(field, may_lack=field.name not in self._needed) for field in fields]
        self._never_null = [field.name for field in fields if not field.nullable or field.name in {*table.key, table.ordering}]
        self._never_null_at = [self.schema.names.index(name) for name in self._never_null]
        is_mixed = operation == wire.OPERATION_MIXED
        self._tuple_columns = None if is_mixed else table.schema.names
        self.reader = RowReader(
            self._columns_that_may_lack,
            self._needed,
            frozenset(self._never_null),
            table_columns=self._tuple_columns,
            ignores_others=operation == wire.OPERATION_DELETE,
            operations=_OPERATIONS[operation_type] if is_mixed else (),
        )

    def convert(self, data: object) -> Iterator[pa.RecordBatch]:
        """Yields record batches of ``schema``. Data in memory is converted whole before the first batch comes; a reader's is not.

        Raises RowError, SchemaError, InvalidArgumentError.
        """
        if isinstance(data, list):  # first: single rows are frequent, and the other checks take as long as their conversion
            yield from self._from_python(data)
        elif isinstance(data, pa.RecordBatch):
            yield self._from_arrow(data, 0)
        elif isinstance(data, pa.Table):
            yield from self._all(data.to_batches())
        elif isinstance(data, pa.RecordBatchReader):
            yield from self._each(data)
        elif hasattr(data, "__arrow_c_stream__"):
            yield from self._all(stream_of(data).read_all().to_batches())
        else:
            yield from self._from_python(data)

    def only_row(self, data: pa.RecordBatch | pa.Table) -> pa.RecordBatch | None:
        """One row that fits as it is, unless it is large; None for all else, of which ``convert`` decides."""
        if (
            data.num_rows != 1
            or self.operation == wire.OPERATION_MIXED
            or not data.schema.equals(self.schema, check_metadata=True)
        ):
            return None
        row = data if isinstance(data, pa.RecordBatch) else next(batch for batch in data.to_batches() if batch.num_rows)
        return None if any(row.column(at).null_count for at in self._never_null_at) else row

    # --- Python rows ---

    def _from_python(self, data: object) -> Iterator[pa.RecordBatch]:
        rows = data if isinstance(data, list) else listed(data)
        names = self._tuple_columns
        if len(rows) <= _CHUNK_ROWS:
            yield from [self._from_mappings(mappings(rows, 0, names), 0)] if rows else []
        else:
            starts = range(0, len(rows), _CHUNK_ROWS)
            yield from [self._from_mappings(mappings(rows[at : at + _CHUNK_ROWS], at, names), at) for at in starts]

    def _from_mappings(self, rows: Sequence[Mapping[str, object]], first: int) -> pa.RecordBatch:
        columns = self._columns
        if self.operation != wire.OPERATION_UPSERT or {len(self._names)} != set(map(len, rows)):
            self._check_names(rows, first)
            columns = self._columns_that_may_lack
        try:
            rows = _fitted(columns, rows, first)
        except KeyError:  # as many names as columns, but others
            self._check_names(rows, first)
            raise
        try:
            structs = cast("pa.StructArray", pa.array(rows, type=self._struct))
            batch: pa.RecordBatch = pa.RecordBatch.from_struct_array(structs)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._misfit(columns, rows, first, error) from None
        return self._checked(batch, first)

    def _check_names(self, rows: Sequence[Mapping[str, object]], first: int) -> None:
        """Raises RowError for a missing column or, except in deletes, an unknown one. Set operations on key views run in C."""
        for at, row in enumerate(rows, first):
            missing = self._needed - row.keys()
            if missing:
                column = min(missing)
                fix = f"Give a value: {self._what_may_lack()}."
                raise RowError(f"row {at} has no {column!r}", fix=fix, row=at, column=column)
            unknown = row.keys() - self._names
            if unknown and self.operation != wire.OPERATION_DELETE:
                column = min(unknown)
                raise RowError(
                    f"row {at} has {column!r}, which is not a column of the table",
                    fix=f"{self._near(column)}. {how_to_add(self._table, column)}",
                    row=at,
                    column=column,
                )

    def _what_may_lack(self) -> str:
        names = [name for name in self.schema.names if name not in self._needed]
        if self.operation == wire.OPERATION_DELETE:
            return f"deletes need {', '.join(self.schema.names)}"
        if names:
            return f"rows may lack only columns that can be null: {', '.join(names)}"
        return "rows may lack only columns that can be null, and this table has none"

    def _near(self, column: str) -> str:
        near = did_you_mean(column, self.schema.names) if column else ""
        return f"{near}The columns are {', '.join(self.schema.names)}"

    def _misfit(self, columns: Sequence[Column], rows: Sequence[Mapping[str, object]], first: int, cause: Exception) -> Exception:
        """The error that names the value at fault, searched for only after the conversion of all rows has failed."""
        for column in columns:
            field = column.field
            for at, value in enumerate(column.fitted(rows, first), first):
                try:
                    pa.array([value], type=field.type)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                    return value_error(at, field, f"{value!r:.80} does not fit {field.type} ({error})")
        return SchemaError(f"the rows do not fit the table: {cause}", fix=f"The columns are {self.schema}.")

    # --- Arrow rows ---

    def _all(self, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return list(self._each(batches))

    def _each(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            yield self._from_arrow(batch, first)
            first += batch.num_rows

    def _from_arrow(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        if not batch.schema.equals(self.schema, check_metadata=True):
            self._check_columns(batch.schema.names)
            columns = [self._column(batch, field, first) for field in self.schema]
            batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return self._checked(batch, first)

    def _check_columns(self, names: Sequence[str]) -> None:
        wrong = {
            "missing": [name for name in self.schema.names if name in self._needed and name not in names],
            "unknown": [name for name in names if name not in self._names and self.operation != wire.OPERATION_DELETE],
            "more than once": sorted({name for name in names if names.count(name) > 1}),
        }
        if any(wrong.values()):
            found = "; ".join(f"{what}: {', '.join(columns)}" for what, columns in wrong.items() if columns)
            hint = " A pandas index becomes a column: reset_index(drop=True)." if "__index_level_0__" in names else ""
            near, adds = (
                (did_you_mean(wrong["unknown"][0], self.schema.names), f" {how_to_add(self._table, wrong['unknown'][0])}")
                if wrong["unknown"]
                else ("", "")
            )
            fix = f"{near}The columns are {', '.join(self.schema.names)}; {self._what_may_lack()}.{hint}{adds}"
            raise SchemaError(f"the columns are not the table's ({found})", fix=fix)

    def _column(self, batch: pa.RecordBatch, field: "Field", first: int) -> "Array":
        at = batch.schema.get_field_index(field.name)
        column: Array = pa.nulls(batch.num_rows, field.type) if at < 0 else plain(batch.column(at))
        if column.type == field.type:
            return column
        if not can_cast(column.type, field.type):
            raise SchemaError(
                f"column {field.name!r} is {column.type}, but the table has {field.type}",
                fix="Cast the column before sending it.",
            )
        try:
            fitted: Array = cast_column(column, field.type)
        except pa.ArrowException as error:
            for row in range(len(column)):
                try:
                    cast_column(column.slice(row, 1), field.type)
                except pa.ArrowException as why:
                    raise value_error(first + row, field, f"{column[row]} does not fit {field.type} ({why})") from why
            raise SchemaError(f"column {field.name!r}: {error}", fix=f"Cast it to {field.type} before sending.") from error
        return fitted

    # --- both ---

    def _checked(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        for name in self._never_null:
            column = batch.column(name)
            if column.null_count:
                at = first + column.is_null().index(pa.scalar(True)).as_py()
                raise RowError(
                    f"row {at} has no value in {name!r}", fix="Give a value: this column is never null.", row=at, column=name
                )
        if self.operation == wire.OPERATION_MIXED:
            self._check_operations(batch, first)
        check_sizes(batch, first)
        return batch

    def _check_operations(self, batch: pa.RecordBatch, first: int) -> None:
        given = batch.column(self.operation_column)
        known = _OPERATIONS[given.type]
        is_known = pa.compute.is_in(given, value_set=pa.array(known, given.type))
        at = is_known.index(pa.scalar(False)).as_py()
        if at >= 0:
            raise RowError(
                f"row {first + at} has the operation {given[at].as_py()!r}",
                fix=f"Use {known[0]!r} or {known[1]!r}.",
                row=first + at,
                column=self.operation_column,
            )


def _fitted(columns: Sequence[Column], rows: Sequence[Mapping[str, object]], first: int) -> Sequence[Mapping[str, object]]:
    """The rows with values that Arrow leaves as they are: the same rows, if all are so. Raises RowError, KeyError."""
    changed = {column.field.name: column.fitted(rows, first) for column in columns if not column.takes(rows)}
    if not changed:
        return rows
    found = zip(*changed.values(), strict=True)
    return [{**row, **dict(zip(changed, values, strict=True))} for row, values in zip(rows, found, strict=True)]


def detect_operation_type(data: object, column: str) -> tuple[object, pa.DataType]:
    """The rows (a list, if they were an iterator) and the type of their operation column: of the schema or of the first row.

    Frames of other libraries become a table: of a stream, rows are buffered before a later one that does not fit is seen.
    """
    schema = getattr(data, "schema", None)
    if not isinstance(schema, pa.Schema) and hasattr(data, "__arrow_c_stream__"):
        data = stream_of(data).read_all()
        schema = data.schema
    if isinstance(schema, pa.Schema):
        at = schema.get_field_index(column)
        return data, pa.int8() if at >= 0 and pat.is_integer(schema.field(at).type) else pa.string()
    rows = listed(data)
    first = rows[0] if rows else None
    value = first.get(column) if isinstance(first, Mapping) else getattr(first, column, None)
    return rows, pa.int8() if isinstance(value, int) else pa.string()
