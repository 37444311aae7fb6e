"""Rows of tables whose columns change: a value of any type, from one number."""

from decimal import Decimal
from typing import Any

import pyarrow as pa


def value(kind: pa.DataType, seed: int) -> Any:
    """One that the type holds; null for some dates."""
    return {
        "string": f"s{seed}",
        "int32": seed,
        "int64": seed * 2**33,
        "double": seed / 8,
        "float": seed / 8,
        "date32[day]": None if seed % 2 else 19_000 + seed,
        "timestamp[us, tz=UTC]": 1_700_000_000_000_000 + seed,
        "decimal128(12, 3)": Decimal(seed) / 8,
        "decimal128(5, 2)": Decimal(seed % 900) / 4,
        "decimal128(9, 2)": Decimal(seed) * 1000 / 4,
        "decimal128(18, 2)": Decimal(seed) * 10**9 / 4,
        "list<element: string>": [f"t{seed}", None],
        "list<element: struct<x: int32>>": [{"x": seed}, None],
        "bool": seed % 2 == 0,
    }.get(str(kind), {"x": seed})


def row(schema: pa.Schema, key: str, ts: int) -> dict[str, Any]:
    """``id``, ``part``, ``ts`` and ``v``, and a value in each other column of the schema."""
    found: dict[str, Any] = {"id": key, "part": "ab"[len(key) % 2], "ts": ts, "v": ts}
    for field in schema:
        if field.name not in found:
            found[field.name] = pa.scalar(value(field.type, ts), field.type).as_py()
    return found
