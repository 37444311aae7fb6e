"""Columns of a file under the names that a table has."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from headgate_cli.reading.source import FileBatch, Source, refused

_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = "_hoodie_"
Renames = Sequence[tuple[str, str]]
"""Pairs of a column's name in the file and in the table."""


def file_names(types: pa.Schema | None, renames: Renames) -> pa.Schema | None:
    """A table's columns under the names that the file has."""
    back = {new: old for old, new in renames}
    return None if types is None else pa.schema([field.with_name(back.get(field.name, field.name)) for field in types])


def renamed(source: Source, renames: Renames) -> Source:
    """``source`` with a table's names. Raises CommandError for one that the file lacks or that two columns would have."""
    names = dict(renames)
    if missing := [name for name in names if name not in source.schema.names]:
        there = ", ".join(source.schema.names)[:300]
        raise refused(f"{source.path.name} has no column {missing[0]!r}", f"Correct --rename; the columns are {there}.")
    schema = pa.schema([field.with_name(names.get(field.name, field.name)) for field in source.schema])
    if twice := [name for name in schema.names if schema.names.count(name) > 1]:
        raise refused(f"{source.path.name} would have two columns {twice[0]!r}", "Give each column another name with --rename.")

    def batches(skip: int) -> Iterator[FileBatch]:
        for batch in source.batches(skip):
            yield batch._replace(rows=batch.rows.rename_columns(schema.names))

    return replace(source, schema=schema, batches=batches)


def check_names(names: Sequence[str], file: str, kind: str, sql: str = "") -> None:
    """Raises CommandError for names that no table has, with options that give them others. ``sql``: what made the columns."""
    if odd := [name for name in names if not is_legal(name)]:
        other = _others(names, odd)
        options = " ".join(f"--rename {_quoted(f'{name}={other[name]}')}" for name in odd)
        fix = f"Give {options}, or leave such columns out with --select COLUMN,…"
        if kind == "csv" and len(names) == 1:
            fix = f"If these are several columns, say what stands between them: --delimiter MARK. If it is one, give {options}."
        if sql:
            fix = f"Give it another one in the SQL: AS {other[odd[0]]}."
        why = f"Hudi reserves those with {_RESERVED}" if _LEGAL.fullmatch(odd[0]) else "a name has letters, digits and _ alone"
        raise refused(f"{file}: a table has no column {odd[0]!r}: {why}", fix)


def is_legal(name: str) -> bool:
    """Whether a column of a table may have this name."""
    return bool(_LEGAL.fullmatch(name)) and not name.startswith(_RESERVED)


def _others(names: Sequence[str], odd: Sequence[str]) -> dict[str, str]:
    """A legal name for each odd one. No two are the same, also without case, as Hudi's readers compare them."""
    taken = {name.lower() for name in names if name not in odd}
    found: dict[str, str] = {}
    for name in odd:
        legal = _legal(name)
        numbered = (f"{legal}_{number}" for number in itertools.count(2))
        found[name] = next(each for each in itertools.chain([legal], numbered) if each not in taken)
        taken.add(found[name])
    return found


def _quoted(text: str) -> str:
    """As a shell takes it."""
    return "'" + text.replace("'", "'\\''") + "'"


def _legal(name: str) -> str:
    found = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").lower() or "column"
    return f"_{found}" if found[0].isdigit() else found
