"""Rows of orders, and how a table that has them is read without this project."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from support.readers import read_by_hudi_rs, without_meta

_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    ("id", pa.int64()),
    ("day", pa.string()),
    ("at", pa.int64()),
    ("text", pa.string()),
]
SCHEMA: Final = pa.schema(_FIELDS)
COLUMNS: Final = "id long, day string, at long, text string"


def rows(numbers: Iterable[int], at: int = 1) -> list[dict[str, Any]]:
    """Three days, in turn."""
    return [{"id": n, "day": f"2026-01-0{n % 3 + 1}", "at": at, "text": f"{n} {at}"} for n in numbers]


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """As hudi-rs reads the table, by id."""
    found = without_meta(read_by_hudi_rs(folder)).select(SCHEMA.names).to_pylist()
    return sorted(found, key=lambda row: row["id"])
