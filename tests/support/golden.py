"""Tables that real Hudi wrote on Spark and Flink, with the rows that its own reader gave (see tests/golden/README.md)."""

import json
import zipfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

GOLDEN = Path(__file__).parent.parent / "golden"


def unpack(name: str, into: Path, *, writer: str = "spark") -> str:
    """Unzips a table and returns its path: the folder of its name, or of what follows the last ``__`` in it."""
    with zipfile.ZipFile(GOLDEN / writer / f"{name}.zip") as archive:
        archive.extractall(into)
    return str(into / name.rpartition("__")[2])


def names(pattern: str, *, writer: str = "spark") -> list[str]:
    """Names of the golden tables, sorted."""
    return sorted(path.stem for path in (GOLDEN / writer).glob(f"{pattern}.zip"))


def expected_rows(name: str) -> pa.Table:
    """What Spark's snapshot query returned, meta columns included."""
    return pq.read_table(GOLDEN / "spark" / f"{name}.expected.parquet")


def expected_flink_rows(name: str) -> list[dict[str, Any]]:
    """What Flink's snapshot reader returned; decimals and timestamps as text."""
    lines = (GOLDEN / "flink" / f"{name}.expected.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def comparable(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows as sorted text, so that any two lists of dictionaries compare: maps as pairs, decimals without trailing zeros."""
    return sorted(repr(sorted((name, _plain(value)) for name, value in row.items())) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(item, tuple) and len(item) == 2 for item in value):
        return sorted((key, _plain(item)) for key, item in value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return sorted((key, _plain(item)) for key, item in value.items())
    if isinstance(value, Decimal):
        return str(value.normalize())
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytearray):
        return bytes(value)
    return value
