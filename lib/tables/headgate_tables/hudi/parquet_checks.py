"""Finds damage that Parquet's checksums miss: they cover pages, but not the footer, which says where and what the pages are."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_tables.errors import CorruptFileError

UNMERGEABLE: Final = (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, pa.ArrowTypeError)
"""How bytes show that decode and are no values: text that is no Unicode, a number out of its type's range."""


def check_columns(found: Sequence[str], schema_json: str, path: str) -> None:
    """``found``: top-level names of a Parquet file or block of ours; ``schema_json``: the Avro schema that it carries.

    Under a damaged name a column would look missing and be read as null. Raises CorruptFileError.
    """
    if tuple(found) != _column_names(schema_json):
        raise damaged(path, f"its columns ({', '.join(found)}) are not those of its schema")


def check_counts(file: pq.ParquetFile, path: str) -> list[int]:
    """Rows of each row group. Raises CorruptFileError when they do not add up to the file's rows."""
    groups = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    if sum(groups) != file.metadata.num_rows:
        raise damaged(path, f"its row groups hold {sum(groups)} rows, the file {file.metadata.num_rows}")
    return groups


def damaged(path: str, how: object) -> CorruptFileError:
    """The error for a file whose bytes have changed since it was written."""
    return CorruptFileError(
        f"{path} cannot be decoded: {how}", fix="Restore the file from a copy; verify() names every damaged file."
    )


@lru_cache
def _column_names(schema_json: str) -> tuple[str, ...]:
    try:
        return tuple(field["name"] for field in json.loads(schema_json)["fields"])
    except (ValueError, LookupError, TypeError):
        return ()
