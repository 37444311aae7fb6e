"""A client's schema, read within limits before Arrow builds it: by writers for batches, by coordinators for tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate_runtime.arrow_messages import BYTE, INT, SCHEMA, SHORT, Spelled, open_message, too_large
from headgate_runtime.errors import cut
from headgate_runtime.flatbuffer import DamagedError, FlatTable

DECIMAL: Final = 7
_TIMESTAMP, _FIXED_SIZE_BINARY, _FIXED_SIZE_LIST = 10, 15, 16
_EXTENSION: Final = b"ARROW:extension:name"


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What one schema may be, with everything in it expanded.

    ``message_bytes``: on the wire. ``columns`` counts nested ones; ``nesting``: levels of them. ``name_bytes``: of one column's
    name. ``metadata``: key-value pairs of all columns and of the schema. ``value_bytes``: of a value of fixed size.
    """

    message_bytes: int = 256 << 10
    columns: int = 2_000
    nesting: int = 16
    name_bytes: int = 255
    metadata: int = 4_000
    value_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A column or a nested one, its ``name`` cut and quoted as messages show it.

    ``kind``: number of its Arrow type in Schema.fbs; ``bits``: of a decimal.
    """

    name: str
    kind: int
    bits: int
    is_dictionary: bool
    is_extension: bool


@dataclass(frozen=True, slots=True)
class DeclaredSchema:
    """``fields``: all of them, level by level."""

    is_big_endian: bool
    fields: Sequence[DeclaredField]


def read_declared(message: bytes, limits: SchemaLimits) -> DeclaredSchema:
    """What an encapsulated Arrow IPC schema message declares.

    Costs some microseconds a column: call it off the loop for a message of more than some kilobytes. Raises RpcError
    (CODE_TOO_LARGE), DamagedError when it is no such message, or reaches a part of itself over two paths.
    """
    if len(message) > limits.message_bytes:
        fix = "Use fewer or shorter column names and metadata."
        raise too_large("bytes of the schema", len(message), limits.message_bytes, fix)
    schema, _, spelled = open_message(message, SCHEMA, "schema", limits.metadata)
    spelled.pairs(schema, 2)
    return DeclaredSchema(schema.number(0, SHORT, 0) != 0, _fields(schema, spelled, limits))


def _fields(schema: FlatTable, spelled: Spelled, limits: SchemaLimits) -> list[DeclaredField]:
    """Level by level: a hostile message may nest without end, and the stack has one."""
    found: list[DeclaredField] = []
    level = _below([schema], 1, limits.columns, limits.columns)
    for _ in range(limits.nesting):
        found += [_field(each, spelled, limits) for each in level]
        level = _below(level, 5, limits.columns - len(found), limits.columns)
        if not level:
            return found
    raise too_large("levels of nested columns", limits.nesting + 1, limits.nesting, "Flatten the nested columns.")


def _below(level: Sequence[FlatTable], children: int, room: int, limit: int) -> Sequence[FlatTable]:
    """The fields in field number ``children`` of these tables, of which ``room`` are left of the ``limit``."""
    found: list[FlatTable] = []
    for table in level:
        fields = table.tables(children, room - len(found))
        if fields is None:
            raise too_large("columns, nested ones counted", limit + 1, limit, "Use a narrower schema.")
        found += fields
    return found


def _field(field: FlatTable, spelled: Spelled, limits: SchemaLimits) -> DeclaredField:
    spelled.visit(field)
    name = spelled.text(field, 0)
    shown = repr(cut(name))
    if (size := len(name.encode())) > limits.name_bytes:
        raise too_large(f"bytes of the name of column {shown}", size, limits.name_bytes, "Give it a shorter name.")
    kind = field.number(2, BYTE, 0)
    bits = _check_type(field.table(3), kind, shown, spelled, limits)
    metadata = spelled.pairs(field, 6)
    return DeclaredField(shown, kind, bits, field.table(4) is not None, _EXTENSION in metadata)


def _check_type(described: FlatTable | None, kind: int, name: str, spelled: Spelled, limits: SchemaLimits) -> int:
    """The bits of a decimal, 0 of other types."""
    if described is None:
        return 0
    spelled.visit(described)
    if kind == _TIMESTAMP:
        spelled.text(described, 1)
    elif kind in (_FIXED_SIZE_BINARY, _FIXED_SIZE_LIST):
        size = described.number(0, INT, 0)
        if size < 0:
            raise DamagedError(f"column {name} has values of a negative size")
        if size > limits.value_bytes:
            what = f"size of each value in column {name}"
            raise too_large(what, size, limits.value_bytes, "Use a type whose values have the size that they need.")
    return described.number(2, INT, 128) if kind == DECIMAL else 0
