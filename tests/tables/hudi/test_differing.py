"""A table that is there with another definition: the error says what differs."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_tables import hudi
from headgate_tables.errors import OtherDefinitionError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])
GIVEN = {"schema": SCHEMA, "record_key": "id", "partition_by": "day", "ordering": "at", "buckets": 2, "name": "t"}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"schema": SCHEMA.set(0, pa.field("id", pa.string()))}, "its column 'id' is int64 not null, not string"),
        ({"schema": SCHEMA.append(pa.field("more", pa.float64()))}, "it has no column 'more' (double)"),
        (
            {"schema": SCHEMA.remove(1), "partition_by": []},
            "it has the column 'day' (string); its partition is day, not none",
        ),
        ({"schema": pa.schema(list(SCHEMA)[::-1])}, "its columns come in the order id, day, at"),
        ({"record_key": ["id", "day"]}, "its key is id, not id, day"),
        ({"ordering": None}, "its ordering is at, not none"),
        ({"hive_style": True}, "its folders are named by the value alone, not named column=value"),
        ({"buckets": 3, "ordering": None}, "its ordering is at, not none; its number of buckets is 2, not 3"),
    ],
)
def test_the_error_says_what_differs_and_nothing_else(tmp_path: Path, other: dict[str, Any], says: str) -> None:
    url = (tmp_path / "t").as_uri()
    hudi.create_table(url, **GIVEN)  # type: ignore[arg-type]
    with pytest.raises(OtherDefinitionError) as refused:
        hudi.create_table(url, **GIVEN | other, exist_ok=True)  # type: ignore[arg-type]
    assert str(refused.value).startswith(f"a table with another definition is there: {says}. Use it as it is")


def test_many_differences_are_counted(tmp_path: Path) -> None:
    url = (tmp_path / "t").as_uri()
    hudi.create_table(url, **GIVEN)  # type: ignore[arg-type]
    wide = pa.schema([*SCHEMA, *(pa.field(f"c{number}", pa.int64()) for number in range(12))])
    with pytest.raises(OtherDefinitionError, match=r"no column 'c9' \(int64\); and 2 more\. "):
        hudi.create_table(url, **GIVEN | {"schema": wide}, exist_ok=True)  # type: ignore[arg-type]
    assert hudi.create_table(url, **GIVEN, exist_ok=True).commits() == []  # type: ignore[arg-type]


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    url = (tmp_path / "t").as_uri()
    hudi.create_table(url, **GIVEN)  # type: ignore[arg-type]
    long = pa.schema([*SCHEMA, pa.field("s", pa.struct([(f"field_{number}", pa.int64()) for number in range(500)]))])
    with pytest.raises(OtherDefinitionError) as refused:
        hudi.create_table(url, **GIVEN | {"schema": long}, exist_ok=True)  # type: ignore[arg-type]
    assert len(str(refused.value)) < 400
