"""Fields of JSON that the table lacks: given the table's columns, Spark's reader leaves them out without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.reading.renaming import is_legal
from headgate_tables.near_names import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_LEAVE_OUT: Final = (
    "To leave fields out: `headgate load --select COLUMN,…`, or headgate_spark.bulk_insert of a DataFrame without them."
)


def check_fields(found: StructType, wanted: StructType, table: str) -> None:
    """Raises CommandError for fields of the files, at any depth, that the table lacks.

    ``found``: of the files; ``wanted``: of the table; ``table``: its name or address, for commands.
    """
    unknown = {each.path: each for each in _unknown(found, wanted, ())}
    if not unknown:
        return
    *above, name = first = next(iter(unknown))
    known = unknown[first].known
    adds = (
        f'`headgate table alter {table} --add "{".".join(first)}=TYPE"` adds it.'
        if is_legal(name)
        else f"No table has a column {name!r}: write the files with a name of ASCII letters, digits and _, not _hoodie_…."
    )
    what = f"fields of {'.'.join(above)}" if above else "columns"
    raise CommandError(
        f"the columns are not the table's (unknown: {', '.join(map('.'.join, unknown))[:300]})",
        fix=f"{did_you_mean(name, known)}The {what} are {', '.join(known)}. {adds} {_LEAVE_OUT}",
        code=ExitCode.FIX_CALL,
        kind="SchemaError",
    )


class _Unknown(NamedTuple):
    """``known``: names that the table has at this place."""

    path: tuple[str, ...]
    known: Sequence[str]


def _unknown(found: DataType, wanted: DataType, above: tuple[str, ...]) -> Iterator[_Unknown]:
    """Of lists and maps with the paths that the table library has: of the field ``element``, of the field ``value``."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        yield from _unknown(found.elementType, wanted.elementType, (*above, "element"))
    elif isinstance(found, StructType) and isinstance(wanted, MapType):
        for field in found.fields:
            yield from _unknown(field.dataType, wanted.valueType, (*above, "value"))
    elif isinstance(found, StructType) and isinstance(wanted, StructType):
        for field in found.fields:
            if field.name in wanted.names:
                yield from _unknown(field.dataType, wanted[field.name].dataType, (*above, field.name))
            else:
                yield _Unknown((*above, field.name), wanted.names)
