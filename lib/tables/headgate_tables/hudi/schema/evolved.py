"""A table's schema after another program has written: new columns and wider types, if all older rows can still be read."""

from __future__ import annotations

import pyarrow as pa

from headgate_tables.errors import TablesError, UnsupportedTableError
from headgate_tables.hudi.schema.canonical import check_supported, table_schema
from headgate_tables.hudi.schema.conform import conform
from headgate_tables.hudi.schema.meta_columns import IS_DELETED


def evolved(ours: pa.Schema, theirs: pa.Schema) -> pa.Schema:
    """``theirs``, of their newest commit, with our types where those hold the same values: Spark has no milliseconds, for
    example. A column is nullable if either says so. Both canonical. Raises UnsupportedTableError for any other change.
    """
    check_stored(theirs)
    missing = [name for name in ours.names if name not in theirs.names]
    if theirs.names and missing:
        raise _changed(f"no longer has the column {missing[0]!r}")
    return pa.schema([_field(ours, field) for field in theirs]) if theirs.names else ours


def shown(ours: pa.Schema, theirs: pa.Schema) -> pa.Schema:
    """What reads show while another program's commit is not adopted: our columns, wider where it widened them, then those that
    it added. A column that it changed otherwise keeps our type; files with it are refused when they are read.
    """
    kept = [(_both(field, theirs.field(field.name)) or field) if field.name in theirs.names else field for field in ours]
    return pa.schema([*kept, *(field.with_nullable(True) for field in theirs if field.name not in ours.names)])


def check_stored(schema: pa.Schema) -> None:
    """Checks that this library would store these columns in the same types. Raises UnsupportedTableError."""
    marks = pa.field(IS_DELETED, pa.bool_())
    own = pa.schema([field for field in schema if field.with_nullable(True) != marks])
    try:
        check_supported(own)
        stored = table_schema(own)
    except TablesError as error:
        raise UnsupportedTableError(
            f"the table's columns cannot be written here: {error.message}", fix="Write it with the program that made it."
        ) from error
    for field in own:
        kept = stored.field(field.name).type
        if kept != field.type:
            raise UnsupportedTableError(
                f"the table's column {field.name!r} is {field.type}, which is written as {kept} here",
                fix="Write it with the program that made it.",
            )


def _field(ours: pa.Schema, theirs: pa.Field[pa.DataType]) -> pa.Field[pa.DataType]:
    at = ours.get_field_index(theirs.name)
    if at < 0:
        if not theirs.nullable:
            raise _changed(f"has the new column {theirs.name!r}, in which older rows would have to be null")
        return theirs
    known = ours.field(at)
    both = _both(known, theirs)
    if both is None:
        raise _changed(f"has {theirs.type} in the column {theirs.name!r}, which was {known.type}")
    return both


def _both(ours: pa.Field[pa.DataType], theirs: pa.Field[pa.DataType]) -> pa.Field[pa.DataType] | None:
    """The field, of the two, as which rows of both can be read; None when there is none."""
    nullable = ours.nullable or theirs.nullable
    if _reads(theirs, ours) and _parts(ours.type) >= _parts(theirs.type):
        return ours.with_nullable(nullable)
    return theirs.with_nullable(nullable) if _reads(ours, theirs) else None


def _reads(stored: pa.Field[pa.DataType], wanted: pa.Field[pa.DataType]) -> bool:
    """Whether rows stored as ``stored`` can be read as ``wanted``."""
    field = wanted.with_name(stored.name).with_nullable(True)
    try:
        conform(pa.schema([stored]).empty_table(), pa.schema([field]), stored.name)
    except UnsupportedTableError:
        return False
    return True


def _parts(kind: pa.DataType, path: str = "") -> set[str]:
    """Names of all nested parts."""
    found = {path}
    for part in (kind.field(i) for i in range(kind.num_fields)):
        found |= _parts(part.type, f"{path}.{part.name}")
    return found


def _changed(how: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"the table's newest commit {how}",
        fix="Change the schema back with the program that wrote it, or go on with that program.",
    )
