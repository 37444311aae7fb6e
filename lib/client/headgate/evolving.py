"""What rows bring that their table does not hold: new columns, new fields of structs, wider types.

Looked for only after rows did not fit, in a table whose setting ``headgate.evolve`` lets batches change it. The table's owner
decides; what is asked of it here is the least that the rows need, and only if they fit then.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.types as pat

from headgate.definition import TableInfo
from headgate.errors import RowError, SchemaError
from headgate.frame_schemas import stored_type
from headgate.frames import stream_of
from headgate.records import listed, mappings
from headgate.row_formats import RowFormats
from headgate.rows import RowFormat
from headgate_proto.api.v1 import ingest_pb2 as wire

if TYPE_CHECKING:
    from headgate.values import Field

_WIDER = frozenset([(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())])


def rereadable(rows: object) -> object:
    """The same rows in a form that can be read twice. A RecordBatchReader stays as it is: it may hold more than memory does."""
    if isinstance(rows, (list, pa.RecordBatch, pa.Table, pa.RecordBatchReader)):
        return rows
    if hasattr(rows, "__arrow_c_stream__"):
        return stream_of(rows).read_all()
    return listed(rows)


def brought(table: TableInfo, rows: object, row_format: RowFormat) -> pa.Schema | None:
    """The columns that the table has to add or to widen so that it takes ``rows``; None: there are none.

    ``rows``: of ``rereadable``; of a reader the schema counts. Raises RowError or SchemaError if they do not fit even then, or if
    the values of a new column do not say its type.
    """
    if row_format.operation == wire.OPERATION_DELETE or table.evolve == "refuse":
        return None
    there = {field.name: field for field in table.schema}
    needed: dict[str, pa.DataType] = {}
    for name, column in _columns(rows, table.schema.names):
        if name != row_format.operation_column and (kind := _needed(table, there.get(name), name, column)) is not None:
            needed[name] = kind
    if not needed:
        return None
    changed = [field.with_type(needed[field.name]) if field.name in needed else field for field in table.schema]
    added = [pa.field(name, kind) for name, kind in needed.items() if name not in there]
    if not isinstance(rows, pa.RecordBatchReader):
        after = RowFormats(replace(table, schema=pa.schema([*changed, *added]))).like(row_format)
        for _ in after.convert(rows):
            pass
    return pa.schema(list(needed.items()))


_Column = pa.Table | Sequence[Mapping[str, object]]
"""Rows with one column."""


def _columns(rows: object, names_of_tuples: Sequence[str]) -> Iterator[tuple[str, _Column]]:
    if isinstance(rows, pa.RecordBatchReader):
        rows = rows.schema.empty_table()
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        yield from ((name, rows.select([at])) for at, name in enumerate(rows.schema.names))
        return
    given = listed(rows)
    records = mappings(given, 0, names_of_tuples) if given else []
    for name in dict.fromkeys(itertools.chain.from_iterable(records)):
        yield name, [{name: record[name]} for record in records if name in record]


def _needed(table: TableInfo, field: "Field | None", name: str, column: _Column) -> pa.DataType | None:
    """The type that the column needs in the table; None: the one that it has, or none that would do."""
    if field is None:
        return _type_of(name, column)
    if _takes(table, field, column):
        return None
    try:
        given = _type_of(name, column)
    except SchemaError:
        return None
    for widens in (False, True) if table.evolve == "add-and-widen" else (False,):
        kind = _merged(field.type, given, widens=widens)
        if kind != field.type and _takes(table, field.with_type(kind), column):
            return kind
    return None


def _takes(table: TableInfo, field: "Field", column: _Column) -> bool:
    """Whether a table with this column alone takes these rows."""
    alone = replace(table, schema=pa.schema([field.with_nullable(True)]), key=(), partition_by=(), ordering=None)
    try:
        for _ in RowFormat(alone, wire.OPERATION_UPSERT).convert(column):
            pass
    except (RowError, SchemaError):
        return False
    return True


def _type_of(name: str, column: _Column) -> pa.DataType:
    """The type in which a table stores such values. Raises SchemaError where they do not say it."""
    if isinstance(column, pa.Table):
        kind = column.schema.field(0).type
    else:
        try:
            values: list[Any] = [record[name] for record in column]
            kind = pa.array(values).type
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _unsaid(name, f"its values have no common type that Arrow knows ({error})") from error
        if _has(kind, pat.is_decimal):
            raise _unsaid(name, "it has decimals, which do not say how many digits there will be")
    if _has(kind, pat.is_null):
        raise _unsaid(name, "it has no values")
    return stored_type(kind)


def _unsaid(name: str, why: str) -> SchemaError:
    return SchemaError(
        f"column {name!r} is new, and nothing says its type: {why}",
        fix=f"Leave it out until it has values, send it in Arrow's types, or add it first: table.alter(add={{{name!r}: …}}).",
    )


def _has(kind: pa.DataType, is_it: Any) -> bool:
    return is_it(kind) or any(_has(kind.field(at).type, is_it) for at in range(kind.num_fields))


def _merged(there: pa.DataType, given: pa.DataType, *, widens: bool) -> pa.DataType:
    """``there`` with the fields that ``given`` has besides; ``widens``: and with its wider types."""
    if isinstance(there, pa.StructType) and isinstance(given, pa.StructType):
        fields = {given.field(at).name: given.field(at) for at in range(given.num_fields)}
        kept = [_merged_field(field, fields.pop(field.name, field), widens=widens) for field in there]
        return pa.struct([*kept, *(field.with_nullable(True) for field in fields.values())])
    if isinstance(there, pa.ListType) and isinstance(given, pa.ListType):
        return pa.list_(_merged_field(there.value_field, given.value_field, widens=widens))
    if isinstance(there, pa.MapType) and isinstance(given, pa.MapType):
        kind: pa.DataType = pa.map_(there.key_type, cast("Any", _merged_field(there.item_field, given.item_field, widens=widens)))
        return kind
    if isinstance(there, pa.Decimal128Type) and isinstance(given, pa.Decimal128Type):
        is_wider = given.scale == there.scale and given.precision > there.precision
    else:
        is_wider = (there, given) in _WIDER
    return given if widens and is_wider else there


def _merged_field(there: "Field", given: "Field", *, widens: bool) -> "Field":
    return there.with_type(_merged(there.type, given.type, widens=widens))
