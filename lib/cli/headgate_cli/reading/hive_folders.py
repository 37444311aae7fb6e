"""Columns that stand in the names of folders: ``day=2026-01-01/part-0.parquet``, as Hive, Spark and DuckDB write them."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from headgate_cli.reading.inference import ColumnInference
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FileBatch, Source
from headgate_cli.reading.text_values import MisfitError, convert
from headgate_cli.reading.typed import misfit_error
from headgate_tables.hive_folders import DEFAULT_PARTITION

_FOLDER = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII)

FolderValues = Mapping[str, str | None]


def names_a_column(folder: str) -> bool:
    """Whether the name of a folder is a column and its value."""
    return _FOLDER.fullmatch(folder) is not None


def folder_values(path: Path) -> FolderValues:
    """The columns in the names of the folders right above a file, outermost first."""
    found: list[tuple[str, str | None]] = []
    within = path.parent.resolve() if ".." in path.parts else path.absolute().parent  # a link's own name counts, without ..
    for folder in (within, *within.parents):
        if not (named := _FOLDER.fullmatch(folder.name)):
            break
        name, value = named.groups()
        found.append((name, None if value == DEFAULT_PARTITION else unquote(value)))
    return dict(reversed(found))


@functools.lru_cache(maxsize=64)  # asked for each of the files
def folder_type(name: str, paths: tuple[Path, ...], options: ReadOptions) -> pa.DataType:
    """The type of such a column, from the folders of all ``paths``, as that of a CSV's texts. Raises CommandError."""
    column = ColumnInference(options)
    column.add(pa.array([_text(folder_values(path).get(name), options) for path in paths], pa.string()))
    return column.kind(name)


def _text(value: str | None, options: ReadOptions) -> str | None:
    return None if value and value in options.nulls else value


def with_folder_columns(source: Source, columns: Mapping[str, pa.DataType], options: ReadOptions) -> Source:
    """``source`` with these columns of its folders, each with one value. Raises CommandError for one without an equal value."""
    values = folder_values(source.path)
    names = [name for name in columns if name in values and name not in source.schema.names]
    if not names:
        return source
    kinds = {name: pa.string() if pa.types.is_null(columns[name]) else columns[name] for name in names}
    scalars = {}
    for name, kind in kinds.items():
        try:
            scalars[name] = convert(pa.array([_text(values[name], options)], pa.string()), kind, options)[0]
        except MisfitError as misfit:
            raise misfit_error(source.path, name, kind, 0, misfit) from misfit
    schema = pa.schema([*source.schema, *kinds.items()])

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch in source.batches(skip):
            constant = [pa.repeat(scalars[name], batch.rows.num_rows) for name in names]
            yield batch._replace(rows=pa.RecordBatch.from_arrays([*batch.rows.columns, *constant], schema=schema))

    return replace(source, schema=schema, batches=batches)
