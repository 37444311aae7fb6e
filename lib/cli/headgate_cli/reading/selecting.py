"""The columns of a file that `--select` names: only these are read as values, in this order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.source import FileBatch, Source, refused
from headgate_tables.near_names import did_you_mean


def check_selected(path: Path, names: Sequence[str], select: Sequence[str]) -> None:
    """Raises CommandError for a column of ``select`` that is not among ``names``, with the one that may be meant."""
    _check_there(path, names, select, "--select")


def check_casts(path: Path, names: Sequence[str], options: ReadOptions) -> None:
    """Raises CommandError for a column of ``--cast`` that is not among ``names``, with the one that may be meant."""
    _check_there(path, names, [name for name, _ in options.casts], "--cast")


def _check_there(path: Path, names: Sequence[str], given: Sequence[str], option: str) -> None:
    if missing := [name for name in given if name not in names]:
        raise refused(
            f"{path.name} has no column {missing[0]!r}",
            f"{did_you_mean(missing[0], names)}Correct {option}; the columns are {', '.join(names)[:300]}.",
        )


def check_once(path: Path, names: Sequence[str], select: Sequence[str]) -> None:
    """Raises CommandError for a column that would be loaded and that the file has more than once."""
    if twice := [name for name in select or names if names.count(name) > 1]:
        raise refused(
            f"{path.name} has the column {twice[0]!r} more than once",
            "Write the file with another name for each column, or load the other columns alone: --select.",
        )


def selected(source: Source, select: Sequence[str]) -> Source:
    """``source`` with the columns of ``select`` alone, in this order; all of them without any. Raises CommandError."""
    if not select:
        return source
    check_selected(source.path, source.schema.names, select)
    chosen = list(select)

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch in source.batches(skip):
            yield batch._replace(rows=batch.rows.select(chosen))

    return replace(source, schema=pa.schema([source.schema.field(name) for name in chosen]), batches=batches)
