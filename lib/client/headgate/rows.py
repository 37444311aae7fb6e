"""Anything that holds rows becomes record batches of exactly the columns and types that the table stores.

One conversion: Python rows become one Arrow array, Arrow data keeps its buffers where types agree. Errors name row and column.
"""

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from headgate.definition import TableInfo
from headgate.errors import InvalidArgumentError, RowError, SchemaError
from headgate.values import bad_value, is_rounded, may_cast, plain, rounded_kinds
from headgate_proto.api.v1 import ingest_pb2 as wire

_CHUNK_ROWS = 65_536
_TEXT: pa.DataType = pa.string()
_OPERATIONS: dict[pa.DataType, tuple[Any, Any]] = {pa.string(): ("upsert", "delete"), pa.int8(): (1, 2)}


class RowFormat:
    """How the rows of one table and operation travel. Made once and compared by identity.

    An upsert has every column of the table: one that was forgotten would erase values. A delete has those that say which row, and
    when: record key, partition and ordering; others are dropped. Mixed rows say by ``operation_column`` which of both they are.
    """

    def __init__(
        self,
        table: TableInfo,
        operation: "wire.Operation.ValueType",
        operation_column: str = "",
        says: pa.DataType = _TEXT,
    ) -> None:
        identity = {*table.key, *table.partition_by, *([table.ordering] if table.ordering else [])}
        fields = [field.remove_metadata() for field in table.schema]
        if operation == wire.OPERATION_DELETE:
            fields = [field for field in fields if field.name in identity]
        if operation == wire.OPERATION_MIXED:
            fields = [field if field.name in identity else field.with_nullable(True) for field in fields]
            fields.append(pa.field(operation_column, says, nullable=False))
        self.operation = operation
        self.operation_column = operation_column
        self.schema = pa.schema(fields)
        self.schema_message = self.schema.serialize().to_pybytes()
        self._struct = pa.struct(fields)
        self._names = frozenset(self.schema.names)
        self._needed = self._names if operation != wire.OPERATION_MIXED else frozenset(identity | {operation_column})
        self._may_round = [(field, kinds) for field in fields if (kinds := rounded_kinds(field.type))]
        self._never_null = [field.name for field in fields if not field.nullable or field.name in {*table.key, table.ordering}]

    def convert(self, data: Any) -> Iterator[pa.RecordBatch]:
        """Record batches of ``schema``. What is in memory is converted whole before the first comes out; a reader is not.

        Raises RowError, SchemaError, InvalidArgumentError.
        """
        if isinstance(data, list):  # first, because single rows come often and the other questions take as long as they do
            yield from self._from_python(data)
        elif isinstance(data, pa.RecordBatch):
            yield self._from_arrow(data, 0)
        elif isinstance(data, pa.Table):
            yield from self._all(data.to_batches())
        elif isinstance(data, pa.RecordBatchReader):
            yield from self._each(data)
        elif hasattr(data, "__arrow_c_stream__"):
            yield from self._all(_stream(data).read_all().to_batches())
        else:
            yield from self._from_python(data)

    # --- Python rows ---

    def _from_python(self, data: Any) -> Iterator[pa.RecordBatch]:
        rows = data if isinstance(data, list) else _listed(data)
        if len(rows) <= _CHUNK_ROWS:
            yield from [self._from_mappings(_mappings(rows, 0), 0)] if rows else []
        else:
            starts = range(0, len(rows), _CHUNK_ROWS)
            yield from [self._from_mappings(_mappings(rows[at : at + _CHUNK_ROWS], at), at) for at in starts]

    def _from_mappings(self, rows: Sequence[Mapping[str, Any]], first: int) -> pa.RecordBatch:
        self._check_names(rows, first)
        try:
            structs: Any = pa.array(rows, type=self._struct)
            batch: pa.RecordBatch = pa.RecordBatch.from_struct_array(structs)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._misfit(rows, first, error) from error
        self._check_rounding(rows, first)
        return self._checked(batch, first)

    def _check_names(self, rows: Sequence[Mapping[str, Any]], first: int) -> None:
        """Every row has what it needs and, but for deletes, nothing else. Set operations on key views are C, one pass."""
        if self.operation == wire.OPERATION_UPSERT and all(row.keys() == self._names for row in rows):
            return
        for at, row in enumerate(rows, first):
            missing = self._needed - row.keys()
            if missing:
                column = min(missing)
                raise RowError(
                    f"row {at} has no {column!r}", fix="Give every column; None stands for null.", row=at, column=column
                )
            unknown = row.keys() - self._names
            if unknown and self.operation != wire.OPERATION_DELETE:
                column = min(unknown)
                raise RowError(
                    f"row {at} has {column!r}, which the table lacks",
                    fix=f"The columns are {', '.join(self.schema.names)}.",
                    row=at,
                    column=column,
                )

    def _check_rounding(self, rows: Sequence[Mapping[str, Any]], first: int) -> None:
        """Arrow makes 1 of 1.5 and a day of a time without a word; values are looked at only where such a type is among them."""
        for field, kinds in self._may_round:
            if any(issubclass(kind, kinds) for kind in {type(row.get(field.name)) for row in rows}):
                for at, row in enumerate(rows, first):
                    if is_rounded(row.get(field.name), field.type):
                        raise bad_value(at, field, f"{row[field.name]!r:.80} is no {field.type}")

    def _misfit(self, rows: Sequence[Mapping[str, Any]], first: int, cause: Exception) -> Exception:
        """Which value it was: looked for only after the whole has failed."""
        for field in self.schema:
            for at, row in enumerate(rows, first):
                try:
                    pa.array([row.get(field.name)], type=field.type)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                    return bad_value(at, field, f"{row.get(field.name)!r:.80} is no {field.type} ({error})")
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
            fix = f"Send exactly these: {', '.join(self.schema.names)}.{hint}"
            raise SchemaError(f"the columns are not the table's ({found})", fix=fix)

    def _column(self, batch: pa.RecordBatch, field: "pa.Field[Any]", first: int) -> "pa.Array[Any]":
        at = batch.schema.get_field_index(field.name)
        column: pa.Array[Any] = pa.nulls(batch.num_rows, field.type) if at < 0 else plain(batch.column(at))
        if column.type == field.type:
            return column
        if not may_cast(column.type, field.type):
            raise SchemaError(
                f"column {field.name!r} is {column.type} and the table has {field.type}", fix="Cast the column before sending."
            )
        try:
            fitted: pa.Array[Any] = column.cast(field.type)
        except pa.ArrowException as error:
            for row in range(len(column)):
                try:
                    column.slice(row, 1).cast(field.type)
                except pa.ArrowException as why:
                    raise bad_value(first + row, field, f"{column[row]} is no {field.type} ({why})") from why
            raise SchemaError(f"column {field.name!r}: {error}", fix=f"Cast it to {field.type} before sending.") from error
        return fitted

    # --- both ---

    def _checked(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        for name in self._never_null:
            column = batch.column(name)
            if column.null_count:
                at = first + column.is_null().index(pa.scalar(True)).as_py()
                raise RowError(f"row {at} has no value in {name!r}", fix="This column is never null.", row=at, column=name)
        if self.operation == wire.OPERATION_MIXED:
            self._check_operations(batch, first)
        return batch

    def _check_operations(self, batch: pa.RecordBatch, first: int) -> None:
        says = batch.column(self.operation_column)
        known = _OPERATIONS[says.type]
        is_known = pa.compute.is_in(says, value_set=pa.array(known, says.type))
        at = is_known.index(pa.scalar(False)).as_py()
        if at >= 0:
            raise RowError(
                f"row {first + at} has the operation {says[at].as_py()!r}",
                fix=f"Use {known[0]!r} or {known[1]!r}.",
                row=first + at,
                column=self.operation_column,
            )


class Formats:
    """The row formats of one table, each made once."""

    def __init__(self, table: TableInfo) -> None:
        self.upsert = RowFormat(table, wire.OPERATION_UPSERT)
        self.delete = RowFormat(table, wire.OPERATION_DELETE)
        self._table = table
        self._mixed: dict[tuple[str, pa.DataType], RowFormat] = {}

    def mixed(self, column: str, says: pa.DataType) -> RowFormat:
        """Raises InvalidArgumentError when the table has a column of that name."""
        if column in self._table.schema.names:
            raise InvalidArgumentError(
                f"{column!r} is a column of the table", fix="Name the column with the operations by operation_column=."
            )
        if (column, says) not in self._mixed:
            self._mixed[column, says] = RowFormat(self._table, wire.OPERATION_MIXED, column, says)
        return self._mixed[column, says]


def operation_type(data: Any, column: str) -> tuple[Any, pa.DataType]:
    """How the rows say their operation, by their type or their first row; and the rows, which may have been an iterator."""
    schema = getattr(data, "schema", None)
    if not isinstance(schema, pa.Schema) and hasattr(data, "__arrow_c_stream__"):
        data = _stream(data)
        schema = data.schema
    if isinstance(schema, pa.Schema):
        at = schema.get_field_index(column)
        return data, pa.int8() if at >= 0 and pat.is_integer(schema.field(at).type) else pa.string()
    rows = [data] if isinstance(data, Mapping) or not isinstance(data, Iterable) else list(data)
    first = rows[0] if rows else None
    value = first.get(column) if isinstance(first, Mapping) else getattr(first, column, None)
    return rows, pa.int8() if isinstance(value, int) else pa.string()


def _stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgumentError(
            f"{type(data).__name__} is no stream of rows: {error}", fix="Pass a table, not a single column."
        ) from error


def _listed(data: Any) -> list[Any]:
    if isinstance(data, Mapping) or (dataclasses.is_dataclass(data) and not isinstance(data, type)):
        return [data]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise InvalidArgumentError(
            f"{type(data).__name__} holds no rows",
            fix="Pass a list of dicts or dataclasses, a pyarrow Table or RecordBatchReader, or a pandas or polars DataFrame.",
        )
    return list(data)


def _mappings(rows: Sequence[Any], first: int) -> Sequence[Mapping[str, Any]]:
    """Dataclasses as mappings; mappings as they are."""
    if all(type(row) is dict for row in rows):
        return rows
    if all(isinstance(row, Mapping) for row in rows):
        return [row if isinstance(row, dict) else dict(row) for row in rows]
    kind = type(rows[0])
    if not dataclasses.is_dataclass(kind) or any(type(row) is not kind for row in rows):
        at = next(at for at, row in enumerate(rows) if not isinstance(row, Mapping))
        raise RowError(
            f"row {first + at} is a {type(rows[at]).__name__}", fix="Rows are dicts, or dataclasses all of one class.",
            row=first + at, column="",
        )  # fmt: skip
    names = [field.name for field in dataclasses.fields(kind)]
    values = operator.attrgetter(*names, names[0])  # two names at least, so that it always returns a tuple
    return [dict(zip(names, values(row), strict=False)) for row in rows]
