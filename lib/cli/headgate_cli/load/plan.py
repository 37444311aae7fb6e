"""The columns of files, together and beside those of a table."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pat

import headgate
from headgate_cli.output import Output
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.renaming import check_names
from headgate_cli.reading.source import Source, refused
from headgate_cli.reading.sources import format_of, open_source


def schema_of_files(files: Sequence[Path], kind: str | None, reading: ReadOptions) -> pa.Schema:
    """The columns of a table that takes all ``files``. Raises CommandError for files that differ by more than whole numbers,
    and for names that no table has.

    A column without a value in one file has the type of the others; without a value anywhere it becomes text.
    """
    found: dict[str, pa.DataType] = {}
    nullable: dict[str, bool] = {}
    for at, path in enumerate(files):
        schema = open_source(path, format_of(path, kind), None, reading).schema
        if not schema.names:
            raise refused(
                f"{path.name} is empty: it has no columns, of which a new table could be made",
                "Leave the file out, or make the table first: `headgate table create`.",
            )
        if at and set(schema.names) != set(found):
            odd = sorted(set(schema.names) ^ set(found))
            raise refused(
                f"{path.name} has not the columns of {files[0].name}: {', '.join(odd)}", "Load them into different tables."
            )
        for field in schema:
            found[field.name] = _wider(found.get(field.name, pa.null()), field, path)
            nullable[field.name] = nullable.get(field.name, False) or field.nullable
    check_names(list(found), files[0].name, format_of(files[0], kind), reading.sql)
    return pa.schema([pa.field(name, _made(kind), nullable[name]) for name, kind in found.items()])


def _wider(one: pa.DataType, field: "pa.Field[pa.DataType]", path: Path) -> pa.DataType:
    other = field.type
    if pat.is_null(one) or one == other:
        return other
    if pat.is_null(other):
        return one
    if pat.is_floating(one) and pat.is_integer(other):
        return one
    if pat.is_integer(one) and pat.is_floating(other):
        return other
    raise refused(
        f"{path.name}: column {field.name!r} is {other}, and {one} in the files before",
        f"Give the type that takes both, such as --cast '{field.name}=string', with --sql in the SQL.",
    )


def _made(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pat.is_null(kind) else kind


def say_lacking(output: Output, file: str, source: Source, table: headgate.TableInfo) -> None:
    """Says which columns of the table the file lacks, null in its rows; nothing of a file that is refused for them."""
    strict = {field.name for field in table.schema if not field.nullable}
    never_null = strict | {*table.key, *table.partition_by, table.ordering}
    lacking = [name for name in table.schema.names if name not in source.schema.names]
    if lacking and never_null.isdisjoint(lacking):
        output.print_json({"event": "lacking", "file": file, "columns": lacking})
        output.print_text(f"{source.path.name} lacks {', '.join(lacking)}: null in its rows.", fg="yellow")
